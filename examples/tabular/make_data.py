#!/usr/bin/env python3
"""Makes loans.csv and new.csv: invented loan applications, the same on every machine.

Whether a loan defaults depends on income, debt, age, housing and a little chance, so that a linear
model gets most of it right and a small network a bit more. Usage: make_data.py
"""
import csv
import math
import random

random.seed(20240501)
HOUSING = ["rent", "own", "mortgage", "family"]
PURPOSES = ["car", "home", "study", "business", "other"]
COLUMNS = ["age", "income", "debt", "years_employed", "housing", "purpose"]


def application():
    age = random.randint(18, 80)
    income = round(random.lognormvariate(10.4, 0.5), 2)
    debt = round(income * random.betavariate(1.5, 3), 2)
    years_employed = random.randint(0, max(0, min(40, age - 18)))
    housing = random.choices(HOUSING, [4, 3, 4, 1])[0]
    purpose = random.choices(PURPOSES, [4, 3, 2, 2, 1])[0]
    risk = (
        -2.2
        + 5.0 * debt / income
        - 0.00003 * (income - 33000)
        - 0.05 * years_employed
        + {"rent": 0.4, "own": -0.8, "mortgage": -0.2, "family": 0.2}[housing]
        + (0.9 if purpose == "business" and years_employed < 5 else 0.0)
    )
    defaulted = random.random() < 1 / (1 + math.exp(-2.0 * risk))
    return [age, income, debt, years_employed, housing, purpose], "yes" if defaulted else "no"


with open("loans.csv", "w", newline="") as file:
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(COLUMNS + ["defaulted"])
    for _ in range(12000):
        features, label = application()
        rows.writerow(features + [label])

with open("new.csv", "w", newline="") as file:
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(COLUMNS)
    for _ in range(10):
        rows.writerow(application()[0])
