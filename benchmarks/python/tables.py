"""Tables at one ε: accuracy and time of geodp, diffprivlib, Opacus, and scikit-learn without privacy.

    python benchmarks/python/tables.py --diffprivlib PYTHON --opacus PYTHON [--epsilon 1 3] [--seeds 3]

A side is a Python that may need an environment of its own; it is handed a table as NPZ and answers
accuracy and seconds of one training as JSON (``--side NAME FILE``). Sides that are not named are left out.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
DELTA = 1e-5


def loans() -> tuple[Any, Any]:
    rows = list(csv.DictReader(open(ROOT / "examples/tabular/loans.csv")))
    numbers = {"age": (18, 100), "income": (0, 150_000), "debt": (0, 100_000), "years_employed": (0, 50)}
    columns = [
        [2 * (float(row[name]) - low) / (high - low) - 1 for row in rows]
        for name, (low, high) in numbers.items()
    ]
    for name in ("housing", "purpose"):
        for value in sorted({row[name] for row in rows}):
            columns.append([2.0 * (row[name] == value) - 1 for row in rows])
    return np.clip(np.array(columns).T, -1, 1), np.array([int(row["defaulted"] == "yes") for row in rows])


def bundled(name: str) -> tuple[Any, Any]:
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    low, high = X.min(axis=0), X.max(axis=0)
    return 2 * (X - low) / np.where(high > low, high - low, 1) - 1, y


TABLES = {"loans": loans, "breast cancer": lambda: bundled("breast_cancer"), "digits": lambda: bundled("digits")}


# The sides. Each: training part, test part, ε, seed → accuracy, seconds of one training.


def geodp(X: Any, y: Any, X_test: Any, y_test: Any, epsilon: float, seed: int) -> tuple[float, float]:
    import warnings

    from geodp.sklearn import DPClassifier

    warnings.simplefilter("ignore")
    model = DPClassifier(
        epsilon=epsilon, delta=DELTA, classes=np.unique(y), feature_range=(-1, 1), random_state=seed
    )
    began = time.perf_counter()
    model.fit(X, y)
    return model.score(X_test, y_test), time.perf_counter() - began


def sklearn(X: Any, y: Any, X_test: Any, y_test: Any, epsilon: float, seed: int) -> tuple[float, float]:
    from sklearn.linear_model import LogisticRegression

    began = time.perf_counter()
    model = LogisticRegression(max_iter=1000).fit(X, y)
    return model.score(X_test, y_test), time.perf_counter() - began


def diffprivlib(X: Any, y: Any, X_test: Any, y_test: Any, epsilon: float, seed: int) -> tuple[float, float]:
    from diffprivlib.models import LogisticRegression

    norm = float(np.sqrt(X.shape[1]))
    began = time.perf_counter()
    model = LogisticRegression(epsilon=epsilon, data_norm=norm, random_state=seed).fit(X, y)
    return model.score(X_test, y_test), time.perf_counter() - began


def opacus(X: Any, y: Any, X_test: Any, y_test: Any, epsilon: float, seed: int) -> tuple[float, float]:
    import warnings

    import torch
    from opacus import PrivacyEngine

    warnings.simplefilter("ignore")

    def accuracy(model: Any, X: Any, y: Any) -> float:
        with torch.no_grad():
            return float((model(torch.tensor(X, dtype=torch.float32)).argmax(1).numpy() == y).mean())

    def fit(X: Any, y: Any, batch: int, epochs: int, rate: float) -> Any:
        torch.manual_seed(seed)
        model = torch.nn.Linear(X.shape[1], int(y.max()) + 1)
        data = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
        module, optimizer, loader = PrivacyEngine(accountant="prv").make_private_with_epsilon(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9),
            data_loader=torch.utils.data.DataLoader(data, batch_size=min(batch, len(X) // 2)),
            target_epsilon=epsilon,
            target_delta=DELTA,
            epochs=epochs,
            max_grad_norm=1.0,
        )
        for _ in range(epochs):
            for inputs, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(module(inputs), labels).backward()
                optimizer.step()
        return model

    held = len(X) // 5
    settings = [(b, e, r) for b in (256, 1024) for e in (20, 60) for r in (0.1, 0.5, 2.0)]
    best = max(settings, key=lambda s: accuracy(fit(X[held:], y[held:], *s), X[:held], y[:held]))
    began = time.perf_counter()
    model = fit(X, y, *best)
    return accuracy(model, X_test, y_test), time.perf_counter() - began


SIDES = {side.__name__: side for side in (geodp, sklearn, diffprivlib, opacus)}


def part(name: str, seed: int) -> dict[str, Any]:
    """Three quarters to train on, one to test on."""
    X, y = TABLES[name]()
    order = np.random.default_rng(seed).permutation(len(X))
    X, y, cut = X[order].astype(np.float64), y[order].astype(np.int64), len(X) // 4
    return {"X": X[cut:], "y": y[cut:], "X_test": X[:cut], "y_test": y[:cut]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--diffprivlib", help="Python that has it")
    parser.add_argument("--opacus", help="Python that has it")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--side", nargs=4, metavar=("NAME", "FILE", "EPSILON", "SEED"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.side:
        name, file, epsilon, seed = asked.side
        with np.load(file) as table:
            found = SIDES[name](**table, epsilon=float(epsilon), seed=int(seed))
        print(json.dumps(found))
        return
    pythons = {"geodp": sys.executable, "sklearn": sys.executable}
    pythons |= {name: getattr(asked, name) for name in ("diffprivlib", "opacus") if getattr(asked, name)}
    print(f"{'table':14} {'ε':>4}  " + "".join(f"{name + ' (seconds)':>24}" for name in pythons))
    for name in TABLES:
        for epsilon in asked.epsilon:
            row, ours = f"{name:14} {epsilon:4}  ", 0.0
            for side, python in pythons.items():
                found = [run(python, side, name, epsilon, seed) for seed in range(asked.seeds)]
                accuracy = statistics.mean(one[0] for one in found)
                seconds = statistics.median(one[1] for one in found)
                ours = ours or seconds
                row += f"{100 * accuracy:12.2f} ({seconds:6.2f}, ×{seconds / ours:5.1f})".rjust(24)
            print(row, flush=True)


def run(python: str, side: str, name: str, epsilon: float, seed: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.npz"
        np.savez(file, **part(name, seed))
        command = [python, __file__, "--side", side, str(file), str(epsilon), str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{side} on {name}: {done.stderr}")
        found: list[float] = json.loads(done.stdout.splitlines()[-1])
        return found


if __name__ == "__main__":
    main()
