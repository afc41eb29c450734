"""Checks that a safetensors file of ours loads into PyTorch and computes what we compute.

check_weights.py WEIGHTS.safetensors MODEL INPUTS.npy LOGITS [--tolerance 1e-4]

MODEL is a name in models/ or a TOML description of a network; INPUTS.npy holds the inputs as the
network gets them (after scaling); LOGITS is .npy or .csv (one row a record) with our outputs before the
softmax or sigmoid.
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
    parser.add_argument("logits", type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the largest logit's size")
    options = parser.parse_args()

    bundled = pathlib.Path(__file__).resolve().parent / "models" / f"{options.model}.toml"
    plan = network.load(bundled if bundled.exists() else options.model)
    net = torch_peers.module(plan)
    # Strict: a missing, an unknown or a wrongly shaped tensor is an error.
    net.load_state_dict(load_file(options.weights), strict=True)
    net.eval()
    inputs = torch.from_numpy(np.load(options.inputs).astype(np.float32))
    with torch.no_grad():
        theirs = net(inputs.reshape(-1, *plan.inputs)).numpy()
    ours = np.load(options.logits) if options.logits.suffix == ".npy" else np.loadtxt(options.logits, delimiter=",", ndmin=2)
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
