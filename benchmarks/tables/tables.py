"""Tables that nobody here tuned for, as scikit-learn, statsmodels and R's kernlab carry them, and a made one.

Each has declared ranges: round numbers that somebody who knows the columns could say without the records. Values are
clamped to them and brought to [-1, 1] by the estimator; a category is a column of its own in {-1, 1}.
"""
import pathlib
import re

import numpy as np

KERNLAB = ("spam", "ticdata", "income", "musk")


def one_hot(column, categories):
    return np.stack([np.where(column == category, 1.0, -1.0) for category in categories], axis=1)


def from_ranges(frame, ranges):
    """The named columns brought from their declared ranges to [-1, 1]."""
    columns = []
    for name, (low, high) in ranges.items():
        columns.append(2 * (np.clip(frame[name], low, high) - low) / (high - low) - 1)
    return np.stack(columns, axis=1)


def fair():
    import statsmodels.api as sm
    frame = sm.datasets.fair.load_pandas().data
    ranges = {"rate_marriage": (1, 5), "age": (17, 45), "yrs_married": (0, 25), "children": (0, 6), "religious": (1, 4),
              "educ": (9, 20)}
    jobs = [one_hot(frame[name].to_numpy(), range(1, 7)) for name in ("occupation", "occupation_husb")]
    return np.hstack([from_ranges(frame, ranges), *jobs]), (frame["affairs"] > 0).to_numpy(int), 2


def randhie():
    import statsmodels.api as sm
    frame = sm.datasets.randhie.load_pandas().data
    ranges = {"lncoins": (0, 5), "idp": (0, 1), "lpi": (0, 8), "fmde": (0, 9), "physlm": (0, 1), "disea": (0, 60),
              "hlthg": (0, 1), "hlthf": (0, 1), "hlthp": (0, 1)}
    return from_ranges(frame, ranges), (frame["mdvis"] > 2).to_numpy(int), 2


def anes96():
    import statsmodels.api as sm
    frame = sm.datasets.anes96.load_pandas().data
    ranges = {"logpopul": (-3, 9), "TVnews": (0, 7), "selfLR": (1, 7), "ClinLR": (1, 7), "DoleLR": (1, 7), "PID": (0, 6),
              "age": (18, 100), "educ": (1, 7), "income": (1, 24)}
    return from_ranges(frame, ranges), frame["vote"].to_numpy(int), 2


def breast_cancer():
    from sklearn.datasets import load_breast_cancer
    data = load_breast_cancer()
    mean = [(5, 30), (5, 40), (40, 200), (100, 2500), (0, 0.2), (0, 0.4), (0, 0.5), (0, 0.2), (0, 0.4), (0, 0.1)]
    error = [(0, 3), (0, 5), (0, 20), (0, 500), (0, 0.03), (0, 0.15), (0, 0.4), (0, 0.05), (0, 0.1), (0, 0.03)]
    worst = [(5, 40), (5, 50), (40, 250), (100, 4000), (0, 0.3), (0, 1), (0, 1.5), (0, 0.3), (0, 0.7), (0, 0.2)]
    names = range(len(data.feature_names))
    return from_ranges(data.data.T, dict(zip(names, mean + error + worst))), data.target, 2


def digits():
    from sklearn.datasets import load_digits
    data = load_digits()
    return data.data / 8 - 1, data.target, 10


def wine():
    from sklearn.datasets import load_wine
    data = load_wine()
    ranges = [(10, 15), (0, 6), (1, 4), (10, 30), (50, 200), (0, 4), (0, 6), (0, 1), (0, 4), (0, 15), (0, 2), (1, 4), (200, 1800)]
    return from_ranges(data.data.T, dict(enumerate(ranges))), data.target, 3


def spam(folder):
    frame = rda(folder, "spam")
    ranges = {name: (0, 2) for name in frame.columns[:-1]}
    ranges |= {"capitalAve": (0, 10), "capitalLong": (0, 100), "capitalTotal": (0, 1000)}
    return from_ranges(frame, ranges), (frame["type"] == "spam").to_numpy(int), 2


def ticdata(folder):
    """Who has a caravan policy: 6 % of the customers. Classes of an order count from 0."""
    frame = rda(folder, "ticdata")
    columns = [one_hot(frame["MOSHOOFD"].to_numpy(), frame["MOSHOOFD"].cat.categories)]
    for name in frame.columns.drop(["STYPE", "MOSHOOFD", "CARAVAN"]):
        column = frame[name]
        if column.dtype.name == "category":
            columns.append(2 * column.cat.codes.to_numpy()[:, None] / (len(column.cat.categories) - 1) - 1)
        else:
            columns.append(from_ranges(frame, {name: (0, 10 if name.startswith("M") else 3)}))
    return np.hstack(columns), (frame["CARAVAN"] == "insurance").to_numpy(int), 2


def income(folder):
    """Who earns 30,000 or more, by what a questionnaire asks; no answer is an answer."""
    frame = rda(folder, "income")
    earns = frame["INCOME"].astype(str).str.contains(re.escape("[30") + r"|\[40|\[50|\[75")
    columns = [one_hot(frame[name].to_numpy(), frame[name].cat.categories) for name in frame.columns.drop("INCOME")]
    return np.hstack(columns), earns.to_numpy(int), 2


def musk(folder):
    frame = rda(folder, "musk")
    inputs = frame.drop(columns="Class").to_numpy()
    return np.clip(inputs / 300, -1, 1), (frame["Class"] == "1").to_numpy(int), 2


def rda(folder, name):
    import pyreadr
    return next(iter(pyreadr.read_r(str(pathlib.Path(folder) / f"{name}.rda")).values()))


def made(rows=1_000_000):
    """An invented register: 12 numbers, some skewed, and a category of 8; 12 % are positive, with an interaction."""
    draw = np.random.default_rng(16)
    skewed = np.clip(draw.exponential(0.25, (rows, 6)), 0, 1) * 2 - 1
    even = draw.uniform(-1, 1, (rows, 6))
    kind = draw.choice(8, rows, p=[0.4, 0.2, 0.15, 0.1, 0.05, 0.05, 0.03, 0.02])
    effect = np.linspace(-1, 1.5, 8)[kind]
    logit = 1.2 * skewed[:, :3].sum(axis=1) + 2 * even[:, 0] - even[:, 1] + 0.5 * even[:, 2] * even[:, 3] + effect - 0.8
    inputs = np.hstack([skewed, even, one_hot(kind, range(8))])
    return inputs, (draw.uniform(size=rows) < 1 / (1 + np.exp(-logit))).astype(int), 2


def load(name, kernlab):
    """Inputs in [-1, 1], classes as numbers, and how many classes there are."""
    inputs, labels, classes = globals()[name](kernlab) if name in KERNLAB else globals()[name]()
    return np.ascontiguousarray(inputs, dtype=np.float32), np.asarray(labels), classes
