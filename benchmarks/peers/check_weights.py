"""Checks that a safetensors file of ours loads into PyTorch and computes what we compute.

    geodp predict RUN INPUTS.npy --out OURS.csv
    check_weights.py RUN/model.safetensors MODEL INPUTS.npy OURS.csv [--mean M --std S]

MODEL is a name in models/ or a TOML description of a network. INPUTS.npy holds the records: floats as
the network gets them, or bytes, which are read as (p/255 - mean)/std. OURS is what `geodp predict`
wrote (class probabilities), or a .npy or headless .csv of outputs before the softmax or sigmoid.
"""
import argparse
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import load_file

import network
import torch_peers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("model")
    parser.add_argument("inputs", type=pathlib.Path)
    parser.add_argument("ours", type=pathlib.Path)
    parser.add_argument("--mean", type=float, default=0.1307, help="of byte inputs / 255 (MNIST's)")
    parser.add_argument("--std", type=float, default=0.3081, help="of byte inputs / 255 (MNIST's)")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="of the largest output's size")
    options = parser.parse_args()

    bundled = pathlib.Path(__file__).resolve().parent / "models" / f"{options.model}.toml"
    plan = network.load(bundled if bundled.exists() else options.model)
    net = torch_peers.module(plan)
    # Strict: a missing, an unknown or a wrongly shaped tensor is an error.
    net.load_state_dict(load_file(options.weights), strict=True)
    net.eval()
    records = np.load(options.inputs)
    if records.dtype == np.uint8:
        records = (records / 255.0 - options.mean) / options.std
    inputs = torch.from_numpy(records.astype(np.float32))
    with torch.no_grad():
        theirs = net(inputs.reshape(-1, *plan.inputs))
    if options.ours.suffix == ".npy":
        ours = np.load(options.ours)
    elif options.ours.read_text().startswith("row,class,"):
        rows = [line.split(",") for line in options.ours.read_text().splitlines()[1:]]
        ours = np.array([[float(value) for value in row[-(len(row) - 2):]] for row in rows])
        theirs = theirs.softmax(1) if theirs.shape[1] > 1 else torch.cat([1 - theirs.sigmoid(), theirs.sigmoid()], 1)
    else:
        ours = np.loadtxt(options.ours, delimiter=",", ndmin=2)
    theirs = theirs.numpy()
    ours = ours.reshape(theirs.shape)
    difference = float(np.abs(ours - theirs).max())
    size = max(1e-12, float(np.abs(theirs).max()))
    chosen = lambda logits: logits[:, 0] > 0 if logits.shape[1] == 1 else logits.argmax(1)
    agree = float((chosen(ours) == chosen(theirs)).mean())
    print(f"{len(theirs)} records, {sum(value.numel() for value in net.state_dict().values())} parameters: "
          f"largest difference {difference:.3g} of {size:.3g}, same class for {100 * agree:.2f} %")
    return 0 if np.isfinite(difference) and difference <= options.tolerance * size else 1


if __name__ == "__main__":
    sys.exit(main())
