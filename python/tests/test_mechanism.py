"""Clipping and perturbation of arrays: formulas against NumPy, noise, threads, refusals."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from geodp.mechanism import NoiseSource, clip, perturb

CHUNK = 1024  # Coordinates that share one stream of noise.


def stream(noise: NoiseSource, purpose: str, step: int, count: int) -> npt.NDArray[np.float64]:
    """The normals a release of this step uses, chunk by chunk."""
    parts = [
        noise.normals(purpose, step, index, min(CHUNK, count - start))
        for index, start in enumerate(range(0, count, CHUNK))
    ]
    return np.concatenate(parts)


def geodp_by_angles(
    mean: npt.NDArray[np.float64], noise: NoiseSource, step: int, magnitude_std: float, beta_std: float
) -> npt.NDArray[np.float64]:
    """The paper's Algorithm 1 by the textbook: to angles, add noise, back."""
    d = len(mean)
    tails = np.sqrt(np.cumsum(mean[::-1] ** 2)[::-1])
    angles = np.arctan2(tails[1:], mean[:-1])
    angles[-1] = np.arctan2(mean[-1], mean[-2])
    angles += beta_std * np.sqrt(d + 2) * stream(noise, "angles", step, d)[: d - 1]
    magnitude = tails[0] + magnitude_std * noise.normals("magnitude", step, 0, 1)[0]
    sines = np.concatenate([[1.0], np.cumprod(np.sin(angles))])
    release: npt.NDArray[np.float64] = magnitude * sines * np.concatenate([np.cos(angles), [1.0]])
    return release


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dp_adds_the_addressed_normals(dtype: Any) -> None:
    mean = np.linspace(-1, 1, 3000).astype(dtype)
    release = mean.copy()
    perturb(release, clip_norm=0.5, noise_multiplier=2.0, batch=4, noise=NoiseSource(7), step=3)
    normals = stream(NoiseSource(7), "coordinates", 3, 3000)
    expected = (mean.astype(np.float64) + 0.5 * 2.0 / 4 * normals).astype(dtype)
    np.testing.assert_array_equal(release, expected)


@pytest.mark.parametrize("dim", [2, 3, 10, 1024, 1025, 5000, 1_000_000])
def test_geodp_is_the_textbook_by_angles(dim: int) -> None:
    mean = np.random.default_rng(dim).normal(size=dim)
    mean /= np.linalg.norm(mean)
    release, noise = mean.copy(), NoiseSource(dim)
    step = perturb(
        release, clip_norm=0.3, noise_multiplier=1.5, batch=64, mechanism="geodp", beta=0.05, noise=noise
    )
    expected = geodp_by_angles(mean, noise, step, 0.3 * 1.5 / 64, 1.5 * 0.05 * np.pi / 64)
    np.testing.assert_allclose(release, expected, rtol=0, atol=1e-9)


def test_without_noise_nothing_changes() -> None:
    mean = np.random.default_rng(0).normal(size=100)
    release = mean.copy()
    perturb(release, clip_norm=1, noise_multiplier=0, batch=1, mechanism="geodp", beta=1.0)
    np.testing.assert_allclose(release, mean, rtol=1e-12)
    perturb(release, clip_norm=1, noise_multiplier=0, batch=1)
    np.testing.assert_allclose(release, mean, rtol=1e-12)


def test_a_source_never_uses_a_step_twice() -> None:
    noise = NoiseSource(1)
    settings: dict[str, Any] = {"clip_norm": 1.0, "noise_multiplier": 1.0, "batch": 1, "noise": noise}
    steps = [perturb(np.zeros(4), **settings) for _ in range(3)]
    steps.append(perturb(np.zeros(4), **settings, step=10))
    steps.append(perturb(np.zeros(4), **settings))
    assert steps == [0, 1, 2, 10, 11]


def test_secure_noise_differs_and_a_seed_repeats() -> None:
    def release(seed: int | None) -> npt.NDArray[np.float64]:
        zeros = np.zeros(16)
        perturb(zeros, clip_norm=1, noise_multiplier=1, batch=1, noise=NoiseSource(seed))
        return zeros

    assert (release(5) == release(5)).all() and (release(5) != release(6)).any()
    assert (release(None) != release(None)).all()
    assert NoiseSource().seed is None and NoiseSource(5).seed == 5


def test_a_key_leaves_by_no_door() -> None:
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="secret key"):
            take(NoiseSource())
    assert repr(NoiseSource()) == "NoiseSource(secure)"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clip_scales_rows_and_answers_their_norms(dtype: Any) -> None:
    rows = np.array([[3.0, 4.0], [0.03, 0.04], [np.nan, 1.0], [np.inf, 1.0]], dtype=dtype)
    norms = clip(rows, clip_norm=0.5)
    np.testing.assert_allclose(norms[:2], [5.0, 0.05], rtol=1e-6)
    expected = np.array([[0.3, 0.4], [0.03, 0.04], [0.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_rules_weigh_by_their_formulas() -> None:
    for rule, weight in (("auto-s", 0.5 / 5.01), ("psac", 0.5 / (5 + 0.1 / 5.1))):
        rows = np.array([[3.0, 4.0]])
        clip(rows, clip_norm=0.5, rule=rule)  # type: ignore[arg-type]
        np.testing.assert_allclose(rows, [[3 * weight, 4 * weight]], rtol=1e-12)


def test_poisson_samples_have_their_rate_and_may_be_empty() -> None:
    noise, records, batch, steps = NoiseSource(1), 50, 20, 4000
    counts, sizes = np.zeros(records), []
    for step in range(steps):
        sample = noise.poisson(step, records, batch)
        counts[sample] += 1
        sizes.append(len(sample))
    # Binomial counts; 5.5 standard errors have a false-alarm rate of 4e-8 for each record.
    assert (abs(counts - 0.4 * steps) < 5.5 * np.sqrt(steps * 0.24)).all()
    assert abs(np.var(sizes) - 12) < 1.6
    assert any(len(noise.poisson(step, 5, 1)) == 0 for step in range(100))


@pytest.mark.parametrize(
    ("array", "error", "complaint"),
    [
        (np.zeros(4, np.int64), TypeError, "dtype int64"),
        (np.zeros((2, 2)), TypeError, "one-dimensional"),
        ([0.0, 1.0], TypeError, "found list"),
        (np.zeros(8)[::2], ValueError, "ascontiguousarray"),
        (np.array([1.0, np.nan]), ValueError, "coordinate 1"),
        (np.zeros(0), ValueError, "empty"),
    ],
)
def test_a_wrong_array_is_refused_and_kept(
    array: Any, error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        perturb(array, clip_norm=1.0, noise_multiplier=1.0, batch=1)


def test_a_read_only_array_is_refused() -> None:
    array = np.zeros(4)
    array.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        perturb(array, clip_norm=1.0, noise_multiplier=1.0, batch=1)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"mechanism": "geodp"}, "needs beta"),
        ({"beta": 0.1}, "GeoDP's"),
        ({"mechanism": "geodp", "beta": 1.5}, "β"),
        ({"mechanism": "laplace"}, "no mechanism"),
        ({"mechanism": "none"}, "perturbs nothing"),
        ({"mechanism": "geodp-certified"}, "needs miss"),
        ({"mechanism": "geodp-certified", "miss": 0.0}, "miss"),
        ({"mechanism": "geodp-certified", "miss": 1e-9}, "needs history"),
        ({"miss": 1e-9}, "certified GeoDP"),
        ({"clip_norm": 0.0}, "clipping threshold"),
        ({"noise_multiplier": -1.0}, "noise multiplier"),
        ({"batch": 0}, "batch"),
    ],
)
def test_wrong_parameters_are_refused(change: dict[str, Any], complaint: str) -> None:
    settings = {"clip_norm": 1.0, "noise_multiplier": 1.0, "batch": 1, **change}
    with pytest.raises(ValueError, match=complaint):
        perturb(np.zeros(4), **settings)
