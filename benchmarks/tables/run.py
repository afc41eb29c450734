"""How fast a CSV table becomes a matrix, and with how much memory: geodp, polars and pandas in one run.

    cargo build --release -p geodp-data --example load_table
    pip install polars pandas numpy
    python3 benchmarks/tables/run.py [--rows 5000000] [--repeats 3]

One made table: 30 numeric columns of a few digits and a label; its first 100,000 rows are repeated. Each program reads it on one core into a matrix of
float32 (geodp also clamps, scales and counts by a schema), in a process of its own; programs take turns, and the
median of the turns is reported. Seconds are those of the processor, so that other programs count for little, without
the start of Python. MB are 10^6 bytes of CSV; memory is the most that the process held, as a multiple of the matrix.
"""
import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

COLUMNS = 30
BLOCK = 100_000
HERE = pathlib.Path(__file__).resolve().parents[2]


def write(folder, rows):
    """The table and its schema; the same for the same number of rows."""
    table, schema = folder / "table.csv", folder / "schema.toml"
    draw = np.random.default_rng(7)
    names = [f"c{at}" for at in range(COLUMNS)]
    with open(table, "w") as out:
        out.write(",".join(names) + ",y\n")
        parts = []
        for at in range(COLUMNS):
            values = draw.integers(0, 10_000, BLOCK)
            parts.append((values if at % 2 else np.char.mod("%.3f", values / 1000)).astype(str))
        parts.append(draw.choice(["no", "yes"], BLOCK))
        block = [",".join(row) + "\n" for row in zip(*parts)]
        for start in range(0, rows, BLOCK):
            out.writelines(block[: rows - start])
    text = '[label]\ncolumn = "y"\nclasses = ["no", "yes"]\n'
    for at, name in enumerate(names):
        text += f'[[feature]]\ncolumn = "{name}"\nrange = [0, {10000 if at % 2 else 10}]\n'
    schema.write_text(text)
    return table, schema


def polars(table):
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars as pl
    frame = pl.read_csv(table)
    return frame.select(pl.exclude("y").cast(pl.Float32)).to_numpy()


def pandas(table):
    import pandas as pd
    types = {f"c{at}": np.float32 for at in range(COLUMNS)} | {"y": "category"}
    return pd.read_csv(table, dtype=types).drop(columns="y").to_numpy()


def child(which, table):
    """Reads the table as a process of its own; prints seconds and the most memory held."""
    readers = {"polars": polars, "pandas": pandas}
    __import__(which)
    start = time.process_time()
    matrix = readers[which](table)
    seconds = time.process_time() - start
    assert matrix.dtype == np.float32 and matrix.shape[1] == COLUMNS
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def one_core():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def measure(which, table, schema):
    if which == "geodp":
        program = HERE / os.environ.get("CARGO_TARGET_DIR", "target") / "release/examples/load_table"
        command = [program, table, schema]
    else:
        command = [sys.executable, __file__, "--child", which, table]
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=one_core, env=environment)
    answer = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, f"{which} ends with {status}"
    if which == "geodp":
        return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    seconds, peak = answer.split()[-2:]
    return float(seconds), float(peak)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=5_000_000)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--folder", help="where the table is, or is to be made and kept")
    arguments.add_argument("--child", nargs=2)
    given = arguments.parse_args()
    if given.child:
        return child(*given.child)
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(given.folder or made)
        table, schema = folder / "table.csv", folder / "schema.toml"
        if not table.exists():
            write(folder, given.rows)
        megabytes = table.stat().st_size / 1e6
        matrix = given.rows * COLUMNS * 4
        found = {which: [] for which in ("geodp", "polars", "pandas")}
        for _ in range(given.repeats):
            for which, turns in found.items():
                turns.append(measure(which, table, schema))
        print(f"{given.rows} rows x {COLUMNS} columns, {megabytes:.0f} MB, one core, medians of {given.repeats}")
        base = statistics.median(seconds for seconds, _ in found["geodp"])
        for which, turns in found.items():
            seconds = statistics.median(seconds for seconds, _ in turns)
            peak = max(peak for _, peak in turns)
            print(f"{which:7} {megabytes / seconds:6.0f} MB/s  {seconds:6.2f} s  geodp takes {base / seconds:.2f} "
                  f"of its time  memory {peak / matrix:.2f} x the matrix")


if __name__ == "__main__":
    main()
