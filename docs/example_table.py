"""Writes hospital.csv and wearable.csv: 300 made-up patients of three hospitals, for the README's tour of your own table.

Who is ill has a higher lactate at the hospital and a faster heart on the wearable; neither alone tells for sure.
"""

import csv
import random

random.seed(7)
with open("hospital.csv", "w", newline="") as hospital, open("wearable.csv", "w", newline="") as wearable:
    hospital, wearable = csv.writer(hospital), csv.writer(wearable)
    hospital.writerow(["patient", "site", "age", "sex", "lactate", "ill"])
    wearable.writerow(["patient", "hour", "variable", "value"])
    for patient in range(300):
        ill = random.random() < 0.4
        site = random.choice(["north", "south", "west"])
        lactate = round(random.gauss(2.0 if ill else 1.4, 0.4), 2)
        sex = random.choice("fm")
        hospital.writerow([patient, site, random.randint(30, 80), sex, lactate, "yes" if ill else "no"])
        for hour in range(6):
            wearable.writerow([patient, hour, "hr", round(random.gauss(86 if ill else 75, 8))])
            if random.random() < 0.3:
                wearable.writerow([patient, hour + 0.5, "spo2", round(random.gauss(95 if ill else 97, 1.5))])
