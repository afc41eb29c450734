"""Training from Python beside the binary: the same config, process against process, at the same time.

    python benchmarks/python/overhead.py target/release/geodp [--rounds 6] [--steps 600]

Both sides are whole processes: interpreter, imports, unpacking MNIST, training, report. In a round both run at once,
each with one thread on a core of its own, and in the next they change cores: what slows the machine for a while slows
both, where sides that take turns differed by ten per cent of either sign. The number is the median over pairs of
rounds of Python's seconds / the binary's (the geometric mean of a pair, so that a slower core counts for both). The
bar is 1.02. Starting Python with numpy takes 0.1 s whatever is trained, so the training is long enough (20 s) for the
ratio to be about training. Needs Linux and two cores.
"""

from __future__ import annotations

import argparse
import math
import os
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


def together(commands: list[list[str]], cores: list[int]) -> list[float]:
    """Seconds of each command, all at once, each alone on its core."""
    began = time.perf_counter()
    alone = os.environ | {"RAYON_NUM_THREADS": "1"}
    running = {}
    for side, (command, core) in enumerate(zip(commands, cores, strict=True)):
        pinned = ["taskset", "--cpu-list", str(core), *command]
        started = subprocess.Popen(pinned, env=alone, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        running[started.pid] = side
    took = [0.0] * len(commands)
    while running:
        pid, status = os.wait()
        took[running.pop(pid)] = time.perf_counter() - began
        if status:
            sys.exit(f"a training failed: {commands}")
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--rounds", type=int, default=6, help="an even number")
    parser.add_argument("--steps", type=int, default=600)
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "run.toml"
        config.write_text(CONFIG.format(steps=asked.steps))
        for turn in range(asked.rounds):
            runs = [Path(folder) / f"{side}{turn}" for side in ("python", "binary")]
            commands = [
                [sys.executable, "-c", FROM_PYTHON, str(config), str(runs[0])],
                [str(asked.binary), "train", "--config", str(config), "--out", str(runs[1])],
            ]
            took = together(commands, cores if turn % 2 == 0 else cores[::-1])
            weights = [(run / "model.safetensors").read_bytes() for run in runs]
            assert weights[0] == weights[1], "the two sides made other bits"
            ratios.append(took[0] / took[1])
            print(f"python {took[0]:7.2f} s   binary {took[1]:7.2f} s   ratio {ratios[-1]:.4f}", flush=True)
    pairs = [math.sqrt(one * other) for one, other in zip(ratios[::2], ratios[1::2], strict=True)]
    ratio = statistics.median(pairs)
    print(f"median ratio {ratio:.4f}, bar 1.02: {'holds' if ratio <= 1.02 else 'DOES NOT HOLD'}")
    return int(ratio > 1.02)


if __name__ == "__main__":
    sys.exit(main())
