"""Exact sums and certified GeoDP on arrays: formulas in whole numbers, order, refusals."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from geodp import account
from geodp.mechanism import ExactSum, NoiseSource, PolarState, perturb

UNIT = 2.0**-30
MISS = 1e-12


def gradients(rows: int, dim: int, norm: float = 1.0) -> npt.NDArray[np.float32]:
    drawn = np.random.default_rng(dim).normal(size=(rows, dim))
    scaled: npt.NDArray[np.float64] = norm * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return scaled.astype(np.float32)


def summed(rows: npt.NDArray[np.float32], clip_norm: float = 0.5) -> ExactSum:
    total = ExactSum(rows.shape[1], clip_norm=clip_norm)
    total.add(rows)
    return total


def test_a_sum_is_the_clipped_rows_in_whole_numbers() -> None:
    rows = gradients(300, 50)
    rows[3], rows[5], rows[7] = 0.01 * rows[3], np.nan, 0.0
    total = ExactSum(50, clip_norm=0.5)
    norms = total.add(rows)
    np.testing.assert_allclose(norms[:3], 1.0, rtol=1e-6)
    assert np.isnan(norms[5]) and norms[7] == 0
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.nan_to_num(wide * np.minimum(1, 0.5 / lengths)).sum(axis=0)
    # A row is cut by 2⁻²¹ of itself and each coordinate by one unit.
    np.testing.assert_allclose(total.units * 0.5 * UNIT, expected, atol=300 * 0.5 * 2e-6)


@pytest.mark.parametrize("norm", [0.3, 0.5, 0.5000001, 1.0, 1e30])
def test_no_row_is_longer_than_the_threshold_in_exact_arithmetic(norm: float) -> None:
    for row in gradients(50, 7, norm):
        units = summed(row[None]).units
        assert sum(int(n) ** 2 for n in units) <= 2**60


def test_order_and_parts_do_not_matter() -> None:
    rows = gradients(1000, 33)
    whole = summed(rows)
    turned = summed(rows[::-1].copy())
    parts = summed(rows[:400])
    parts.merge(summed(rows[400:]).units)
    np.testing.assert_array_equal(turned.units, whole.units)
    np.testing.assert_array_equal(parts.units, whole.units)
    whole.clear()
    assert not whole.units.any()


def test_without_noise_the_release_is_the_mean() -> None:
    total = summed(gradients(64, 20))
    release = total.release(noise_multiplier=0.0, batch=10)
    np.testing.assert_array_equal(release, (total.units * (0.5 * UNIT / 10)).astype(np.float32))


def test_dp_adds_whole_numbers_of_the_right_spread() -> None:
    total = summed(gradients(64, 4000))
    release = total.release(noise_multiplier=2.0, batch=10, noise=NoiseSource(1), step=4)
    again = total.release(noise_multiplier=2.0, batch=10, noise=NoiseSource(1), step=4)
    np.testing.assert_array_equal(release, again)
    noise = release * 10 / 0.5 - total.units * UNIT
    # The standard error of a deviation from 4,000 draws is 1.1 %; 5 of them are passed once in 10⁶.
    assert abs(noise.std() / 2.0 - 1) < 0.056 and abs(noise.mean()) < 5 * 2.0 / np.sqrt(4000)


@pytest.mark.parametrize("mechanism", ["geodp", "geodp-certified"])
def test_sums_in_whole_numbers_and_in_floats_have_the_same_release(mechanism: Any) -> None:
    rows = gradients(200, 100)
    settings: dict[str, Any] = {"noise_multiplier": 1.0, "batch": 200, "mechanism": mechanism}
    if mechanism == "geodp":
        settings["beta"] = 0.1
    if mechanism == "geodp-certified":
        settings |= {"miss": MISS, "history": PolarState(1e6)}
    total = summed(rows)
    exact = total.release(**settings, noise=NoiseSource(3), step=0)
    if mechanism == "geodp-certified":
        settings["history"] = PolarState(1e6)
    mean = total.units * (0.5 * UNIT / 200)
    perturb(mean, clip_norm=0.5, **settings, noise=NoiseSource(3), step=0)
    np.testing.assert_allclose(exact, mean, atol=1e-6)


def test_certified_geodp_keeps_direction_and_length_of_a_long_sum() -> None:
    rows = np.tile(gradients(1, 50), (4000, 1))
    history = PolarState()
    settings: dict[str, Any] = {"noise_multiplier": 1.0, "batch": 4000, "miss": MISS}
    settings |= {"mechanism": "geodp-certified", "history": history, "noise": NoiseSource(2)}
    first = summed(rows).release(**settings)
    assert history.values()[2] == (0, 1, 0), "nothing is known before the first step"
    second = summed(rows).release(**settings)
    assert history.values()[2] == (1, 1, 0)
    mean = 0.5 * rows[0]
    for release in (first, second):
        assert np.linalg.norm(release - mean) < 0.02
    # The state is made of releases: it may be kept and taken up.
    kept = pickle.loads(pickle.dumps(history))
    assert kept.values() == history.values() == PolarState(*history.values()).values()


def test_it_costs_what_dp_costs_and_its_misses() -> None:
    plain = {"type": "sampled_gaussian", "sample_rate": 0.01, "noise_multiplier": 1.0}

    def claim(event: dict[str, Any]) -> account.Claim:
        total = account.Account(delta=1e-5, arithmetic="exact", noise_draws=1000 * 50)
        total.charge(event, 1000)
        return total.claims()[0]

    dp, polar = claim(plain), claim({"type": "polar", "event": plain, "miss": MISS})
    assert dp.kind == polar.kind == "certified" and polar.arithmetic == "exact"
    assert dp.epsilon.upper < polar.epsilon.upper < 1.001 * dp.epsilon.upper
    sigma = account.noise_multiplier(
        epsilon=2.0, delta=1e-5, sample_rate=0.01, steps=1000, miss=MISS
    )
    event = {**plain, "noise_multiplier": sigma}
    spent = claim({"type": "polar", "event": event, "miss": MISS}).epsilon.upper
    assert 1.99 < spent <= 2.0001
    with pytest.raises(ValueError, match="arithmetic"):
        account.Account(delta=1e-5, arithmetic="decimal")  # type: ignore[arg-type]


def test_what_does_not_fit_is_refused() -> None:
    total = ExactSum(5, clip_norm=1.0)
    with pytest.raises(ValueError, match="4 coordinates; 5 are summed"):
        total.add(np.zeros((2, 4), np.float32))
    with pytest.raises(TypeError, match="two-dimensional"):
        total.add(np.zeros(5, np.float32))
    with pytest.raises(ValueError, match="3 whole numbers"):
        total.merge(np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="at least one"):
        ExactSum(0, clip_norm=1.0)
    with pytest.raises(ValueError, match="clipping rule"):
        ExactSum(5, clip_norm=1.0, rule="none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs history"):
        total.release(noise_multiplier=1.0, batch=1, mechanism="geodp-certified", miss=MISS)
