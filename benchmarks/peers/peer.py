"""Times one peer on one piece of work and prints one line of JSON.

peer.py --peer opacus-hooks --model cnn --batch 1024 --seconds 3 [--channels-last] [--microbatch 256]
"""
import argparse
import json
import pathlib
import time

import network

TORCH = ("torch", "opacus-hooks", "opacus-ghost", "torch-vmap")
JAX = ("jax", "jax-privacy", "jax-vmap")


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
    times, start = [], time.perf_counter()
    while len(times) < 2 or sum(times) < options.seconds:
        step()
        now = time.perf_counter()
        times.append(now - start)
        start = now
    print(json.dumps({
        "peer": options.peer, "model": options.model, "batch": options.batch, "dim": plan.parameters(),
        "steps": len(times), "samples_per_second": len(times) * options.batch / sum(times),
        "best_step": options.batch / min(times)}))


if __name__ == "__main__":
    main()
