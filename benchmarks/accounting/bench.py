"""PLD epsilon side by side with dp-accounting, in one run on one machine.

    cargo build --release -p geodp-account --example time_rows
    pip install dp-accounting
    python benchmarks/accounting/bench.py

Each row: median of several repetitions, each from a fresh accountant, so that
building the distribution, composing it and solving for epsilon all count on
both sides (dp-accounting's PLDAccountant as it comes: interval 1e-4).
"""

import json
import pathlib
import statistics
import subprocess
import time

import dp_accounting
from dp_accounting.pld import PLDAccountant

ROWS = [
    (0.04, 1.5, 2250, 1e-5),
    (0.01, 1.0, 1000, 1e-5),
    (0.005, 0.8, 1000, 1e-6),
    (256 / 60000, 1.1, 14062, 1e-5),
    (0.1, 3.0, 512, 1e-6),
    (0.01, 0.5, 200, 1e-5),
    (0.02, 2.0, 5000, 1e-5),
    (0.5, 10.0, 100, 1e-6),
    (0.001, 0.6, 20000, 1e-6),
    (0.001, 1.0, 1_000_000, 1e-6),
    (0.001, 2.0, 1_000_000, 1e-6),
]
REPETITIONS = 3


def theirs(q, sigma, steps, delta):
    seconds = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        accountant = PLDAccountant()
        gaussian = dp_accounting.GaussianDpEvent(sigma)
        accountant.compose(dp_accounting.PoissonSampledDpEvent(q, gaussian), steps)
        epsilon = accountant.get_epsilon(delta)
        seconds.append(time.perf_counter() - start)
    return epsilon, statistics.median(seconds)


def ours():
    root = pathlib.Path(__file__).resolve().parents[2]
    lines = "".join(" ".join(map(str, row)) + "\n" for row in ROWS)
    binary = root / "target/release/examples/time_rows"
    output = subprocess.run([binary], input=lines, text=True, capture_output=True, check=True)
    return [json.loads(line) for line in output.stdout.splitlines()]


def main():
    ratios = []
    print(f"{'q':>9} {'sigma':>5} {'steps':>8} {'delta':>6} {'theirs':>9} {'ours [lower, upper]':>22} {'s':>7} {'ms':>8} {'ratio':>6}")
    for row, result in zip(ROWS, ours()):
        epsilon, seconds = theirs(*row)
        bracket, mine = result["epsilon"], result["seconds"]
        ratios.append(seconds / mine)
        q, sigma, steps, delta = row
        print(f"{q:9.6f} {sigma:5.2f} {steps:8d} {delta:6.0e} {epsilon:9.5f} "
              f"[{bracket['lower']:9.5f}, {bracket['upper']:9.5f}] {seconds:7.3f} {1e3 * mine:8.2f} {ratios[-1]:6.0f}")
    print(f"ratio: least {min(ratios):.0f}, median {statistics.median(ratios):.0f}")


main()
