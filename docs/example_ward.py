"""Writes ward.csv: 260 made-up stays of 200 patients in two hospitals, for the book's page on your own table.

One row is one stay. Laboratory values belong to the hospital, what a watch counted to the patient; "NA" was not measured.
"""

import csv
import random

random.seed(3)
columns = ["stay", "patient", "site", "use", "age", "sex", "lab_lactate", "lab_crp", "watch_pulse", "watch_steps", "readmitted"]
with open("ward.csv", "w", newline="") as file:
    ward = csv.writer(file)
    ward.writerow(columns)
    stays = 0
    for patient in range(200):
        ill = random.random() < 0.45
        site, sex, age = random.choice(["north", "south"]), random.choice("fm"), random.randint(30, 85)
        use = random.choice(["train"] * 7 + ["validation"] + ["test"] * 2)
        for _ in range(random.choice([1, 1, 2])):
            lactate = round(random.gauss(1.9 if ill else 1.5, 0.4), 2)
            crp = "NA" if random.random() < 0.3 else round(random.gauss(36 if ill else 26, 12))
            pulse, steps = round(random.gauss(81 if ill else 75, 8)), round(random.gauss(3900 if ill else 4900, 1200))
            label = "yes" if ill else "no"
            ward.writerow([f"s{stays:03}", f"p{patient:03}", site, use, age, sex, lactate, crp, pulse, steps, label])
            stays += 1
