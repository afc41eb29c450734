"""The first files of tests/corpus, small ones of every kind: pip install pyarrow pillow numpy; python3 make_corpus.py

Later files of a folder are inputs that once failed.
"""
import gzip
import io
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

here = pathlib.Path(__file__).parent


def write(kind, name, content):
    (here / kind).mkdir(exist_ok=True)
    (here / kind / name).write_bytes(content)


SCHEMA = b"""na = ["NA", -1]
[label]
column = "y"
range = [0, 5]
missing = "skip"
[unit]
column = "u"
most_rows = 3
[[feature]]
column = "a"
range = [0, 1]
missing = 0.5
[[feature]]
column = "b"
values = ["p", 7, true]
missing = "category"
[[feature]]
column = "c"
dates = ["2000-01-01", "2020-01-01"]
missing = "skip"
[[feature]]
column = "d"
boolean = true
missing = true
"""
write("schema", "a_everything.toml", SCHEMA)
write("schema", "classes.toml", b"""scale = "symmetric"
delimiter = ";"
missing = "skip"
[label]
column = "y"
classes = ["no", 1, true]
[[feature]]
column = "x"
range = [-1e3, 1e3]
""")
rows = [(0.5, "p", "2010-05-01", "true", 1, 2.5), ("", 7, "2001-02-28T10:00:00", "no", 1, 0),
        ("NA", "x", "", "", 2, 5), (3, "", "2019-12-31", "1", 3, -1)]
table = "a,b,c,d,u,y\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
quoted = 'y,u,d,c,b,a,more\r\n1,"7",f,2004-02-29,"p",1e-3,"a ""word"", or two"\r\n\r\n2,7,t,2011-11-11,7.0,0.25,\xe9\r\n'
write("csv", "plain.csv", table.encode())
write("csv", "quoted.csv", b"\xef\xbb\xbf" + quoted.encode())
write("gzip", "plain.csv.gz", gzip.compress(table.encode(), mtime=0))
write("gzip", "two_members.csv.gz", gzip.compress(table.encode(), mtime=0) + gzip.compress(b"1,p,,1,9,1\n", mtime=0))
columns = {
    "a": pa.array([0.5, None, 3.0, 0.25]), "b": pa.array(["p", "7", None, "q"]),
    "c": pa.array([14000, 15000, None, 16000], pa.int32()).cast(pa.date32()),
    "d": pa.array([True, None, False, True]), "u": pa.array([1, 1, 2, 3], pa.int64()),
    "y": pa.array([1.0, 2.0, 3.0, 4.0], pa.float32()),
}
for codec in ("none", "snappy", "gzip"):
    for version in ("1.0", "2.0"):
        out = io.BytesIO()
        pq.write_table(pa.table(columns), out, compression=codec, data_page_version=version,
                       store_schema=False, use_dictionary=["b", "u"])
        write("parquet", f"{codec}_{version[0]}.parquet", out.getvalue())
pixels = (np.arange(12 * 9 * 3) * 37 % 256).astype(np.uint8).reshape(12, 9, 3)
for name, image, more in [
    ("colour", Image.fromarray(pixels), {}), ("grey", Image.fromarray(pixels[..., 0]), {}),
    ("palette", Image.fromarray(pixels).quantize(7), {}), ("bits", Image.fromarray(pixels[..., 0]).convert("1"), {}),
    ("alpha", Image.fromarray(pixels).convert("RGBA"), {}),
]:
    out = io.BytesIO()
    image.save(out, "PNG", **more)
    write("png", f"{name}.png", out.getvalue())
for name, image, more in [
    ("colour", Image.fromarray(pixels), {"quality": 60}), ("grey", Image.fromarray(pixels[..., 0]), {}),
    ("progressive", Image.fromarray(pixels), {"progressive": True, "quality": 60}),
    ("restarts", Image.fromarray(pixels), {"restart_marker_blocks": 1, "quality": 60}),
]:
    out = io.BytesIO()
    image.save(out, "JPEG", **more)
    write("jpeg", f"{name}.jpg", out.getvalue())
for kind in ("|u1", "<f4", ">f8", "<i8", "<f2", "|b1"):
    out = io.BytesIO()
    np.save(out, np.arange(12).reshape(3, 4).astype(kind))
    write("npy", f"{kind.strip('<>|')}.npy", out.getvalue())
out = io.BytesIO()
np.save(out, np.asfortranarray(np.arange(24, dtype="<f4").reshape(2, 3, 4)))
write("npy", "fortran.npy", out.getvalue())
for code, kind in ((8, ">u1"), (9, ">i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")):
    values = np.arange(12).astype(kind).tobytes()
    write("idx", f"{code}.idx", bytes([0, 0, code, 2, 0, 0, 0, 3, 0, 0, 0, 4]) + values)


def varint(value):
    """A positive number as Thrift's compact protocol writes it."""
    left, out = 2 * value, []
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes(out + [left])


# A page of 1.6 MB of zeros in 1.6 kB, and the same announcing 134 MB: what can be, and what cannot.
numbers, announced = 200_000, 134_217_727
out = io.BytesIO()
schema = pa.schema([pa.field("u", pa.int64(), nullable=False)])
pq.write_table(pa.table({"u": pa.array([0] * numbers, pa.int64())}, schema), out, compression="gzip",
               compression_level=9, use_dictionary=False, write_statistics=False, store_schema=False,
               data_page_size=1 << 24, max_rows_per_page=1 << 20)
plain = out.getvalue()
assert plain.count(varint(8 * numbers)) >= 1 and len(varint(announced)) == len(varint(8 * numbers))
write("limits", "zeros.parquet", plain)
write("limits", "bomb.parquet", plain.replace(varint(8 * numbers), varint(announced), 1))
# Once a panic of the decoder: a text in a dictionary that is longer than the dictionary.
damaged = bytearray((here / "parquet" / "snappy_1.parquet").read_bytes())
damaged[1876799809515820559 * len(damaged) >> 64] = 10
write("parquet", "long_text.parquet", bytes(damaged))
