"""Compares `geodp predict` with onnxruntime: onnx_check.py MODEL.onnx INPUT PREDICTIONS.csv [LIMIT]

INPUT is an .npy file for a graph with one input, else a .csv file with a column for each input.
Exits with 1 if a probability differs by more than LIMIT (1e-5 if absent) or a class is another.
"""
import csv
import sys

import numpy as np
import onnxruntime

model, source, predictions = sys.argv[1:4]
limit = float(sys.argv[4]) if len(sys.argv) > 4 else 1e-5
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
inputs = session.get_inputs()
if source.endswith(".npy"):
    array = np.load(source)
    feed = {inputs[0].name: array.reshape([len(array)] + [d for d in inputs[0].shape[1:]])}
else:
    rows = list(csv.DictReader(open(source)))

    def column(value):
        cells = [row[value.name] for row in rows]
        if value.type == "tensor(string)":
            return np.array(cells, dtype=object).reshape(-1, 1)
        return np.array([float(c) if c else np.nan for c in cells]).reshape(-1, 1)

    feed = {value.name: column(value) for value in inputs}
expected = list(csv.reader(open(predictions)))
outputs = [output.name for output in session.get_outputs()]
if "probabilities" not in outputs:
    # A number, in its own unit: the difference is a share of its size.
    (values,) = session.run(outputs, feed)
    place = expected[0].index(outputs[0])
    wanted = np.array([float(row[place]) for row in expected[1:]])
    difference = (np.abs(values[:, 0] - wanted) / np.maximum(1, np.abs(wanted))).max()
    assert difference <= limit, difference
    print(f"{len(wanted)} rows, largest relative difference {difference:.1e}")
    sys.exit()
probabilities, classes = session.run(["probabilities", "class"], feed)
first = expected[0].index("class")
rows = expected[1:]
assert len(rows) == len(probabilities), (len(rows), len(probabilities))
wanted = np.array([[float(p) for p in row[first + 1 :]] for row in rows])
difference = np.abs(wanted - probabilities).max()
assert difference <= limit, difference
sure = np.sort(wanted, axis=1)[:, -1] - np.sort(wanted, axis=1)[:, -2] > 10 * limit
assert all(a == row[first] for a, row, s in zip(classes, rows, sure) if s)
print(f"{len(rows)} rows, largest difference {difference:.1e}")
