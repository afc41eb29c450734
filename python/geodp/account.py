"""Differential-privacy accounting whose answers are brackets.

The truth lies between ``lower`` and ``upper``; ``upper`` is a bound, not an estimate, and the number
to report. Every number here is certified for DP-SGD: Gaussian noise on a sum of contributions of
norm at most C, over Poisson-sampled records. GeoDP has no certified ε, so an accountant refuses it,
and what can be said of it is a :class:`Claim` that names its kind.

| argument | meaning |
|---|---|
| ``sample_rate`` | q, the probability that a record takes part in a step |
| ``noise_multiplier`` | σ, the noise's standard deviation / C |
| ``steps`` | T, the number of releases |
| ``adjacency`` | which data sets are neighbours: "add-remove", "zero-out" or "replace-one" |
| ``method`` | "pld" (tight, two-sided) or "rdp" (cheap, upper end only) |
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from geodp import _native
from geodp._native import Bracket, Claim, LedgerError

__all__ = [
    "Account",
    "Accountant",
    "Adjacency",
    "Bracket",
    "Claim",
    "Ledger",
    "LedgerError",
    "LedgerWriter",
    "Method",
    "delta",
    "epsilon",
    "noise_multiplier",
    "sample_rate",
    "steps",
]

Adjacency = Literal["add-remove", "zero-out", "replace-one"]
Method = Literal["pld", "rdp"]
Event = Mapping[str, Any]


class Accountant:
    """Composes releases, in any order, and answers about all of them together."""

    def __init__(self, adjacency: Adjacency = "add-remove", method: Method = "pld") -> None:
        self._native = _native.Accountant(adjacency, method)

    @property
    def adjacency(self) -> str:
        """The neighbouring relation of every answer."""
        return self._native.adjacency

    def compose(self, *, sample_rate: float, noise_multiplier: float, steps: int = 1) -> None:
        """Adds ``steps`` Poisson-sampled Gaussian releases."""
        self._native.compose(sample_rate, noise_multiplier, steps)

    def compose_event(self, event: Event, count: int = 1) -> None:
        """Adds an event in the form that stands in ledgers, ``count`` times."""
        self._native.compose_event(json.dumps(dict(event)), count)

    def epsilon(self, delta: float) -> Bracket:
        """ε at ``delta``."""
        return self._native.epsilon(delta)

    def delta(self, epsilon: float) -> Bracket:
        """δ at ``epsilon``."""
        return self._native.delta(epsilon)


class Account:
    """Everything charged so far, and what may be said of it, whatever was charged.

    One claim for DP-SGD (certified); for GeoDP a conditional one and the figure as published.
    """

    def __init__(
        self, *, delta: float, adjacency: Adjacency = "add-remove", method: Method = "pld"
    ) -> None:
        self._native = _native.Account(delta, adjacency, method)

    def charge(self, event: Event, count: int = 1) -> None:
        """Charges an event in the form that stands in ledgers, ``count`` times."""
        self._native.charge(json.dumps(dict(event)), count)

    def claims(self) -> list[Claim]:
        """Every claim, the strongest first."""
        return self._native.claims()


def epsilon(
    *,
    sample_rate: float,
    noise_multiplier: float,
    steps: int,
    delta: float,
    adjacency: Adjacency = "add-remove",
    method: Method = "pld",
) -> Bracket:
    """The certified ε of ``steps`` steps of DP-SGD at ``delta``."""
    accountant = Accountant(adjacency, method)
    accountant.compose(sample_rate=sample_rate, noise_multiplier=noise_multiplier, steps=steps)
    return accountant.epsilon(delta)


def delta(
    *,
    sample_rate: float,
    noise_multiplier: float,
    steps: int,
    epsilon: float,
    adjacency: Adjacency = "add-remove",
    method: Method = "pld",
) -> Bracket:
    """The certified δ of ``steps`` steps of DP-SGD at ``epsilon``."""
    accountant = Accountant(adjacency, method)
    accountant.compose(sample_rate=sample_rate, noise_multiplier=noise_multiplier, steps=steps)
    return accountant.delta(epsilon)


def noise_multiplier(
    *,
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    adjacency: Adjacency = "add-remove",
) -> float:
    """The smallest σ whose certified ε does not exceed ``epsilon``."""
    return _native.noise_multiplier(epsilon, delta, sample_rate, steps, adjacency)


def steps(
    *,
    epsilon: float,
    delta: float,
    sample_rate: float,
    noise_multiplier: float,
    adjacency: Adjacency = "add-remove",
) -> int:
    """The largest number of steps whose certified ε does not exceed ``epsilon``."""
    return _native.steps(epsilon, delta, sample_rate, noise_multiplier, adjacency)


def sample_rate(
    *,
    epsilon: float,
    delta: float,
    noise_multiplier: float,
    steps: int,
    adjacency: Adjacency = "add-remove",
) -> float:
    """The largest sample rate whose certified ε does not exceed ``epsilon``."""
    return _native.sample_rate(epsilon, delta, noise_multiplier, steps, adjacency)


class Ledger:
    """A ledger that was read and found whole: every charge, chained by SHA-256.

    The chain finds accidents and careless edits. It has no key, so it does not stop an owner who
    rewrites all of it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._native = _native.Ledger.read(os.fspath(path))
        self.charges: list[tuple[int, Event, int]] = [
            (step, json.loads(event), count) for step, event, count in self._native.charges()
        ]
        """Every charge as (steps paid for once it is charged, event, count)."""

    @property
    def adjacency(self) -> str:
        """The neighbouring relation its totals are about."""
        return self._native.adjacency

    @property
    def delta(self) -> float:
        """δ its totals are stated at."""
        return self._native.delta

    @property
    def plan(self) -> str:
        """What ties it to its run."""
        return self._native.plan

    @property
    def head(self) -> str:
        """Hash of its last line."""
        return self._native.head

    @property
    def steps(self) -> int:
        """Steps paid for."""
        return self._native.steps

    @property
    def torn(self) -> bool:
        """Whether a torn last line, which was never acknowledged, was passed over."""
        return self._native.torn

    def claims(self) -> list[Claim]:
        """What may be said of all its charges, the strongest claim first."""
        return self._native.claims()

    def verify_against(self, charges: int, head: str) -> None:
        """Raises :class:`LedgerError` unless this ledger continues one of so many charges."""
        self._native.verify_against(charges, head)

    def __len__(self) -> int:
        return len(self._native)


class LedgerWriter:
    """Appends to a ledger; a charge is on the disk before :meth:`append` returns."""

    def __init__(self, native: _native.LedgerWriter) -> None:
        self._native = native

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        delta: float,
        plan: str,
        adjacency: Adjacency = "add-remove",
    ) -> LedgerWriter:
        """Starts a ledger where nothing stands yet."""
        return cls(_native.LedgerWriter.create(os.fspath(path), adjacency, delta, plan))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> LedgerWriter:
        """Continues a ledger after verifying it; a torn last line is removed."""
        return cls(_native.LedgerWriter.open(os.fspath(path)))

    def append(self, *, step: int, event: Event, count: int = 1) -> None:
        """Charges ``event``, which pays for the run's steps before ``step``."""
        self._native.append(step, json.dumps(dict(event)), count)

    @property
    def head(self) -> str:
        """Hash of the last line."""
        return self._native.head

    def __len__(self) -> int:
        return len(self._native)
