"""Times one peer on one piece of work and prints one line of JSON.

peer.py --peer opacus-hooks --model cnn --batch 1024 --seconds 3 [--channels-last] [--microbatch 256]
"""
import argparse
import json
import os
import pathlib
import time

import network

TORCH = ("torch", "opacus-hooks", "opacus-ghost", "torch-vmap")
JAX = ("jax", "jax-privacy", "jax-vmap")


def busy_seconds():
    """CPU seconds since boot of the whole machine, and of this process; None where nobody tells."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, *_ = (int(ticks) for ticks in file.readline().split()[1:])
    except OSError:
        return None
    own = os.times()
    return (user + nice + system) / os.sysconf("SC_CLK_TCK"), own.user + own.system


def others_share(before, after, elapsed):
    """How much of the machine other programs used meanwhile: above a few per cent, measure again.
    PyTorch's threads wait for each other at every layer, so a neighbour on one core stops both."""
    if before is None or after is None:
        return None
    others = (after[0] - before[0]) - (after[1] - before[1])
    return max(0.0, others) / (elapsed * os.cpu_count())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=TORCH + JAX, required=True)
    parser.add_argument("--model", required=True, help="name of a file in models/")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--microbatch", type=int, default=0)
    options = parser.parse_args()

    plan = network.load(pathlib.Path(__file__).parent / "models" / f"{options.model}.toml")
    if options.peer in TORCH:
        import torch_peers as side
    else:
        import jax_peers as side
    step = side.make(options.peer, plan, options.batch, options.channels_last, options.microbatch)
    for _ in range(2):
        step()
    busy_before = busy_seconds()
    times, start = [], time.perf_counter()
    while len(times) < 2 or sum(times) < options.seconds:
        step()
        now = time.perf_counter()
        times.append(now - start)
        start = now
    print(json.dumps({
        "peer": options.peer, "model": options.model, "batch": options.batch, "dim": plan.parameters(),
        "steps": len(times), "samples_per_second": len(times) * options.batch / sum(times),
        "best_step": options.batch / min(times),
        "others": others_share(busy_before, busy_seconds(), sum(times))}))


if __name__ == "__main__":
    main()
