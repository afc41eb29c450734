"""Rounds of a federation, for a server loop of any kind.

The unit of privacy is a client with all its data. A round is charged in a durable ledger before its
cohort is known; updates are clipped on the server and added in whole numbers; the sum is divided by the
public ``sample_rate × population``, never by the number of replies.

>>> import numpy as np, tempfile
>>> server = Server(
...     tempfile.mkdtemp(), np.zeros(3, np.float32), population=100, sample_rate=0.1, rounds=2,
...     clip_norm=1.0, noise_multiplier=1.0, delta=1e-3, seed=1,
... )
>>> while (round := server.begin()) is not None:
...     for client in round.cohort:
...         _ = server.add(int(client), np.ones(3, np.float32))
...     weights = server.finish()
>>> server.conclude().claims[0].kind
'certified'

``geodp.flower`` puts this into Flower.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from geodp._native import Claim, FederatedServer, LocalNetwork, deal
from geodp._statement import Statement

__all__ = [
    "LocalNetwork",
    "Mechanism",
    "Optimizer",
    "Round",
    "Server",
    "deal",
    "settings",
    "simulate",
]

Mechanism = Literal["dp", "geodp", "geodp-certified"]
Optimizer = Literal["sgd", "momentum", "adam"]


@dataclass(frozen=True)
class Round:
    """What a cohort is asked. Who is in it is for the server alone."""

    number: int
    cohort: npt.NDArray[np.int64]
    bits: int
    """64 bits for clients that draw batches of their own."""


def settings(
    *,
    population: int,
    sample_rate: float,
    rounds: int,
    clip_norm: float,
    delta: float,
    noise_multiplier: float | None = None,
    epsilon: float | None = None,
    epsilon_limit: float | None = None,
    mechanism: Mechanism = "dp",
    beta: float | None = None,
    clip: Literal["flat", "auto-s", "psac"] = "flat",
    quantile: float | Mapping[str, float] | None = None,
    server_lr: float = 1.0,
    server_optimizer: Optimizer = "sgd",
    seed: int | None = None,
) -> dict[str, dict[str, Any]]:
    """The tables ``privacy`` and ``train`` of a plan. Rust checks them.

    ``quantile`` lets C follow that quantile of the updates' norms, starting at ``clip_norm``; a mapping may
    also hold ``rate`` and ``noise_multiplier``. What it tells is paid for by noise: ε stays the same.
    """
    cohort = round(sample_rate * population)
    if not 0 < sample_rate <= 1 or abs(cohort - sample_rate * population) > 1e-6:
        raise ValueError(
            f"sample_rate × population is {sample_rate * population}; it must be a whole number of "
            "clients, from 1 to population: it is what sums are divided by"
        )
    privacy = {
        "mechanism": mechanism,
        "beta": beta,
        "noise_multiplier": noise_multiplier,
        "epsilon": epsilon,
        "epsilon_limit": epsilon_limit,
        "delta": delta,
        "clip": clip,
        "clip_norm": clip_norm,
        "quantile": {"quantile": quantile} if isinstance(quantile, float) else quantile,
    }
    train = {
        "batch": cohort,
        "steps": rounds,
        "learning_rate": server_lr,
        "optimizer": {"name": server_optimizer},
        "seed": seed,
    }
    return {"privacy": _present(privacy), "train": _present(train)}


def _present(table: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value is not None}


class Server:
    """A federation in ``run_dir``; one that was begun there is taken up where it stopped.

    ``options`` are those of :func:`settings`. Killed at any time, the server is made again with the same
    arguments: the round it was in begins again with the same cohort, and is not charged twice.
    """

    def __init__(
        self,
        run_dir: str | os.PathLike[str],
        weights: npt.NDArray[np.float32],
        *,
        population: int,
        model: str = "",
        clients: str = "",
        **options: Any,
    ) -> None:
        params = json.dumps(settings(population=population, **options))
        self._native = FederatedServer(
            os.fspath(run_dir), params, population, weights, model, clients
        )

    @property
    def rounds(self) -> int:
        """Rounds that will be made: as planned, or fewer where a limit stops them."""
        return self._native.rounds

    @property
    def rounds_done(self) -> int:
        return self._native.rounds_done

    @property
    def noise_multiplier(self) -> float | None:
        """σ, as given or as calibrated."""
        return self._native.noise_multiplier

    @property
    def clip_norm(self) -> float | None:
        """C of the next round: as given, or where it has moved to."""
        return self._native.clip_norm

    @property
    def warnings(self) -> list[str]:
        return self._native.warnings

    @property
    def weights(self) -> npt.NDArray[np.float32]:
        """The weights after the rounds done."""
        return self._native.weights()

    def claim(self) -> Claim:
        """What everything charged so far amounts to, with its kind."""
        return self._native.claim()

    def begin(self) -> Round | None:
        """Charges the next round, durably, and draws its cohort; None when all are done."""
        begun = self._native.begin()
        return None if begun is None else Round(*begun)

    def add(self, client: int, update: npt.NDArray[np.float32]) -> str:
        """Clips and adds (weights after local training) − (weights sent).

        Answers "added", "not in cohort", "twice" or "unusable"; whatever is not added counts as nothing.
        """
        return self._native.add(client, update)

    def finish(self) -> npt.NDArray[np.float32]:
        """Releases the round, however many replied, and answers the new weights."""
        return self._native.finish()

    def conclude(self) -> Statement:
        """Writes model, statement and report, and destroys the noise's key."""
        return Statement(json.loads(self._native.conclude()))


def simulate(
    network: LocalNetwork,
    weights: npt.NDArray[np.float32],
    inputs: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64],
    shards: npt.NDArray[np.int64],
    *,
    epochs: int = 1,
    batch: int = 20,
    learning_rate: float = 0.1,
    **options: Any,
) -> npt.NDArray[np.float32]:
    """The weights after all rounds of a federation in this process, on all cores, without a folder.

    Row i of ``shards`` (see :func:`deal`) has the records of the client at place i. ``options`` are those
    of :func:`settings`. With a seed these are the bits of any server whose clients train alike.
    """
    params = json.dumps(settings(population=len(shards), **options))
    return network.simulate(
        weights,
        inputs,
        labels,
        shards,
        params,
        epochs=epochs,
        batch=batch,
        learning_rate=learning_rate,
    )
