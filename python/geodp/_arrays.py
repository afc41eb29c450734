"""Arrays as files of a run folder: its ``[data]``.

Records with classes become NPY files. Where a number is learnt, or a unit has several records, they become
a table with a schema, which says both: one way into a run, whatever it is given.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self

import numpy as np
import numpy.typing as npt

Loss = Literal["squared", "huber"]
Pair = tuple[npt.ArrayLike, npt.ArrayLike]


@dataclass(frozen=True)
class Learnt:
    """What is learnt of records, and whose they are."""

    classes: int | None
    target_range: tuple[float, float] | None
    loss: Loss
    units: npt.NDArray[Any] | None
    rows_per_unit: int | None

    @classmethod
    def of(
        cls,
        classes: int | None,
        target_range: tuple[float, float] | None,
        loss: Loss | None,
        units: npt.ArrayLike | None,
        rows_per_unit: int | None,
    ) -> Self:
        """Checks what belongs together."""
        if (classes is None) == (target_range is None):
            raise ValueError(
                "arrays need classes, the declared number of classes, or target_range, the declared "
                "(lowest, highest) of numbers to learn"
            )
        if loss is not None and target_range is None:
            raise ValueError("loss belongs to numbers to learn: give target_range")
        if (units is None) != (rows_per_unit is None):
            raise ValueError("units and rows_per_unit belong together: give both or neither")
        whose = None if units is None else np.asarray(units).ravel()
        return cls(classes, target_range, loss or "squared", whose, rows_per_unit)

    def write(
        self, folder: Path, inputs: npt.ArrayLike, labels: npt.ArrayLike, test: Pair | None
    ) -> dict[str, Any]:
        """Keeps the records in ``folder`` and answers the config's ``[data]``."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        parts = {"train": (as_inputs(inputs), self._as_labels(labels))}
        if test is not None:
            parts["test"] = (as_inputs(test[0]), self._as_labels(test[1]))
        if self.target_range is None and self.units is None:
            return self._write_arrays(folder, parts)
        return self._write_table(folder, parts)

    def _write_arrays(self, folder: Path, parts: dict[str, Any]) -> dict[str, Any]:
        table: dict[str, Any] = {"source": "arrays", "classes": self.classes}
        for part, arrays in parts.items():
            for kind, array in zip(("inputs", "labels"), arrays, strict=True):
                path = folder / f"{part}_{kind}.npy"
                with _private(path) as file:
                    np.save(file, array)
                table[f"{part}_{kind}"] = str(path.absolute())
        return table

    def _write_table(self, folder: Path, parts: dict[str, Any]) -> dict[str, Any]:
        table: dict[str, Any] = {"source": "table"}
        columns = 0
        for part, (inputs, labels) in parts.items():
            if inputs.ndim != 2 or inputs.dtype != np.float32 or abs(inputs).max(initial=0) > 1:
                raise ValueError("inputs must be N × features within [−1, 1], scaled by public ranges")
            columns = inputs.shape[1]
            whose = self._numbers_of_units(part, len(inputs))
            path = folder / f"{part}.csv"
            rows = [inputs.astype(np.float64), labels.astype(np.float64)]
            heading, exact = [f"x{i}" for i in range(columns)], ["%.9g"] * columns
            heading, exact = [*heading, "label"], [*exact, "%.17g"]
            if self.units is not None:
                rows, heading, exact = [*rows, whose], [*heading, "unit"], [*exact, "%d"]
            with _private(path) as file:
                head = ",".join(heading)
                table_rows = np.column_stack(rows)
                np.savetxt(file, table_rows, fmt=exact, delimiter=",", header=head, comments="")
            table[part] = str(path.absolute())
        schema = folder / "schema.toml"
        with _private(schema) as file:
            file.write(self._schema(columns).encode())
        return {**table, "schema": str(schema.absolute())}

    def _schema(self, columns: int) -> str:
        lines = ['scale = "symmetric"', "[label]", 'column = "label"']
        if self.target_range is None:
            lines.append(f"classes = {[str(label) for label in range(self.classes or 0)]}")
        else:
            low, high = (float(end) for end in self.target_range)
            lines += [f"range = [{low!r}, {high!r}]", f'loss = "{self.loss}"']
        if self.units is not None:
            lines += ["[unit]", 'column = "unit"', f"most_rows = {self.rows_per_unit}"]
        for index in range(columns):
            lines += ["[[feature]]", f'column = "x{index}"', "range = [-1, 1]"]
        return "\n".join(lines) + "\n"

    def _numbers_of_units(self, part: str, records: int) -> npt.NDArray[np.int64]:
        """A number for each record's unit; what a unit was called is not kept. Test records are alone."""
        if self.units is None or part == "test":
            return np.arange(records)
        if len(self.units) != records:
            raise ValueError(f"{len(self.units)} units for {records} records")
        return np.unique(self.units, return_inverse=True)[1].astype(np.int64)

    def _as_labels(self, labels: npt.ArrayLike) -> npt.NDArray[Any]:
        array = np.asarray(labels)
        if self.target_range is not None:
            return np.ascontiguousarray(array, dtype=np.float64)
        if array.dtype.kind not in "iub":
            raise TypeError(f"labels are {array.dtype}; give whole numbers below classes")
        return np.ascontiguousarray(array, dtype=np.int64)


def as_inputs(inputs: npt.ArrayLike) -> npt.NDArray[Any]:
    """Inputs as Rust takes them: bytes, or single precision."""
    array = np.asarray(inputs)
    kept = array.dtype if array.dtype == np.uint8 else np.dtype(np.float32)
    return np.ascontiguousarray(array, dtype=kept)


def _private(path: Path) -> IO[bytes]:
    """A new file that only its owner can read."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
