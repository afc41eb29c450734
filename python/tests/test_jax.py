"""The optax transformation is Rust's perturbation, also under jit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402

from geodp.jax import privatize  # noqa: E402
from geodp.mechanism import NoiseSource, perturb  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SUM = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.array([0.5, -0.5])}


@pytest.mark.parametrize(("mechanism", "beta"), [("dp", None), ("geodp", 0.1)])
def test_it_is_rusts_release_of_the_mean(mechanism: Any, beta: float | None) -> None:
    settings: dict[str, Any] = {
        "clip_norm": 1.0,
        "noise_multiplier": 2.0,
        "batch": 8,
        "mechanism": mechanism,
        "beta": beta,
    }
    rule = privatize(**settings, noise=NoiseSource(4))
    state = rule.init(SUM)
    update = jax.jit(rule.update)
    for step in range(3):
        released, state = update(SUM, state)
        flat, unravel = jax.flatten_util.ravel_pytree(SUM)
        expected = np.array(flat / 8)
        perturb(expected, **settings, noise=NoiseSource(4), step=step)
        np.testing.assert_array_equal(jax.flatten_util.ravel_pytree(released)[0], expected)


def test_two_states_of_one_source_share_no_noise() -> None:
    rule = privatize(clip_norm=1.0, noise_multiplier=1.0, batch=1, noise=NoiseSource(1))
    first, second = rule.init(SUM), rule.init(SUM)
    assert (rule.update(SUM, first)[0]["w"] != rule.update(SUM, second)[0]["w"]).all()


def test_it_chains_with_an_optimiser() -> None:
    private = privatize(clip_norm=1.0, noise_multiplier=0.0, batch=2)
    rule = optax.chain(private, optax.sgd(0.1))
    updates, _ = rule.update(SUM, rule.init(SUM))
    np.testing.assert_allclose(updates["b"], -0.05 * np.array([0.5, -0.5]), rtol=1e-6)


def test_wrong_settings_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="beta"):
        privatize(clip_norm=1.0, noise_multiplier=1.0, batch=2, mechanism="geodp")
