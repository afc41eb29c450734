"""Training from Python beside the binary: the same config, process against process, taking turns.

    python benchmarks/python/overhead.py target/release/geodp [--rounds 7] [--steps 1200]

Both sides are whole processes: interpreter, imports, unpacking MNIST, training, report. The number is the
median over rounds of Python's seconds / the binary's. The bar is 1.02. Starting Python with numpy takes 0.1 s
whatever is trained, so the training is long enough (20 s on two cores) for the ratio to be about training.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = """
[data]
source = "mnist"
[model]
name = "cnn"
[privacy]
noise_multiplier = 1.0
[train]
batch = 1024
steps = {steps}
learning_rate = 2.0
seed = 1
"""

FROM_PYTHON = """
import sys, warnings
warnings.simplefilter("ignore")
import geodp
geodp.train(config=sys.argv[1], folder=sys.argv[2], progress=False)
"""


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=1200)
    asked = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "run.toml"
        config.write_text(CONFIG.format(steps=asked.steps))
        for turn in range(asked.rounds):
            runs = [Path(folder) / f"{side}{turn}" for side in ("python", "binary")]
            commands = [
                [sys.executable, "-c", FROM_PYTHON, str(config), str(runs[0])],
                [str(asked.binary), "train", "--config", str(config), "--out", str(runs[1])],
            ]
            # Whoever goes second finds a warmer machine: they take turns.
            order = (0, 1) if turn % 2 == 0 else (1, 0)
            took = [0.0, 0.0]
            for side in order:
                took[side] = seconds(commands[side])
            weights = [(run / "model.safetensors").read_bytes() for run in runs]
            assert weights[0] == weights[1], "the two sides made other bits"
            ratios.append(took[0] / took[1])
            print(f"python {took[0]:7.2f} s   binary {took[1]:7.2f} s   ratio {ratios[-1]:.4f}", flush=True)
    ratio = statistics.median(ratios)
    print(f"median ratio {ratio:.4f}, bar 1.02: {'holds' if ratio <= 1.02 else 'DOES NOT HOLD'}")
    return int(ratio > 1.02)


if __name__ == "__main__":
    sys.exit(main())
