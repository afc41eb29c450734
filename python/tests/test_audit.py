"""Audits of Python procedures."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from geodp import audit


def test_a_trainer_that_tells_the_coins_is_caught() -> None:
    found = audit.one_run(lambda coins: coins.astype(float), canaries=200, delta=1e-5, seed=1)
    assert found.epsilon_lower > 2.5 and found.canaries == 200
    assert (found.scores_in == 1).all() and (found.scores_out == 0).all()


def test_a_trainer_that_ignores_them_is_not_accused() -> None:
    random = np.random.default_rng(0)
    found = audit.one_run(lambda coins: random.normal(size=len(coins)), canaries=200, delta=1e-5, seed=2)
    assert found.epsilon_lower < 0.5


def test_randomised_response_is_bounded_by_its_epsilon() -> None:
    epsilon = 1.0
    random = np.random.default_rng(1)

    def respond(coins: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        truth = random.random(len(coins)) < np.exp(epsilon) / (1 + np.exp(epsilon))
        return np.where(truth, coins, ~coins).astype(float)

    found = audit.one_run(respond, canaries=2000, delta=0.0, seed=3)
    assert 0.7 < found.epsilon_lower <= epsilon


def test_guesses_alone_give_the_same_bound() -> None:
    assert audit.lower_bound(canaries=100, guesses=100, correct=50, delta=1e-5) == 0
    assert audit.lower_bound(canaries=100, guesses=100, correct=100, delta=1e-5) > 3
    with pytest.raises(ValueError):
        audit.lower_bound(canaries=10, guesses=11, correct=5, delta=1e-5)


def test_membership_is_read_off_scores() -> None:
    found = audit.membership([2.0, 3.0], [0.0, 1.0])
    assert found.auc == 1.0 and found.points[-1].tolist() == [1.0, 1.0]
    assert audit.membership([1.0], [1.0]).auc == 0.5


def test_an_exception_of_the_procedure_passes_through() -> None:
    def fail(coins: Any) -> Any:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        audit.one_run(fail, canaries=10, delta=1e-5)
    with pytest.raises(ValueError):
        audit.one_run(lambda coins: [0.0], canaries=10, delta=1e-5)
