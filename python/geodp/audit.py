"""Audits: what an attack shows about a training, as lower bounds on ε.

| function | asks |
|---|---|
| :func:`one_run` | can the coins of canaries be guessed after one training? |
| :func:`membership` | do members look different from non-members? |
| ``train={"measure": 1000}`` in :func:`geodp.train` | what did each record pay? (``Run.measured``) |

A lower bound refutes claims below it; it never proves one. Audits take any procedure, so a faulty or
foreign trainer can be audited as well. What they find depends on private records: for their owner.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geodp import _native

__all__ = ["OneRun", "Roc", "lower_bound", "membership", "one_run"]


@dataclass(frozen=True)
class OneRun:
    """What one training showed."""

    canaries: int
    delta: float
    confidence: float
    epsilon_lower: float
    """Audited: with this confidence, no smaller ε is true."""
    scores_in: npt.NDArray[np.float64]
    scores_out: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Roc:
    """How well a score tells members from non-members."""

    points: npt.NDArray[np.float64]
    """(false positive rate, true positive rate), from (0, 0) to (1, 1)."""
    auc: float
    tpr_at_1_percent: float
    tpr_at_01_percent: float


def one_run(
    train: Callable[[npt.NDArray[np.bool_]], npt.ArrayLike],
    *,
    canaries: int,
    delta: float,
    confidence: float = 0.95,
    seed: int | None = None,
) -> OneRun:
    """Audits one training with many canaries (Steinke, Nasr, Jagielski 2023, arXiv:2305.08846).

    ``train`` is given a coin for each canary, trains with those whose coin is True, and answers a
    score for each canary, higher where the result looks as if it took part. It must not depend on the
    coins in any other way.
    """

    def scores(included: list[bool]) -> list[float]:
        found = np.asarray(train(np.asarray(included)), dtype=np.float64)
        return [float(score) for score in found.ravel()]

    text = _native.audit_one_run(scores, canaries, delta, 1 - confidence, seed)
    found = json.loads(text)
    return OneRun(
        canaries=found["canaries"],
        delta=found["delta"],
        confidence=found["confidence"],
        epsilon_lower=found["epsilon_lower"],
        scores_in=np.asarray(found["scores_in"]),
        scores_out=np.asarray(found["scores_out"]),
    )


def lower_bound(
    *, canaries: int, guesses: int, correct: int, delta: float, confidence: float = 0.95
) -> float:
    """The audited ε that so many right guesses about canaries' coins show."""
    return _native.audit_lower_bound(canaries, guesses, correct, delta, 1 - confidence)


def membership(members: npt.ArrayLike, non_members: npt.ArrayLike) -> Roc:
    """How well scores, higher for likely members, tell members from non-members."""
    both = [np.asarray(scores, dtype=np.float64).ravel() for scores in (members, non_members)]
    found = json.loads(_native.audit_roc(both[0].tolist(), both[1].tolist()))
    return Roc(
        points=np.asarray(found["points"]),
        auc=found["auc"],
        tpr_at_1_percent=found["tpr_at_1_percent"],
        tpr_at_01_percent=found["tpr_at_01_percent"],
    )
