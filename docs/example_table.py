"""Writes hospital.csv and wearable.csv: 300 made-up patients of three hospitals, for docs/own-table.md;
and new_hospital.csv and new_wearable.csv: ten more, of whom nobody knows yet whether they are ill.

Who is ill has a higher lactate at the hospital and a faster heart on the wearable; neither alone tells for sure.
"""

import csv
import random

random.seed(7)


def write(prefix, patients, known):
    with open(f"{prefix}hospital.csv", "w", newline="") as hospital, open(f"{prefix}wearable.csv", "w", newline="") as wearable:
        hospital, wearable = csv.writer(hospital), csv.writer(wearable)
        hospital.writerow(["patient", "site", "age", "sex", "lactate"] + ["ill"] * known)
        wearable.writerow(["patient", "hour", "variable", "value"])
        for patient in patients:
            ill = random.random() < 0.4
            site = random.choice(["north", "south", "west"])
            lactate = round(random.gauss(2.0 if ill else 1.4, 0.4), 2)
            sex = random.choice("fm")
            row = [patient, site, random.randint(30, 80), sex, lactate]
            hospital.writerow(row + ["yes" if ill else "no"] * known)
            for hour in range(6):
                wearable.writerow([patient, hour, "hr", round(random.gauss(86 if ill else 75, 8))])
                if random.random() < 0.3:
                    wearable.writerow([patient, hour + 0.5, "spo2", round(random.gauss(95 if ill else 97, 1.5))])


write("", range(300), True)
write("new_", range(300, 310), False)
