"""The records themselves, read without selvedge: who there is, what became of them, and numbers that sum them up.

A data set has `inputs` (files for `selvedge predict`), `ids`, `place` (id -> row), `features` [rows, columns], `groups`
(who is drawn together) and `truth(outcome)`: what is known of each row, NaN where nothing is.
"""

import csv
import gzip
import re
import tarfile

import numpy as np

CHANNELS = ("ALP ALT AST Albumin BUN Bilirubin Cholesterol Creatinine FiO2 GCS Glucose HCO3 HCT K Lactate MechVent Mg Na "
            "PaCO2 PaO2 Platelets TroponinI TroponinT Urine WBC Weight pH HR RespRate Temp SaO2 SysABP DiasABP MAP NISysABP "
            "NIDiasABP NIMAP").split()
STATICS = "Age Gender Height ICUType Weight".split()
STAY = re.compile(r"set-([ab])/(\d+)\.txt$")
LIST = re.compile(r"Outcomes-([ab])\.txt$")
# For so many days a patient whose death nobody has recorded is taken to have lived, as selvedge does.
HORIZON = 365.0
LONG_STAYS = (7.0, 14.0)


class Missing(Exception):
    """The data is not there, or not what it should be."""


def texts(folder):
    """Every text file in a folder and in its archives, as (path, text)."""
    for path in sorted(folder.rglob("*")):
        if path.name.endswith((".tar.gz", ".tgz")):
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile() and member.name.endswith(".txt"):
                        yield member.name, archive.extractfile(member).read().decode()
        elif path.suffix == ".txt":
            yield str(path), path.read_text()


class PhysioNet:
    """PhysioNet/CinC Challenge 2012, sets a and b."""

    def __init__(self, data_dir):
        folder = data_dir / "physionet2012"
        if not folder.is_dir():
            raise Missing(f"no {folder}: `selvedge data fetch physionet2012 --data-dir {data_dir}` gets PhysioNet 2012")
        archives = sorted(folder.glob("*.tar.gz"))
        self.inputs = archives or [folder]
        stays, outcomes = {}, {}
        for name, text in texts(folder):
            if found := STAY.search(name):
                stays[found[2]] = (found[1], text)
            elif found := LIST.search(name):
                for row in csv.DictReader(text.splitlines()):
                    outcomes[row["RecordID"]] = {key: float(value) for key, value in row.items() if key != "RecordID"}
        without = stays.keys() - outcomes.keys()
        if not stays or without:
            raise Missing(f"{folder}: {len(without)} of {len(stays)} stays have no outcome: expected set-a, set-b and the "
                          "lists Outcomes-a.txt and Outcomes-b.txt")
        self.ids = sorted(stays, key=int)
        self.place = {id: at for at, id in enumerate(self.ids)}
        self.groups = np.array(self.ids)
        self.sets = np.array([stays[id][0] for id in self.ids])
        column = lambda name: np.array([outcomes[id][name] for id in self.ids])
        known = lambda name: np.where(column(name) >= 0, column(name), np.nan)
        self.raw = {name: column(name) for name in ("SAPS-I", "SOFA", "Length_of_stay", "Survival", "In-hospital_death")}
        self.scores = {name: known(name) for name in ("SAPS-I", "SOFA")}
        self.died, self.stay, self.lived = column("In-hospital_death"), known("Length_of_stay"), known("Survival")
        self.features = summary([stays[id][1] for id in self.ids])

    def truth(self, outcome):
        longer = [np.where(np.isnan(self.stay), np.nan, self.stay > days) for days in LONG_STAYS]
        within = self.lived <= HORIZON
        return {
            "death": self.died,
            "stay": self.stay,
            "labels": np.stack([self.died, *longer], axis=1),
            "survival": np.stack([np.where(within, self.lived, HORIZON), within], axis=1),
        }[outcome]

    def counts(self):
        """What the lists of outcomes say about whom, for sets a and b."""
        def of(which):
            here = self.sets == which
            survival, stay = self.raw["Survival"][here], self.raw["Length_of_stay"][here]
            return {
                "patients": int(here.sum()),
                "died in hospital": int(self.died[here].sum()),
                "Survival is -1": int((survival == -1).sum()),
                "Survival is below 0 otherwise": int(((survival < 0) & (survival != -1)).sum()),
                f"death recorded within {HORIZON:.0f} days": int(((survival >= 0) & (survival <= HORIZON)).sum()),
                "death recorded later": int((survival > HORIZON).sum()),
                "Length_of_stay is unknown": int((stay < 0).sum()),
                "SAPS-I is unknown": int((self.raw["SAPS-I"][here] < 0).sum()),
                "SOFA is unknown": int((self.raw["SOFA"][here] < 0).sum()),
            }
        return {which: of(which) for which in "ab"}


def summary(stays):
    """For each channel over 48 hours: count, mean, least, greatest, first, last, slope per hour, hours since the last;
    and what is known at admission. NaN where nothing was measured; less than zero is how the set says so."""
    number = {name: at for at, name in enumerate(CHANNELS)}
    admission = np.full((len(stays), len(STATICS)), np.nan)
    where, hours, values = [], [], []
    for at, text in enumerate(stays):
        for line in text.splitlines()[1:]:
            time, name, value = line.split(",")
            value = float(value)
            if value < 0 or name == "RecordID":
                continue
            if time == "00:00" and name in STATICS:
                admission[at, STATICS.index(name)] = value
            if name in number:
                where.append(at * len(CHANNELS) + number[name])
                hours.append(int(time[:-3]) + int(time[-2:]) / 60)
                values.append(value)
    where, hours, values = np.array(where), np.array(hours), np.array(values)
    order = np.lexsort((hours, where))
    where, hours, values = where[order], hours[order], values[order]
    series, starts, count = np.unique(where, return_index=True, return_counts=True)
    total = lambda of: np.add.reduceat(of, starts)
    last = starts + count - 1
    spread = count * total(hours * hours) - total(hours) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (count * total(hours * values) - total(hours) * total(values)) / spread
    columns = [count, total(values) / count, np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts),
               values[starts], values[last], np.where(spread > 1e-6, slope, np.nan), 48 - hours[last]]
    features = np.full((len(stays) * len(CHANNELS), len(columns)), np.nan)
    features[:, 0] = 0
    features[series] = np.stack(columns, axis=1)
    return np.hstack([features.reshape(len(stays), -1), admission])


class Seizures:
    """Epileptic Seizure Recognition: pieces of recordings of one second."""

    def __init__(self, data_dir):
        name = "Epileptic Seizure Recognition.csv"
        found = [path for path in (data_dir / "esr" / name, data_dir / "esr" / f"{name}.gz") if path.is_file()]
        if not found:
            raise Missing(f"no {data_dir / 'esr' / name}: `selvedge data fetch esr` explains where to look")
        self.inputs = found[:1]
        with (gzip.open if found[0].suffix == ".gz" else open)(found[0], "rt") as file:
            rows = list(csv.reader(file))[1:]
        self.ids = [row[0] for row in rows]
        self.place = {id: at for at, id in enumerate(self.ids)}
        # "X15.Z087": the 15th piece of the recording Z087.
        self.groups = np.array([id.split(".")[-1] for id in self.ids])
        self.label = np.array([int(row[-1]) - 1 for row in rows], dtype=float)
        signal = np.array([row[1:-1] for row in rows], dtype=float)
        half = signal.shape[1] // 2
        self.features = np.hstack([shape(signal[:, :half]), shape(signal[:, half:]), shape(signal)])

    def truth(self, _):
        return self.label


def shape(signal):
    """The logarithm of the power at each frequency, and what a signal looks like."""
    centred = signal - signal.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1) + 1e-9
    steps = np.diff(signal, axis=1)
    crossings = (centred[:, 1:] * centred[:, :-1] < 0).mean(axis=1)
    moments = [np.mean((centred / deviation[:, None]) ** power, axis=1) for power in (3, 4)]
    power = np.log(np.abs(np.fft.rfft(centred * np.hanning(signal.shape[1]), axis=1)) ** 2 + 1)
    return np.column_stack([power, signal.mean(axis=1), deviation, signal.min(axis=1), signal.max(axis=1),
                            np.abs(steps).mean(axis=1), steps.std(axis=1), np.abs(steps).max(axis=1), crossings, *moments])
