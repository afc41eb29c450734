"""Training over a Ray cluster: the same run folder, ledger and bits as in one process.

>>> import geodp.ray
>>> run = geodp.ray.train("mnist", folder="/shared/runs/mnist", epsilon=3.0, workers=4)

This process is the first: it holds the noise's key, the ledger, the optimiser and the folder, and a share
of the records. Every actor holds another share, and adds up the clipped gradients of its records as
integers, whose sum is the same however it is split. So a lost actor is started again and its part of the
step repeated, with the same bits. Actors see weights and sums without noise: cluster and network must be of
one trust domain. Data and run folder must be readable by all under the same path.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import ray
from ray.exceptions import RayActorError, WorkerCrashedError

from geodp import _native, training
from geodp.training import PathLike, Run

__all__ = ["Actors", "resume", "train"]

_LOAD, _STOP = 0, 4  # First bytes of requests: geodp/src/team/wire.rs.
_LOST = (RayActorError, WorkerCrashedError)


def train(*args: Any, workers: int, options: dict[str, Any] | None = None, **settings: Any) -> Run:
    """As :func:`geodp.train`, with ``workers`` actors beside this process.

    ``options`` are those of Ray's actors, such as ``{"num_cpus": 8}``.
    """
    with Actors(workers, options) as actors:
        return training.train(*args, **settings, team=actors)


def resume(
    folder: PathLike, *, workers: int, options: dict[str, Any] | None = None, **settings: Any
) -> Run:
    """As :meth:`geodp.Run.resume`, with any number of actors, as many as before or not."""
    with Actors(workers, options) as actors:
        return Run.resume(folder, **settings, team=actors)


class _Share:
    """An actor's share of the records."""

    def __init__(self, rank: int, size: int) -> None:
        self._worker = _native.TeamWorker(rank, size)

    def handle(
        self, request: bytes, weights: npt.NDArray[np.float32] | None
    ) -> tuple[npt.NDArray[np.int64] | None, bytes]:
        return self._worker.handle(request, weights)


class Actors:
    """The other processes of a training, as actors that are started again when they are lost."""

    #: How often one actor is started again within one request before the training ends.
    attempts = 3

    def __init__(self, workers: int, options: dict[str, Any] | None = None) -> None:
        if workers < 1:
            raise ValueError(f"{workers} workers: at least 1, or train without Ray")
        self.size = workers + 1
        self._class = ray.remote(_Share).options(**(options or {}))
        self._actors = {rank: self._start(rank) for rank in range(1, self.size)}
        self._loads: dict[int, bytes] = {}
        self._found: dict[int, bytes] = {}
        self._requests: dict[int, tuple[bytes, Any]] = {}
        self._pending: dict[int, Any] = {}
        self._answers: dict[int, bytes] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors.values():
            ray.kill(actor)

    def _start(self, rank: int) -> Any:
        return self._class.remote(rank, self.size)

    def send(self, rank: int, request: bytes) -> None:
        """Hands an actor its request; what needs weights waits for them."""
        if request[0] == _STOP:
            return
        self._requests[rank] = (request, None)
        if request[0] == _LOAD:
            self._loads[rank] = request
            self._pending[rank] = self._actors[rank].handle.remote(request, None)

    def broadcast(self, weights: npt.NDArray[np.float32]) -> None:
        """Hands all actors the weights, and lets them begin."""
        shared = ray.put(weights)
        for rank, (request, _) in self._requests.items():
            self._requests[rank] = (request, shared)
            self._pending[rank] = self._actors[rank].handle.remote(request, shared)

    def sum(self) -> npt.NDArray[np.int64]:
        """The sum over all actors."""
        sums = [self._result(rank) for rank in sorted(self._pending)]
        return np.sum([np.asarray(part) for part in sums], axis=0, dtype=np.int64)

    def receive(self, rank: int) -> bytes:
        """An actor's answer."""
        if rank in self._pending:
            self._result(rank)
        return self._answers.pop(rank)

    def _result(self, rank: int) -> npt.NDArray[np.int64] | None:
        """Waits for an actor; one that is lost is started again and asked the same."""
        pending, lost = self._pending.pop(rank), 0
        while True:
            try:
                part, answer = ray.get(pending)
                if self._requests[rank][0][0] == _LOAD:
                    self._found[rank] = answer
                self._answers[rank] = answer
                return part  # type: ignore[no-any-return]
            except _LOST:
                lost += 1
                if lost > self.attempts:
                    raise
                warnings.warn(
                    f"worker {rank} was lost and is started again; its part of the step is repeated",
                    training.RunWarning,
                    stacklevel=2,
                )
                actor = self._actors[rank] = self._start(rank)
                request, weights = self._requests[rank]
                if request[0] != _LOAD:
                    loaded = actor.handle.remote(self._loads[rank], None)
                    self._check(rank, loaded)
                pending = actor.handle.remote(request, weights)

    def _check(self, rank: int, loaded: Any) -> None:
        """Refuses an actor that found other records than the one whose place it takes."""
        try:
            _, found = ray.get(loaded)
        except _LOST:
            return  # Lost again: whoever waits for its part hears of it.
        if found != self._found[rank]:
            raise RuntimeError(
                f"worker {rank} was started again and found other data or another program than before; "
                "the run can be resumed when all have the same"
            )
