"""One table in both formats, for tests/parquet.rs and tests/shares.rs: table.csv by pandas, table_<codec>.parquet by pyarrow.

Columns of every type that is read, with missing cells, in row groups of 50 and small pages, so that
batches, groups and pages end at different rows. The names, contents and order are fixed by the seed.

Usage: pip install pandas pyarrow; python3 make_parquet.py
"""
import datetime
import decimal
import pathlib
import random

import pyarrow as pa
import pyarrow.parquet as pq

rows, draw = 173, random.Random(7)
here = pathlib.Path(__file__).parent / "parquet"
here.mkdir(exist_ok=True)


def sometimes(value):
    return None if draw.random() < 0.1 else value


columns = {
    "patient": pa.array([draw.randrange(40) for _ in range(rows)], pa.int64()),
    "age": pa.array([sometimes(draw.randrange(-5, 130)) for _ in range(rows)], pa.int32()),
    "byte": pa.array([draw.randrange(256) for _ in range(rows)], pa.uint8()),
    "large": pa.array([draw.randrange(2**40) for _ in range(rows)], pa.uint64()),
    "weight": pa.array([sometimes(draw.uniform(0, 150)) for _ in range(rows)], pa.float64()),
    "single": pa.array([sometimes(draw.uniform(-1, 2)) for _ in range(rows)], pa.float32()),
    "price": pa.array([decimal.Decimal(draw.randrange(100000)) / 100 for _ in range(rows)], pa.decimal128(9, 2)),
    "ward": pa.array([sometimes(draw.choice(["A", "B", "C", "NA", " B "])) for _ in range(rows)], pa.string()),
    "grade": pa.array([draw.choice([1, 2, 3]) for _ in range(rows)], pa.int16()),
    "smoker": pa.array([sometimes(draw.random() < 0.3) for _ in range(rows)], pa.bool_()),
    "admitted": pa.array([sometimes(datetime.date(2000, 1, 1) + datetime.timedelta(draw.randrange(9000))) for _ in range(rows)], pa.date32()),
    "seen": pa.array([datetime.datetime(2010, 1, 1) + datetime.timedelta(milliseconds=draw.randrange(10**11)) for _ in range(rows)], pa.timestamp("ms")),
    "outcome": pa.array([draw.choice(["well", "ill"]) for _ in range(rows)], pa.string()),
    "cost": pa.array([draw.uniform(-10, 1010) for _ in range(rows)], pa.float64()),
}
# Decimals are stored as integers here, as Spark and DuckDB do; pyarrow keeps them as bytes otherwise.
table = pa.table(columns)
for codec in ["none", "snappy", "gzip", "zstd"]:
    version = "2.0" if codec == "zstd" else "1.0"
    pq.write_table(
        table, here / f"table_{codec}.parquet", compression=codec, row_group_size=50, data_page_size=200,
        data_page_version=version, use_dictionary=codec != "none", store_decimal_as_integer=True,
    )

frame = table.to_pandas()
frame.to_csv(here / "table.csv", index=False)
nested = pa.table({"x": pa.array([1.0, 2.0]), "list": pa.array([[1], [2, 3]]), "y": pa.array(["a", "b"])})
pq.write_table(nested, here / "nested.parquet")

# Longer than what is decoded at once, in two row groups; tests/shares.rs knows how it is made.
long = pa.table({
    "patient": pa.array([row * 13 % 3001 for row in range(10_000)], pa.int64()),
    "x": pa.array([None if row % 11 == 0 else row % 101 / 4 for row in range(10_000)], pa.float64()),
    "y": pa.array(["well" if row % 3 else "ill" for row in range(10_000)], pa.string()),
})
pq.write_table(long, here / "long.parquet", row_group_size=6_000, compression="gzip")
