"""How near the defaults of tables are to the best of a small grid, in accuracy and in log loss.

    pip install '.[sklearn]' statsmodels pyreadr
    python3 benchmarks/tables/defaults.py --kernlab FOLDER [--cells cells.json] [--model mlp] [--only wine digits]

FOLDER has spam.rda, ticdata.rda, income.rda and musk.rda of R's package kernlab; without it these tables are left out.
Each table is split several times into three quarters for training and one for measuring. On each split, at ε = 1, 3, 8,
DPClassifier trains with every option left at its default, and with the default C and travel (η·C) times 0.3, 1 and 3:
nine combinations, of which the default is the middle one. The best of the grid is the best by the mean over splits, for
accuracy and for log loss apart. The gap to it is a mean of paired differences; beside it stands their standard error.
"Apart" is the same gap with the best chosen on one half of the splits and measured on the other: a best that only noise
made best is not met again there.

Every training is a cell in one JSON file, so a run that was stopped goes on. By the times of single trainings all cells take about
a quarter of an hour of one core.
"""
import argparse
import json
import os
import pathlib
import tempfile
import tomllib
import warnings

os.environ.setdefault("RAYON_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import tables  # noqa: E402

EPSILONS = (1.0, 3.0, 8.0)
FACTORS = (0.3, 1.0, 3.0)
# How often a table is split: small ones often, since so few records measure little.
SPLITS = {"wine": 20, "breast_cancer": 30, "musk": 40, "anes96": 30, "digits": 6, "spam": 5, "fair": 5, "income": 4,
          "ticdata": 4, "randhie": 4, "made": 2}
# Weights are released; a model that is sure of a wrong class may cost this much a record.
LEAST_PROBABILITY = 1e-7


def split(inputs, labels, seed):
    order = np.random.default_rng([16, seed]).permutation(len(inputs))
    test, train = order[: len(inputs) // 4], order[len(inputs) // 4 :]
    return inputs[train], labels[train], inputs[test], labels[test]


def scores(probabilities, labels):
    """Accuracy and log loss."""
    of_truth = np.maximum(probabilities[np.arange(len(labels)), labels], LEAST_PROBABILITY)
    return [float((probabilities.argmax(axis=1) == labels).mean()), float(-np.log(of_truth).mean())]


def private(parts, classes, epsilon, seed, hidden, settings):
    """The scores of one training, and the C and η that it had."""
    from geodp.sklearn import DPClassifier
    train, labels, test, truth = parts
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        run = pathlib.Path(folder) / "run"
        model = DPClassifier(epsilon=epsilon, classes=range(classes), feature_range=(-1, 1), hidden=hidden,
                             random_state=seed, folder=str(run), **settings)
        model.fit(train, labels)
        config = tomllib.loads((run / "run.toml").read_text())
    return scores(model.predict_proba(test), truth), config["privacy"]["clip_norm"], config["train"]["learning_rate"]


def public(parts):
    """The scores of scikit-learn's logistic regression, which promises nothing."""
    from sklearn.linear_model import LogisticRegression
    train, labels, test, truth = parts
    return scores(LogisticRegression(max_iter=2000).fit(train, labels).predict_proba(test), truth)


def fill(name, data, cells, keep, hidden, splits):
    """Trains what is missing of a table."""
    inputs, labels, classes = data
    for seed in splits:
        parts = split(inputs, labels, seed)
        if (key := f"{name}/public/{seed}") not in cells:
            cells[key] = public(parts)
        for epsilon in EPSILONS:
            def cell(clip, travel, **settings):
                key = f"{name}/{epsilon}/{clip}/{travel}/{seed}"
                if key not in cells:
                    cells[key] = private(parts, classes, epsilon, seed, hidden, settings)
                    keep()
                return cells[key]

            _, clip_norm, rate = cell(1.0, 1.0)
            for clip in FACTORS:
                for travel in FACTORS:
                    cell(clip, travel, clip_norm=clip * clip_norm, learning_rate=travel * rate / clip)


def gaps(values):
    """Of values by combination and split, less being better: mean of the default and of the best, the gap with its
    standard error, and the gap with the best chosen on other splits."""
    means = values.mean(axis=1)
    best, default = means.argmin(), len(means) // 2
    apart = []
    for half in (slice(0, None, 2), slice(1, None, 2)):
        other = slice(1, None, 2) if half.start == 0 else slice(0, None, 2)
        chosen = values[:, half].mean(axis=1).argmin()
        apart.extend(values[default, other] - values[chosen, other])
    differences = values[default] - values[best]
    error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else float("nan")
    return means[default], means[best], differences.mean(), error, float(np.mean(apart)), best


def table_of(name, records, cells, splits):
    """Lines of the table's page: accuracy in %, log loss and its gap in % of the best."""
    combinations = [(clip, travel) for clip in FACTORS for travel in FACTORS]
    lines = []
    for epsilon in EPSILONS:
        grid = np.array([[cells[f"{name}/{epsilon}/{clip}/{travel}/{seed}"][0] for seed in splits]
                         for clip, travel in combinations])
        plain = np.mean([cells[f"{name}/public/{seed}"] for seed in splits], axis=0)
        miss, least, gap, error, apart, hit = gaps(1 - grid[:, :, 0])
        loss, low, more, spread, more_apart, calm = gaps(grid[:, :, 1])
        holds = gap <= 0.01 and more <= 0.1 * low
        where = ["×".join(str(part) for part in combinations[best]) for best in (hit, calm)]
        lines.append(
            f"| {name} ({records}) | {epsilon:g} | {100 * (1 - miss):.1f} | {100 * (1 - least):.1f} | {100 * gap:.1f} ± "
            f"{100 * error:.1f} | {100 * apart:.1f} | {100 * plain[0]:.1f} | {loss:.3f} | {low:.3f} | "
            f"{100 * more / low:.0f} ± {100 * spread / low:.0f} % | {100 * more_apart / low:.0f} % | {plain[1]:.3f} | "
            f"{where[0]}, {where[1]} | {'yes' if holds else 'NO'} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernlab", help="folder with kernlab's .rda files")
    parser.add_argument("--cells", default="defaults.json", type=pathlib.Path, help="where trainings are kept")
    parser.add_argument("--model", choices=["logistic", "mlp"], default="logistic")
    parser.add_argument("--only", nargs="+", choices=sorted(SPLITS), help="these tables")
    parser.add_argument("--first", type=int, default=500, help="number of the first split; on those from 500 no rule was chosen")
    parser.add_argument("--splits", type=int, help="this many splits of every table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = json.loads(given.cells.read_text()) if given.cells.exists() else {}

    def keep():
        beside = given.cells.with_suffix(".new")
        beside.write_text(json.dumps(cells))
        beside.replace(given.cells)

    print("| table (N) | ε | accuracy | best | gap | apart | scikit-learn | log loss | best | gap | apart | scikit-learn "
          "| best C × travel | holds |\n|" + "---|" * 14)
    for name, count in SPLITS.items():
        if (given.only and name not in given.only) or (name in tables.KERNLAB and not given.kernlab):
            continue
        data = tables.load(name, given.kernlab)
        splits = range(given.first, given.first + (given.splits or count))
        fill(name, data, cells, keep, [64] if given.model == "mlp" else [], splits)
        keep()
        print("\n".join(table_of(name, len(data[0]) - len(data[0]) // 4, cells, splits)), flush=True)


if __name__ == "__main__":
    main()
