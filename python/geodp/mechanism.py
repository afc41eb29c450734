"""Clipping, DP and GeoDP perturbation of NumPy arrays, in place.

| function | output |
|---|---|
| :func:`clip` | every row scaled to norm at most C |
| :func:`perturb` with ``mechanism="dp"`` | g + (C·σ/B)·N(0, I) |
| :func:`perturb` with ``mechanism="geodp"`` | noise on the magnitude and on every angle, scaled by β |

Noise is drawn by ChaCha20 from the operating system's entropy. A seed makes it repeatable, and then
it protects nothing from whoever knows the seed. B is the expected batch size, public and fixed.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from geodp import _native
from geodp._native import NoiseSource

__all__ = ["ClipRule", "Mechanism", "NoiseSource", "clip", "perturb"]

Mechanism = Literal["dp", "geodp"]
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
    noise: NoiseSource | None = None,
    step: int | None = None,
) -> int:
    """Makes a clipped mean gradient its noisy release, in place; answers the step of its noise.

    ``mean`` is the sum of clipped gradients / ``batch``, flat, float32 or float64. Without ``noise``
    a fresh key is drawn for this one release. A source hands out its steps one after another, so no
    noise is used twice; an explicit ``step`` is for repeating an experiment.

    ``mechanism="dp"`` is the Gaussian mechanism with multiplier σ. ``mechanism="geodp"`` needs
    ``beta`` in (0, 1]; nothing enforces the direction's sensitivity, so its ε is conditional, never
    certified.
    """
    source = NoiseSource() if noise is None else noise
    if mechanism == "dp":
        if beta is not None:
            raise ValueError('beta is GeoDP\'s: leave it out, or say mechanism="geodp"')
        return _native.perturb_dp(mean, clip_norm, noise_multiplier, batch, source, step)
    if mechanism == "geodp":
        if beta is None:
            raise ValueError('mechanism="geodp" needs beta in (0, 1]')
        return _native.perturb_geodp(mean, clip_norm, noise_multiplier, batch, beta, source, step)
    raise ValueError(f"unknown mechanism '{mechanism}': use one of dp, geodp")
