"""Training from Python: arrays or files in, a run folder out.

A run folder holds the config, a hash-chained ledger that is written before each release, checkpoints,
the model, the privacy statement and a report page. The command line and Rust make the same folders: the
same seed gives the same bits, and each can resume what another began.

Arrays are written to ``data/`` in the run folder, readable by the owner, so that a killed run can be
resumed and its records are checked against the ones it began with. They are the private records: keep
them or delete them with the folder.
"""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from geodp import _native
from geodp._arrays import Learnt, Loss, as_inputs
from geodp._progress import Progress
from geodp._statement import Statement

__all__ = ["Model", "Run", "RunWarning", "Statement", "train"]

Callback = Callable[[str, Any], None]
PathLike = str | os.PathLike[str]


class Team(Protocol):
    """Other processes, as rank 0 speaks with them: within a step in the order of these methods."""

    @property
    def size(self) -> int:
        """How many processes there are, this one with them."""

    def send(self, rank: int, request: bytes) -> None:
        """Hands a process its request."""

    def broadcast(self, weights: npt.NDArray[np.float32]) -> None:
        """Hands every process the weights that belong to its request."""

    def sum(self) -> npt.NDArray[np.int64]:
        """The sum of the other processes' sums."""

    def receive(self, rank: int) -> bytes:
        """A process's answer."""


def train(
    inputs: npt.ArrayLike | str | Mapping[str, Any] | None = None,
    labels: npt.ArrayLike | None = None,
    *,
    folder: PathLike,
    classes: int | None = None,
    target_range: tuple[float, float] | None = None,
    loss: Loss | None = None,
    units: npt.ArrayLike | None = None,
    rows_per_unit: int | None = None,
    test: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    holdout: int | None = None,
    model: str | Mapping[str, Any] | None = None,
    privacy: Mapping[str, Any] | None = None,
    train: Mapping[str, Any] | None = None,
    config: PathLike | Mapping[str, Any] | None = None,
    epsilon: float | None = None,
    seed: int | None = None,
    progress: bool = True,
    callback: Callback | None = None,
    threads: int | None = None,
    team: Team | None = None,
) -> Run:
    """Trains privately into ``folder`` and answers the finished :class:`Run`.

    ``inputs``, ``labels``
        Arrays: N × features (or images) as float32 or bytes, and N whole numbers below ``classes``,
        which is declared, never looked up. Or one of "mnist", "cifar10", or a mapping that stands for
        the config's ``[data]``.
    ``target_range``, ``loss``
        In place of ``classes``: labels are numbers in this declared range, learnt by "squared" or
        "huber" loss.
    ``units``, ``rows_per_unit``
        Whose each record is, where somebody has several: privacy is then for all of one's records
        together, of which at most ``rows_per_unit`` are used in a step.
    ``test``, ``holdout``
        Records to measure on; without either a tenth of the records is held back.
    ``model``
        A name or a mapping for ``[model]``, such as ``{"name": "mlp", "hidden": [64]}``.
    ``privacy``, ``train``, ``config``
        The config's tables, and a whole config (a TOML file or a mapping) that they complete.
    ``epsilon``, ``seed``
        Short for ``privacy={"epsilon": …}`` and ``train={"seed": …}``. A seed is for experiments:
        whoever knows it knows the noise.
    ``callback``
        Called with ("step", (step, steps)), ("block", metrics) and ("warning", text). What it raises
        stops the run after a checkpoint. Metrics are of private records: for the data's owner.
    ``team``
        Other processes that hold shares of the records, as :mod:`geodp.ray` makes them.

    Ctrl-C ends the step, writes a checkpoint and raises ``KeyboardInterrupt``; :meth:`Run.resume` goes
    on from there.
    """
    folder = Path(folder)
    whole = _merged(_read_config(config), {"privacy": privacy, "train": train})
    if model is not None:
        whole["model"] = {"name": model} if isinstance(model, str) else dict(model)
    for table, key, value in (("privacy", "epsilon", epsilon), ("train", "seed", seed)):
        if value is not None:
            whole[table] = {**whole.get(table, {}), key: value}
    if isinstance(inputs, str):
        whole["data"] = {"source": inputs}
    elif isinstance(inputs, Mapping):
        whole["data"] = dict(inputs)
    elif inputs is not None:
        if labels is None:
            raise ValueError("arrays need labels")
        if (folder / "run.toml").exists():
            raise FileExistsError(f"{folder} already holds a run; resume it, or choose another")
        learnt = Learnt.of(classes, target_range, loss, units, rows_per_unit)
        whole["data"] = learnt.write(folder / "data", inputs, labels, test)
    if holdout is not None:
        whole["data"] = {**whole.get("data", {}), "holdout": holdout}
    return _work(folder, json.dumps(whole), progress, callback, threads, team)


class RunWarning(UserWarning):
    """Something about a run that its owner should read."""


class Run:
    """A finished run folder: its model, its privacy statement, its report."""

    def __init__(self, folder: PathLike) -> None:
        self.folder = Path(folder)
        self.model = Model(self.folder)
        self.statement = Statement.read(self.folder / "statement.json")

    @classmethod
    def resume(
        cls,
        folder: PathLike,
        *,
        progress: bool = True,
        callback: Callback | None = None,
        threads: int | None = None,
        team: Team | None = None,
    ) -> Run:
        """Goes on with a run that was stopped or killed, to the same bits."""
        return _work(Path(folder), None, progress, callback, threads, team)

    def predict_proba(self, inputs: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """The probability of each class, for each record."""
        return self.model.predict_proba(inputs)

    def predict(self, inputs: npt.ArrayLike) -> npt.NDArray[Any]:
        """For each record the number of the most probable class, or the number that is learnt."""
        return self.model.predict(inputs)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """What every block looked like; of private records, for the data's owner."""
        lines = (self.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    @property
    def measured(self) -> dict[str, Any] | None:
        """What each followed record paid, where ``train={"measure": …}`` asked; for the data's owner."""
        path = self.folder / "measured.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    @property
    def report(self) -> str:
        """The report page, as HTML."""
        return (self.folder / "report.html").read_text(encoding="utf-8")

    def _repr_html_(self) -> str:
        # A page of its own inside the notebook's page: its styles must not meet the notebook's.
        page = self.report.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{page}" style="width:100%;height:640px;border:0"></iframe>'

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}: {self.statement})"


class Model:
    """The model of a finished run, on its own: it can be pickled, and needs no folder then."""

    _FILES = ("run.toml", "model.safetensors")

    def __init__(self, folder: PathLike) -> None:
        self._files = {name: (Path(folder) / name).read_bytes() for name in self._FILES}
        self._native = _native.Model.open(os.fspath(folder))

    def predict_proba(self, inputs: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """The probability of each class, for each record."""
        probabilities, _ = self._native.predict(as_inputs(inputs))
        if probabilities is None:
            raise ValueError("this model has no classes: it has learnt a number; call predict")
        return probabilities

    def predict(self, inputs: npt.ArrayLike) -> npt.NDArray[Any]:
        """For each record the number of the most probable class, or the number that is learnt."""
        probabilities, values = self._native.predict(as_inputs(inputs))
        return np.argmax(probabilities, axis=1) if probabilities is not None else np.asarray(values)

    def __getstate__(self) -> dict[str, bytes]:
        return self._files

    def __setstate__(self, files: dict[str, bytes]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                (Path(folder) / name).write_bytes(content)
            self.__init__(folder)  # type: ignore[misc]


def _work(
    folder: Path,
    config: str | None,
    progress: bool,
    callback: Callback | None,
    threads: int | None,
    team: Team | None,
) -> Run:
    bar = Progress(progress)

    def observe(kind: str, what: Any) -> None:
        if kind == "block":
            what = json.loads(what)
        if kind == "warning":
            warnings.warn(what, RunWarning, stacklevel=4)
        bar.see(kind, what)
        if callback is not None:
            callback(kind, what)

    try:
        _native.train(os.fspath(folder), config, observe, threads, team)
    finally:
        bar.close()
    return Run(folder)


def _read_config(config: PathLike | Mapping[str, Any] | None) -> dict[str, Any]:
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    with open(config, "rb") as file:
        return tomllib.load(file)


def _merged(config: dict[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    for name, table in tables.items():
        if table is not None:
            config[name] = {**config.get(name, {}), **table}
    return config
