"""The estimators: accuracy, declared ranges, warnings, pickling, and scikit-learn's own checks."""

from __future__ import annotations

import os
import pickle
import subprocess
import warnings
from pathlib import Path
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

from geodp.sklearn import (  # noqa: E402
    DPClassifier,
    DPLogisticRegression,
    DPRegressor,
    PrivacyLeakWarning,
)

# A seed is warned about, and two epochs on little data teach little.
pytestmark = pytest.mark.filterwarnings("ignore::geodp.RunWarning")


ROOT = Path(__file__).parents[2]


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


def test_an_estimator_makes_the_bits_of_the_command_line(tmp_path: Path) -> None:
    binary = Path(os.environ.get("GEODP_BINARY", ROOT / "target/debug/geodp"))
    if not binary.exists():
        pytest.skip("the binary is not built; GEODP_BINARY names another")
    X, y = table(500)
    declared(folder=str(tmp_path / "py"), random_state=3).fit(X, y)
    seed = np.random.RandomState(3).randint(2**31)
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", (y == "yes").astype(np.int64))
    files = "train --data x.npy --labels y.npy --classes 2 --holdout 0 --out cli"
    rest = f"--model logistic --epsilon 3 --seed {seed}"
    command = [str(binary.absolute()), *files.split(), *rest.split()]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    models = [(tmp_path / part / "model.safetensors").read_bytes() for part in ("py", "cli")]
    assert models[0] == models[1]


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


def numbers(records: int = 3000) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    X, _ = table(records)
    noise = np.random.default_rng(1).normal(size=records)
    return X, 20 + 30 * X[:, 0] - 10 * X[:, 1] + 2 * noise


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_a_number_is_learnt_within_its_range_and_budget(loss: Any) -> None:
    X, y = numbers()
    model = DPRegressor(
        epsilon=3.0, target_range=(-50, 90), feature_range=(-1, 1), loss=loss, random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.statement_.kind == "certified" and float(model.statement_) <= 3.0
    far = model.predict(np.full((1, 6), 1e9))
    assert -50 <= far[0] <= 90
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_an_undeclared_target_range_is_warned_about() -> None:
    X, y = numbers(300)
    with pytest.warns(PrivacyLeakWarning, match="target_range"):
        DPRegressor(feature_range=(-1, 1), epochs=1).fit(X, y)
    with pytest.raises(ValueError, match="low < high"):
        DPRegressor(feature_range=(-1, 1), target_range=(1, 0)).fit(X, y)


def test_units_are_protected_with_all_their_records(tmp_path: Path) -> None:
    X, y = table(3000)
    whose = np.array([f"patient {record // 4}" for record in range(3000)])
    model = declared(folder=str(tmp_path / "run"), rows_per_unit=2).fit(X, y, units=whose)
    fields = model.statement_.fields
    assert fields["records"] == 750, "units are drawn, so N counts them"
    assert "unit" in model.statement_.unit and model.statement_.kind == "certified"
    assert model.score(X, y) > 0.75
    kept = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert b"patient 7" not in kept, "what a unit was called is not kept"


# Without declared classes and ranges, since the checks bring their own data. None is excepted.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([DPClassifier(), DPLogisticRegression(), DPRegressor()])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)
