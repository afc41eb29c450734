"""How time and memory of a private step grow with the model (d), the batch (B) and the data (N).

    cargo build --release -p geodp-cli -p geodp --bin geodp --example throughput
    python3 benchmarks/scale/run.py [--work d batch rows] [--most-rows 100000000] [--folder /tmp/scale]

- d: MLPs of two equal hidden layers on 30 columns, batches of 256, by the example `throughput`.
- batch: an MLP of one hidden layer of 64 on 30 columns, by the same.
- rows: the same MLP by `geodp train` on two NPY files (30 columns of bytes, a label), batches of 1,024, which are
  written to a folder and removed.

Steps are in exact arithmetic, on one thread. Seconds of a step are the least: of single steps for d and batch, and for rows
of blocks of 50 steps by the run's own clock, which starts after the files are read. (Two trainings of different length do
not tell: reading 3 GB varies by more than a thousand steps take.) `run` is the processor's seconds of the whole training of
1,000 steps, right after its files were written: reading, hashing, steps, accounting. Memory is the most that the process
held. Writes `scale.csv`, `scale.svg` and the table of `README.md`.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COLUMNS = 30
FIELDS = ["work", "size", "dim", "batch", "rows", "step_seconds", "run_seconds", "peak_mib"]
HIDDEN = [300, 980, 3145, 7053]
BATCHES = [2**at for at in range(8, 21, 2)]
ROWS = [10**at for at in range(4, 9)]
STEPS = 1000
BLOCK = 50


def mlp(hidden):
    """A model file: linear layers with ReLU between them, two classes."""
    layers = []
    for outputs in hidden:
        layers += [f'[[layers]]\ntype = "linear"\noutputs = {outputs}\n', '[[layers]]\ntype = "relu"\n']
    layers.append('[[layers]]\ntype = "linear"\noutputs = 2\n')
    return f"input = [{COLUMNS}]\nloss = \"softmax_cross_entropy\"\n" + "".join(layers)


def throughput(program, folder, hidden, batch, seconds):
    model = folder / "model.toml"
    model.write_text(mlp(hidden))
    command = [program, "--model", model, "--batch", str(batch), "--private", "--threads", "1"]
    out = subprocess.run([*command, "--seconds", str(seconds)], check=True, capture_output=True, text=True)
    told = json.loads(out.stdout)
    return told["dim"], batch / told["best_step"], told["peak_memory_mib"]


def write_npy(path, shape, block):
    """A file of bytes of this shape, made of one block over and over."""
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (63 - (len(text) + 10) % 64) + "\n"
    left = math.prod(shape)
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
        while left > 0:
            out.write(block[:left])
            left -= len(block)


def train(program, folder):
    """Least seconds of a step, seconds of the processor for all, and most MiB of a training."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    (folder / "config.toml").write_text(
        f'[data]\nsource = "arrays"\ntrain_inputs = "{folder}/x.npy"\ntrain_labels = "{folder}/y.npy"\n'
        f'test_inputs = "{folder}/tx.npy"\ntest_labels = "{folder}/ty.npy"\nclasses = 2\n'
        '[model]\nname = "mlp"\nhidden = [64]\n'
        "[privacy]\nnoise_multiplier = 1.0\n"
        f"[train]\nbatch = 1024\nsteps = {STEPS}\nlearning_rate = 0.1\ncheckpoint_every = {BLOCK}\n"
    )
    command = [program, "train", "--config", folder / "config.toml", "--out", run, "--threads", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"geodp train ended with {status}")
    before, steps = 0, []
    for line in (run / "metrics.jsonl").open():
        block = json.loads(line)
        steps.append(block["seconds"] / (block["step"] - before))
        before = block["step"]
    return min(steps), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure_rows(program, folder, rows):
    draw = random.Random(7)
    lines = 1 << 16
    inputs = draw.randbytes(COLUMNS * lines)
    labels = bytes(int(inputs[COLUMNS * at] > inputs[COLUMNS * at + 1]) for at in range(lines))
    for name, count in (("x", rows), ("tx", 1000)):
        write_npy(folder / f"{name}.npy", (count, COLUMNS), inputs)
    for name, count in (("y", rows), ("ty", 1000)):
        write_npy(folder / f"{name}.npy", (count,), labels)
    step, whole, peak = train(program, folder)
    for name in ("x", "y"):
        (folder / f"{name}.npy").unlink()
    return step, whole, peak


def measure(options):
    folder = pathlib.Path(tempfile.mkdtemp(dir=options.folder))
    found = []
    try:
        if "d" in options.work:
            for hidden in HIDDEN:
                dim, step, peak = throughput(options.throughput, folder, [hidden, hidden], 256, options.seconds)
                found.append(dict(work="d", size=dim, dim=dim, batch=256, step_seconds=step, peak_mib=peak))
        if "batch" in options.work:
            for batch in BATCHES:
                dim, step, peak = throughput(options.throughput, folder, [64], batch, options.seconds)
                found.append(dict(work="batch", size=batch, dim=dim, batch=batch, step_seconds=step, peak_mib=peak))
        if "rows" in options.work:
            for rows in [rows for rows in ROWS if rows <= options.most_rows]:
                step, whole, peak = measure_rows(options.geodp, folder, rows)
                row = dict(work="rows", size=rows, dim=2114, batch=1024, rows=rows, step_seconds=step)
                found.append(dict(row, run_seconds=whole, peak_mib=peak))
    finally:
        shutil.rmtree(folder)
    return [{name: f"{v:.4g}" if isinstance(v := row.get(name, ""), float) else str(v) for name in FIELDS} for row in found]


PANELS = [("d", "parameters d, batches of 256"), ("batch", "batch B, 2,114 parameters"), ("rows", "rows N, batches of 1,024")]
KINDS = [("step_seconds", "seconds a step"), ("peak_mib", "most memory, MiB")]


def figure(rows):
    """Six small charts on logarithmic axes, and beside each line what growth in proportion would be."""
    width, height, left, top = 230, 150, 60, 30
    parts = []

    def text(x, y, what, more=""):
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {more}>{what}</text>')

    for column, (work, name) in enumerate(PANELS):
        for row, (field, axis) in enumerate(KINDS):
            points = [(float(r["size"]), float(r[field])) for r in rows if r["work"] == work]
            if not points:
                continue
            x0, y0 = left + column * (width + left), top + row * (height + 50)
            ends = []
            for values in zip(*points):
                low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
                ends.append((low, max(high, low + 1)))
            place = lambda x, y: (
                x0 + (math.log10(x) - ends[0][0]) / (ends[0][1] - ends[0][0]) * width,
                y0 + height - (math.log10(y) - ends[1][0]) / (ends[1][1] - ends[1][0]) * height,
            )
            parts.append(f'<rect x="{x0}" y="{y0}" width="{width}" height="{height}" fill="none" stroke="#999"/>')
            for power in range(ends[0][0], ends[0][1] + 1):
                x, _ = place(10**power, 10 ** ends[1][0])
                text(x, y0 + height + 14, f'10<tspan dy="-4" font-size="8">{power}</tspan>', 'text-anchor="middle"')
            for power in range(ends[1][0], ends[1][1] + 1):
                _, y = place(10 ** ends[0][0], 10**power)
                text(x0 - 4, y + 4, f'10<tspan dy="-4" font-size="8">{power}</tspan>', 'text-anchor="end"')
            # Growth in proportion, down from the largest point.
            (x, y), least = points[-1], max(10 ** ends[0][0], points[-1][0] / points[-1][1] * 10 ** ends[1][0])
            (ax, ay), (bx, by) = place(least, y * least / x), place(x, y)
            parts.append(f'<path d="M{ax:.1f} {ay:.1f}L{bx:.1f} {by:.1f}" stroke="#bbb" stroke-dasharray="4 3"/>')
            line = "L".join("{:.1f} {:.1f}".format(*place(*point)) for point in points)
            parts.append(f'<path d="M{line}" fill="none" stroke="#1f6fb4" stroke-width="2"/>')
            for point in points:
                parts.append('<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="#1f6fb4"/>'.format(*place(*point)))
            text(x0, y0 - 8, axis if row else f"{axis}: {name}", 'font-weight="600"')
    size = (left + 3 * (width + left) - 30, top + 2 * (height + 50) - 10)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" font-family="sans-serif" font-size="11">'
        f'<title>Seconds and memory of a private step</title><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def table(rows):
    lines = ["| grows | d | B | N | seconds a step | run, s | most MiB |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        number = lambda name: f"{int(r[name]):,}" if r[name] else "–"
        line = [r["work"], number("dim"), number("batch"), number("rows"), r["step_seconds"], r["run_seconds"] or "–", r["peak_mib"]]
        lines.append("| " + " | ".join(line) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", nargs="*", default=["d", "batch", "rows"], choices=["d", "batch", "rows"])
    parser.add_argument("--most-rows", type=int, default=ROWS[-1])
    parser.add_argument("--seconds", type=float, default=8.0, help="length of one measurement of d and batch")
    parser.add_argument("--folder", help="where files are written and removed; 3.2 GB for 100,000,000 rows")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--geodp", default=target / "geodp")
    parser.add_argument("--throughput", default=target / "examples" / "throughput")
    options = parser.parse_args()
    file = HERE / "scale.csv"
    kept = list(csv.DictReader(file.open())) if file.exists() else []
    rows = [row for row in kept if row["work"] not in options.work] + measure(options)
    rows.sort(key=lambda row: (["d", "batch", "rows"].index(row["work"]), float(row["size"])))
    with open(file, "w", newline="") as out:
        writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (HERE / "scale.svg").write_text(figure(rows))
    readme = HERE / "README.md"
    before, _, rest = readme.read_text().partition("<!-- table -->\n")
    _, _, after = rest.partition("<!-- end -->")
    readme.write_text(f"{before}<!-- table -->\n{table(rows)}\n<!-- end -->{after}")


if __name__ == "__main__":
    main()
