"""What the federations here train on: images, how a model sees them, whose they are.

Every client's process loads what it needs itself and keeps it: nothing of it travels with a message.
"""

import argparse
import functools
import gzip
import pathlib

import numpy as np
import numpy.typing as npt
from geodp import data
from geodp.federated import LocalNetwork, deal

Images = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]


@functools.cache
def images(name: str) -> tuple[Images, Images]:
    """("mnist", or a folder with four IDX files): training and test images, and their labels."""
    if name == "mnist":
        train, test = data.mnist()
        return (_standard(train[0]), train[1]), (_standard(test[0]), test[1])
    folder = pathlib.Path(name)
    return _part(folder, "train"), _part(folder, "t10k")


def _standard(pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """MNIST as its CNNs are trained: with its usual, published mean and deviation."""
    return ((pixels - np.float32(0.1307)) / np.float32(0.3081)).astype(np.float32)


def _part(folder: pathlib.Path, name: str) -> Images:
    pixels = gzip.decompress((folder / f"{name}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{name}-labels-idx1-ubyte.gz").read_bytes())[8:]
    shaped = np.frombuffer(pixels, np.uint8).reshape(-1, 28, 28).astype(np.float32) / np.float32(255)
    return shaped, np.frombuffer(labels, np.uint8).astype(np.int64)


@functools.cache
def network(model: str) -> LocalNetwork:
    """A linear model on pixels or on scattering features (39,700 parameters), or the CNN (21,840)."""
    if model == "cnn":
        return LocalNetwork.cnn()
    return LocalNetwork.logistic(784 if model == "linear" else 3969, 10)


def seen_by(model: str, pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Images as rows that the model takes."""
    return data.scattering(pixels) if model == "scattering" else pixels.reshape(len(pixels), 784)


@functools.cache
def shards(name: str, clients: int, split: str, seed: int) -> npt.NDArray[np.int64]:
    """Whose each training image is: as many to each client, at random or by Dirichlet(0.3)."""
    (_, labels), _ = images(name)
    return deal(labels, clients, alpha=None if split == "iid" else 0.3, seed=seed)


@functools.lru_cache(maxsize=2000)
def records(name: str, model: str, clients: int, split: str, seed: int, place: int) -> Images:
    """The records of the client at a place, as the model takes them."""
    (pixels, labels), _ = images(name)
    rows = shards(name, clients, split, seed)[place]
    return seen_by(model, pixels[rows]), labels[rows]


def learning_rate(model: str) -> float:
    """Of the clients."""
    return 0.05 if model == "scattering" else 0.1


def arguments(description: str | None) -> argparse.ArgumentParser:
    """What all scripts here ask."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", default="mnist", help='"mnist", or a folder with four IDX files')
    parser.add_argument("--model", default="scattering", choices=["linear", "scattering", "cnn"])
    parser.add_argument("--split", default="iid", choices=["iid", "dirichlet"])
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--delta", type=float, default=1e-4)
    return parser
