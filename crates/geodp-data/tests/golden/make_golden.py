"""Fingerprints and parted-off records of tests/dataset.rs, computed without the crate.

Usage: python3 make_golden.py
"""
import hashlib
import struct


def digest(purpose, *fields):
    """SHA-256 over fields, each after its length."""
    made = hashlib.sha256()
    for data in (purpose, *fields):
        made.update(struct.pack("<Q", len(data)) + data)
    return made.digest()


def fingerprint(classes, shape, preprocessing, inputs, labels):
    """Of fewer than 4,097 records: every record is a block."""
    def number(value):
        return struct.pack("<Q", value)

    sizes = [number(size) for size in shape]
    names = [name.encode() for name in classes]
    head = digest(b"geodp head 2", *names, *sizes, preprocessing.encode(), number(len(inputs)))
    blocks = [digest(b"geodp block 2", data, number(label)) for data, label in zip(inputs, labels)]
    return digest(b"geodp dataset 2", head, *blocks).hex()


bytes_set = [bytes([0, 1, 2, 3]), bytes([4, 5, 6, 7]), bytes([8, 9, 250, 255])]
print("bytes ", fingerprint(["a", "b"], (1, 2, 2), "unit", bytes_set, [0, 1, 1]))
floats = [struct.pack("<2f", 0.5, -1.0), struct.pack("<2f", 3.25, 0.0)]
print("floats", fingerprint(["0", "1", "2"], (2, 1, 1), "as stored", floats, [2, 0]))


def parted_off(count, part, seed):
    """SplitMix64, Lemire's bounded numbers, Fisher-Yates from the end; the first `part`, sorted."""
    mask, state = 2**64 - 1, seed

    def draw(bound):
        nonlocal state
        while True:
            state = (state + 0x9E3779B97F4A7C15) & mask
            mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
            mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
            product = (mixed ^ (mixed >> 31)) * bound
            if product & mask >= 2**64 % bound:
                return product >> 64

    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = draw(last + 1)
        order[last], order[other] = order[other], order[last]
    return sorted(order[:part])


print("parted", parted_off(12, 4, 7))
