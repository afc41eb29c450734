"""Clipping, exact sums, DP and GeoDP perturbation of NumPy arrays.

| what | output |
|---|---|
| :func:`clip` | every row scaled to norm at most C |
| :func:`perturb` with ``mechanism="dp"`` | g + (C·σ/B)·N(0, I) |
| :func:`perturb` with ``mechanism="geodp"`` | noise on the magnitude and on every angle, scaled by β |
| :func:`perturb` with ``mechanism="geodp-certified"`` | noise on magnitude and direction, at DP's ε |
| :class:`ExactSum` | the same releases of sums in whole numbers, so that ε is about their bits |

Noise is drawn by ChaCha20 from the operating system's entropy. A seed makes it repeatable, and then
it protects nothing from whoever knows the seed. B is the expected batch size, public and fixed.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from geodp import _native
from geodp._native import NoiseSource, Perturbation, PolarState

__all__ = [
    "ClipRule",
    "ExactSum",
    "Mechanism",
    "NoiseSource",
    "Perturbation",
    "PolarState",
    "clip",
    "perturb",
]

Mechanism = Literal["dp", "geodp", "geodp-certified"]
ClipRule = Literal["flat", "auto-s", "psac"]


def clip(
    gradients: npt.NDArray[Any], *, clip_norm: float, rule: ClipRule = "flat"
) -> npt.NDArray[np.float64]:
    """Scales each row to norm at most ``clip_norm``, in place; answers the norms before.

    A row that holds NaN or infinity becomes 0. The bound holds up to the rounding of the array's
    type. The norms depend on single records: they are for the data's owner.
    """
    return _native.clip_rows(gradients, clip_norm, rule)


def perturb(
    mean: npt.NDArray[Any],
    *,
    clip_norm: float,
    noise_multiplier: float,
    batch: int,
    mechanism: Mechanism = "dp",
    beta: float | None = None,
    miss: float | None = None,
    history: PolarState | None = None,
    noise: NoiseSource | None = None,
    step: int | None = None,
) -> int:
    """Makes a clipped mean gradient its noisy release, in place; answers the step of its noise.

    ``mean`` is the sum of clipped gradients / ``batch``, flat, float32 or float64. Without ``noise``
    a fresh key is drawn for this one release. A source hands out its steps one after another, so no
    noise is used twice; an explicit ``step`` is for repeating an experiment.

    ``mechanism="dp"`` is the Gaussian mechanism with multiplier σ. ``"geodp"`` needs ``beta`` in
    (0, 1]; nothing enforces the direction's sensitivity, so its ε is conditional, never certified.
    ``"geodp-certified"`` enforces it: its releases cost DP's ε, and ``miss`` on δ
    (``{"type": "polar", "event": …, "miss": …}``); one ``history`` serves all releases of a training.
    """
    made = Perturbation(clip_norm, noise_multiplier, batch, mechanism, beta, miss)
    return made.perturb(mean, NoiseSource() if noise is None else noise, step, history)


class ExactSum:
    """A sum of clipped gradients in whole numbers; private until :meth:`release`.

    Each gradient adds integers in units of C·2⁻³⁰ and is no longer than C in exact arithmetic. Sums do
    not depend on the order of gradients, nor on how they are split over processes. The noise is a
    Gaussian rounded to the same grid, so for "dp" and "geodp-certified" ε is a theorem about the bits
    released: charge an ``Account(..., arithmetic="exact")``.
    """

    def __init__(self, dim: int, *, clip_norm: float, rule: ClipRule = "flat") -> None:
        self._native = _native.ExactSum(dim, clip_norm, rule)
        self._clip_norm = clip_norm

    def add(self, gradients: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Clips and adds each row, as float32; answers the norms before, which are private.

        A row that holds NaN or infinity adds nothing.
        """
        return self._native.add(np.ascontiguousarray(gradients, dtype=np.float32))

    def merge(self, units: npt.NDArray[np.int64]) -> None:
        """Adds the :attr:`units` of another sum of the same size and threshold."""
        self._native.add_units(np.ascontiguousarray(units))

    @property
    def units(self) -> npt.NDArray[np.int64]:
        """The whole numbers, in units of C·2⁻³⁰. Private."""
        return self._native.units()

    def clear(self) -> None:
        """Makes it empty again."""
        self._native.clear()

    def release(
        self,
        *,
        noise_multiplier: float,
        batch: int,
        mechanism: Mechanism = "dp",
        beta: float | None = None,
        miss: float | None = None,
        history: PolarState | None = None,
        noise: NoiseSource | None = None,
        step: int | None = None,
    ) -> npt.NDArray[np.float32]:
        """The noisy mean; settings as in :func:`perturb`."""
        made = Perturbation(self._clip_norm, noise_multiplier, batch, mechanism, beta, miss)
        source = NoiseSource() if noise is None else noise
        return self._native.release(made, source, step, history)[0]
