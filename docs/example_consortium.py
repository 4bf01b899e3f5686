"""Writes the tables of a made-up hospital and its two gateways, for docs/consortium.md: each where its holder keeps it.

    python3 example_consortium.py labs.csv vitals-0.csv vitals-1.csv

The hospital knows 160 patients, the gateways carry the wearables of 150 of them and of 12 whom it does not know; two are with
both gateways by mistake, and one is in the hospital's table twice. Who is ill has a higher lactate and a faster heart.
"""

import csv
import random
import sys

random.seed(11)
labs_file, *vitals_files = sys.argv[1:]
known = [f"P{number:04}" for number in range(160)]
ill = {patient: random.random() < 0.4 for patient in known}
with open(labs_file, "w", newline="") as file:
    labs = csv.writer(file)
    labs.writerow(["patient", "age", "sex", "lactate", "ill"])
    for patient in known + known[:1]:
        lactate = round(random.gauss(1.7 if ill[patient] else 1.4, 0.4), 2)
        row = [patient, random.randint(30, 80), random.choice("fm"), lactate, "yes" if ill[patient] else "no"]
        labs.writerow(row)
carried = known[:150] + [f"X{number:04}" for number in range(12)]
shares = [carried[:80] + carried[-2:], carried[78:-2]]
for name, patients in zip(vitals_files, shares):
    with open(name, "w", newline="") as file:
        vitals = csv.writer(file)
        vitals.writerow(["patient", "hour", "variable", "value"])
        for patient in patients:
            for hour in range(6):
                fast = ill.get(patient, False)
                vitals.writerow([patient, hour, "hr", round(random.gauss(79 if fast else 75, 8))])
                if random.random() < 0.3:
                    vitals.writerow([patient, hour + 0.5, "spo2", round(random.gauss(95 if fast else 97, 1.5))])
