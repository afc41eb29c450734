"""The estimators: accuracy, declared ranges, warnings, pickling, and scikit-learn's own checks."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from geodp.sklearn import DPClassifier, DPLogisticRegression, PrivacyLeakWarning  # noqa: E402

# A seed is warned about, and two epochs on little data teach little.
pytestmark = pytest.mark.filterwarnings("ignore::geodp.RunWarning")


def table(records: int = 3000) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.str_]]:
    random = np.random.default_rng(0)
    inputs = random.uniform(-1, 1, (records, 6))
    return inputs, np.where(inputs[:, 0] + inputs[:, 1] > 0, "yes", "no")


def declared(**settings: Any) -> DPClassifier:
    whole = {"classes": ["no", "yes"], "feature_range": (-1, 1), "random_state": 0, **settings}
    return DPClassifier(**whole)


def test_a_table_is_learnt_within_its_budget() -> None:
    X, y = table()
    model = declared(epsilon=3.0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.statement_.kind == "certified" and float(model.statement_) <= 3.0
    assert list(model.classes_) == ["no", "yes"]
    np.testing.assert_allclose(model.predict_proba(X[:5]).sum(axis=1), 1, rtol=1e-6)


def test_hidden_layers_learn_what_a_line_cannot() -> None:
    X, _ = table(6000)
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    model = declared(epsilon=8.0, hidden=[32], learning_rate=8.0).fit(X, y)
    assert model.score(X, y) > declared(epsilon=8.0).fit(X, y).score(X, y) + 0.1


def test_what_is_not_declared_is_warned_about() -> None:
    X, y = table(400)
    with pytest.warns(PrivacyLeakWarning, match="classes"):
        DPClassifier(feature_range=(-1, 1), batch=64, epochs=1).fit(X, y)
    with pytest.warns(PrivacyLeakWarning, match="feature_range"):
        DPClassifier(classes=["no", "yes"], batch=64, epochs=1).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        declared(batch=64, epochs=1).fit(X, y)


def test_values_outside_the_range_are_clamped() -> None:
    X, y = table(400)
    model = declared(batch=64, epochs=1).fit(X, y)
    far = np.full((1, 6), 1e9)
    np.testing.assert_array_equal(model.predict_proba(far), model.predict_proba(np.ones((1, 6))))


def test_ranges_may_be_given_for_each_feature() -> None:
    X, y = table(400)
    scale = np.array([1.0, 10, 100, 1, 1, 1])
    plain = declared(batch=64, epochs=1).fit(X, y)
    scaled = declared(batch=64, epochs=1, feature_range=(-scale, scale)).fit(X * scale, y)
    expected = plain.predict_proba(X)
    np.testing.assert_allclose(scaled.predict_proba(X * scale), expected, atol=1e-4)


def test_it_works_in_pipelines_and_cross_validation() -> None:
    X, y = table(900)
    pipeline = make_pipeline(FunctionTransformer(), declared(batch=64, epochs=2))
    with pytest.warns(PrivacyLeakWarning, match="each fit spends its own ε"):
        assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.6
    assert clone(declared(epsilon=1.5)).epsilon == 1.5


def test_a_fitted_model_is_pickled_without_a_key() -> None:
    X, y = table(400)
    model = declared(batch=64, epochs=1, random_state=None).fit(X, y)
    packed = pickle.dumps(model)
    np.testing.assert_array_equal(pickle.loads(packed).predict_proba(X), model.predict_proba(X))
    assert b"noise.key" not in packed


def test_a_label_that_was_not_declared_is_refused() -> None:
    X, y = table(400)
    y[3] = "may"
    with pytest.raises(ValueError, match="may"):
        declared(batch=64, epochs=1).fit(X, y)


# Without declared classes and ranges, since the checks bring their own data. None is excepted.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([DPClassifier(), DPLogisticRegression()])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)
