"""DP and GeoDP as an optax gradient transformation on a clipped sum.

>>> import optax; from geodp.jax import privatize                                  # doctest: +SKIP
>>> rule = optax.chain(                                                            # doctest: +SKIP
...     privatize(clip_norm=1.0, noise_multiplier=1.0, batch=256, mechanism="geodp", beta=0.1),
...     optax.sgd(0.1))

It takes the *sum* of gradients clipped to norm ``clip_norm`` (as jax_privacy's clipped gradients and
Opacus-like vmaps give it), divides by the public ``batch`` and perturbs in Rust on the host, through
``jax.pure_callback``. The noise of a step is a function of the source's key and of the step alone, so
the callback is pure and works under ``jit``. It is ChaCha20's, not JAX's generator.

This charges no ledger: count your steps with ``geodp.account``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from geodp.mechanism import Mechanism, NoiseSource, Perturbation

__all__ = ["PrivatizeState", "privatize"]

STEPS_OF_ONE_INIT = 1 << 20
"""Steps set apart for each ``init``: two states of one source never share noise."""


class PrivatizeState(NamedTuple):
    """The step whose noise comes next. Holds no key."""

    step: jax.Array


def privatize(
    *,
    clip_norm: float,
    noise_multiplier: float,
    batch: int,
    mechanism: Mechanism = "dp",
    beta: float | None = None,
    noise: NoiseSource | None = None,
) -> optax.GradientTransformation:
    """Turns a clipped sum into a noisy mean. ``noise`` is fresh and secure if left out."""
    if mechanism == "geodp-certified":
        raise ValueError(
            "certified GeoDP decides each step from earlier releases, which a pure function of the "
            'step cannot; use mechanism="dp" or "geodp" here, or geodp.mechanism on the host'
        )
    source = NoiseSource() if noise is None else noise
    # Wrong settings are refused here, not in the middle of a training.
    made = Perturbation(clip_norm, noise_multiplier, batch, mechanism, beta, None)

    def release(mean: Any, step: Any) -> np.ndarray[Any, Any]:
        released = np.array(mean)
        made.perturb(released, source, int(step))
        return released

    def init(_: optax.Params) -> PrivatizeState:
        first = source.take_block(STEPS_OF_ONE_INIT)
        return PrivatizeState(jnp.asarray(first, dtype=jnp.uint32))

    def update(
        updates: optax.Updates, state: PrivatizeState, params: optax.Params | None = None
    ) -> tuple[optax.Updates, PrivatizeState]:
        del params
        flat, unravel = ravel_pytree(updates)
        shape: Any = jax.ShapeDtypeStruct(flat.shape, flat.dtype)  # type: ignore[no-untyped-call]
        released = jax.pure_callback(release, shape, flat / batch, state.step)
        return unravel(released), PrivatizeState(state.step + 1)

    return optax.GradientTransformation(init, update)
