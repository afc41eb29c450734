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
| ``event`` | a release as ledgers spell it, such as ``{"type": "sampled_gaussian", "sample_rate": q, "noise_multiplier": σ}`` |

:class:`Accountant` composes releases and answers about all of them; :class:`Account` takes any event
and answers claims; :class:`LedgerWriter` has a charge on the disk before ``append`` returns, and
:class:`Ledger` reads and verifies it.
"""

from geodp._native import (
    Account,
    Accountant,
    Bracket,
    Claim,
    Ledger,
    LedgerError,
    LedgerWriter,
    delta,
    epsilon,
    noise_multiplier,
    sample_rate,
    steps,
)

__all__ = [
    "Account",
    "Accountant",
    "Bracket",
    "Claim",
    "Ledger",
    "LedgerError",
    "LedgerWriter",
    "delta",
    "epsilon",
    "noise_multiplier",
    "sample_rate",
    "steps",
]
