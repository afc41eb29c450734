"""``account.epsilon`` beside dp-accounting over the golden rows, in one run on one machine.

    pip install . dp-accounting
    python benchmarks/python/accounting.py [--every 1]

Each row from a fresh accountant on both sides, so that building the distribution, composing and solving
for ε all count; dp-accounting's PLDAccountant as it comes. One unmeasured call first on each side. The number
is the median over rows of their seconds / ours. The bar is 50.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import dp_accounting
from dp_accounting.pld import PLDAccountant

from geodp import account

GOLDEN = Path(__file__).parents[2] / "crates/geodp-account/tests/golden/dp_accounting.json"
KEYS = ("sample_rate", "noise_multiplier", "steps", "delta")


def ours(sample_rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    return account.epsilon(
        sample_rate=sample_rate, noise_multiplier=noise_multiplier, steps=steps, delta=delta
    ).upper


def theirs(sample_rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    accountant = PLDAccountant()
    gaussian = dp_accounting.GaussianDpEvent(noise_multiplier)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(sample_rate, gaussian), steps)
    return float(accountant.get_epsilon(delta))


def timed(epsilon: Callable[..., float], row: dict[str, float]) -> tuple[float, float]:
    began = time.perf_counter()
    found = epsilon(**row)
    return found, time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take every n-th row")
    asked = parser.parse_args()
    rows = json.loads(GOLDEN.read_text())["sets"][:: asked.every]
    rows = [{key: row[key] for key in KEYS} for row in rows]
    for side in (ours, theirs):
        side(**rows[0])
    ratios, beyond = [], 0
    for row in rows:
        mine, my_seconds = timed(ours, row)
        other, their_seconds = timed(theirs, row)
        ratios.append(their_seconds / my_seconds)
        beyond += mine > other * (1 + 1e-3)
    ratio = statistics.median(ratios)
    quartiles = statistics.quantiles(ratios, n=4)
    print(f"{len(rows)} rows: theirs / ours median {ratio:.0f}, quartiles {quartiles[0]:.0f} … {quartiles[2]:.0f}, least {min(ratios):.1f}")
    print(f"rows where our upper end exceeds their bound by more than 0.1 %: {beyond}")
    print(f"bar 50: {'holds' if ratio >= 50 else 'DOES NOT HOLD'}")
    return int(ratio < 50)


if __name__ == "__main__":
    sys.exit(main())
