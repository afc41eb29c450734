"""Whole trainings side by side: sampling, steps, accounting, ledger and evaluation, by the clock.

training.py --geodp PATH --ours PATH [--epochs 1] [--prefix CMD]   runs all and prints a table
training.py --opacus [--physical 256]                              one training by Opacus; used by the above

The paper's CNN on 60,000 images of 28×28 with 10,000 to evaluate on, B = 1024, σ = 1, C = 0.1. Ours is the
program that people run, from its start to its end, with everything it writes. Opacus is its PrivacyEngine
with Poisson sampling on tensors that are in memory when the clock starts, so that its imports and the
making of its data cost it nothing.
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import network
from compare import HERE, TUNED, absolute, cpu_name

RECORDS, TEST, BATCH = 60_000, 10_000, 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--geodp", type=absolute, help="our command line program")
    parser.add_argument("--ours", type=absolute, help="our throughput program, for the steps alone")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--long", type=int, default=10, help="epochs of ours for whole training / its steps alone")
    parser.add_argument("--prefix", default="", help="a command to put before every measurement")
    parser.add_argument("--opacus", action="store_true")
    parser.add_argument("--physical", type=int, default=0, help="largest physical batch of Opacus")
    options = parser.parse_args()
    if options.opacus:
        print(json.dumps({"seconds": opacus(options.epochs, options.physical)}))
        return
    ours, long = (by_ours(options, epochs) for epochs in (options.epochs, options.long))
    steps = options.long * RECORDS / samples_per_second(options)
    theirs = {physical: by_opacus(options, physical) for physical in (0, 256)}
    best = min(theirs.values())
    print(f"{cpu_name()}, {os.cpu_count()} cores; CNN, B = {BATCH}, {options.epochs} epochs of {RECORDS:,} records\n")
    print("| whole training | seconds | theirs / ours |\n|---|---:|---:|")
    print(f"| geodp train | {ours:.2f} | |")
    for physical, seconds in theirs.items():
        how = f"physical batches of {physical}" if physical else "as it comes"
        print(f"| Opacus, {how} | {seconds:.2f} | {seconds / ours:.2f}× |")
    print(f"\nTheirs at its best / ours: {best / ours:.2f}. "
          f"Ours, {options.long} epochs: {long:.2f} s; its steps alone {steps:.2f} s; ratio {long / steps:.3f}.")


def run(options, command, environment=None):
    command = shlex.split(options.prefix) + [str(part) for part in command]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **(environment or {})}, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return seconds, done.stdout


def by_ours(options, epochs):
    with tempfile.TemporaryDirectory() as folder:
        return run(options, [options.geodp, "train", "--data", "mnist", "--model", "cnn", "--batch", BATCH,
                             "--epochs", epochs, "--noise-multiplier", 1, "--clip-norm", 0.1,
                             "--out", pathlib.Path(folder) / "run"])[0]


def samples_per_second(options):
    model = HERE / "models" / "cnn.toml"
    _, said = run(options, [options.ours, "--model", model, "--batch", BATCH, "--private", "--seconds", 5])
    return json.loads(said)["samples_per_second"]


def by_opacus(options, physical):
    command = [sys.executable, "-W", "ignore", __file__, "--opacus", "--epochs", options.epochs, "--physical", physical]
    return json.loads(run(options, command, TUNED)[1].strip().splitlines()[-1])["seconds"]


def opacus(epochs, physical):
    import contextlib

    import torch
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    import torch_peers

    plan = network.load(HERE / "models" / "cnn.toml")
    torch.manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(RECORDS, *plan.inputs), torch.randint(10, (RECORDS,)))
    test = torch.randn(TEST, *plan.inputs), torch.randint(10, (TEST,))
    net, criterion = torch_peers.module(plan), torch.nn.CrossEntropyLoss()
    start = time.perf_counter()
    optimizer = torch.optim.SGD(net.parameters(), lr=torch_peers.LEARNING_RATE)
    engine = PrivacyEngine()
    net, optimizer, loader = engine.make_private(
        module=net, optimizer=optimizer, data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH),
        noise_multiplier=torch_peers.NOISE_MULTIPLIER, max_grad_norm=torch_peers.CLIP_NORM)
    for _ in range(epochs):
        parts = BatchMemoryManager(data_loader=loader, max_physical_batch_size=physical, optimizer=optimizer) \
            if physical else contextlib.nullcontext(loader)
        with parts as batches:
            for x, y in batches:
                optimizer.zero_grad()
                criterion(net(x), y).backward()
                optimizer.step()
    engine.get_epsilon(1e-5)
    with torch.no_grad():
        sum((net(x).argmax(1) == y).sum().item() for x, y in zip(test[0].split(BATCH), test[1].split(BATCH)))
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
