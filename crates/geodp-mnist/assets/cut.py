"""Cuts train-images-idx3-ubyte.gz into members: cut.py IN OUT, and prints their lengths for src/lib.rs.

The first member has the 16 bytes of the IDX header, each of the others 5,000 images, so that as many threads
can unpack them at once. All of them together are the published file, to every program that reads gzip.
"""
import gzip
import pathlib
import sys
import zlib

HEADER, IMAGES = 16, 5000 * 28 * 28


def member(content):
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9)
    return packer.compress(content) + packer.flush()


content = gzip.decompress(pathlib.Path(sys.argv[1]).read_bytes())
parts = [content[:HEADER]] + [content[at:at + IMAGES] for at in range(HEADER, len(content), IMAGES)]
members = [member(part) for part in parts]
pathlib.Path(sys.argv[2]).write_bytes(b"".join(members))
print([len(packed) for packed in members])
