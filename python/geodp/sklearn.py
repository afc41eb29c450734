"""Estimators for scikit-learn, trained with differential privacy.

>>> from geodp.sklearn import DPClassifier                                        # doctest: +SKIP
>>> model = DPClassifier(epsilon=3.0, classes=[0, 1], feature_range=(-1, 1))      # doctest: +SKIP
>>> model.fit(X, y).score(X_test, y_test); print(model.statement_)                # doctest: +SKIP

Two things must be known without looking at the records, because looking is not private: which
``classes`` there are and in which ``feature_range`` each feature lies. Left out, they are taken from the
data with a :class:`PrivacyLeakWarning`, and ε then says nothing about what they reveal. Values outside
the range are clamped to it.

ε is of one ``fit``. Cross-validation and searches fit many times on the same records, and no ε here
counts that: k fits on overlapping records cost up to k·ε together, and a score on private records is
itself a release.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from geodp.training import train

__all__ = ["DPClassifier", "DPLogisticRegression", "PrivacyLeakWarning"]

DEFAULT_BATCH = 256
"""Expected batch where none is given; fewer where there are fewer records."""

Range = tuple[npt.ArrayLike, npt.ArrayLike]


class PrivacyLeakWarning(RuntimeWarning):
    """Something was read off the private records that no ε accounts for."""


class DPClassifier(ClassifierMixin, BaseEstimator):
    """A network trained by DP-SGD or GeoDP-SGD.

    Parameters
    ----------
    epsilon, delta
        The budget of one ``fit``; certified for ``mechanism="dp"``, conditional for "geodp".
    classes
        All labels that can occur, declared.
    feature_range
        (lowest, highest) of each feature, as numbers or as arrays, declared.
    hidden
        Widths of hidden layers; empty for a linear model.
    mechanism, beta
        "dp", or "geodp" with β in (0, 1].
    noise_multiplier
        σ instead of ``epsilon`` (then ``epsilon=None``).
    clip_norm, batch, epochs, learning_rate
        As in the config of a run; chosen by geodp's defaults if None.
    random_state
        For experiments: repeatable, and not private against whoever knows it. None draws noise from the
        operating system.
    folder
        Where to keep the run (ledger, model, report); a folder that is deleted after ``fit`` if None.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = 3.0,
        delta: float | None = None,
        classes: Sequence[Any] | None = None,
        feature_range: Range | None = None,
        hidden: Sequence[int] = (),
        mechanism: str = "dp",
        beta: float | None = None,
        noise_multiplier: float | None = None,
        clip_norm: float | None = None,
        batch: int | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        random_state: Any = None,
        folder: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.feature_range = feature_range
        self.hidden = hidden
        self.mechanism = mechanism
        self.beta = beta
        self.noise_multiplier = noise_multiplier
        self.clip_norm = clip_norm
        self.batch = batch
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.folder = folder
        self.verbose = verbose

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Trains on X and y; ``statement_`` says what privacy was bought."""
        inputs, labels = validate_data(self, X, y, dtype=np.float64)
        _count_fit(self)
        check_classification_targets(labels)
        self.classes_ = self._declared_classes(labels)
        self._low, self._high = self._declared_range(inputs)
        numbers = self._numbered(labels)
        if self.folder is not None:
            self._train(Path(self.folder), inputs, numbers)
        else:
            with tempfile.TemporaryDirectory() as folder:
                self._train(Path(folder) / "run", inputs, numbers)
        return self

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        inputs = validate_data(self, X, dtype=np.float64, reset=False)
        return self._model.predict_proba(self._scaled(inputs)).astype(np.float64)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most probable class."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()
        _FITS[made] = _FITS.setdefault(self, _Fits())
        return made

    def _train(self, folder: Path, inputs: npt.NDArray[Any], labels: npt.NDArray[Any]) -> None:
        batch = min(DEFAULT_BATCH if self.batch is None else self.batch, len(inputs))
        privacy = _given(
            mechanism=self.mechanism,
            beta=self.beta,
            epsilon=self.epsilon if self.noise_multiplier is None else None,
            noise_multiplier=self.noise_multiplier,
            delta=self.delta,
            clip_norm=self.clip_norm,
        )
        length = _given(
            batch=batch,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            seed=self._seed(),
        )
        hidden = list(self.hidden)
        model: dict[str, Any] = {"name": "mlp", "hidden": hidden} if hidden else {"name": "logistic"}
        run = train(
            self._scaled(inputs),
            labels,
            folder=folder,
            classes=len(self.classes_),
            holdout=0,
            model=model,
            privacy=privacy,
            train=length,
            progress=self.verbose,
        )
        self._model, self.statement_ = run.model, run.statement

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        return int(check_random_state(self.random_state).randint(2**31))

    def _declared_classes(self, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.classes is None:
            _leak("classes", "the labels that occur", "classes=[…]")
            return np.unique(labels)
        return np.unique(np.asarray(self.classes))

    def _numbered(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        if len(self.classes_) < 2:
            raise ValueError(f"one class, {self.classes_[0]!r}, cannot be told from others")
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise ValueError(f"label {labels[unknown][0]!r} is not among the declared classes")
        return np.searchsorted(self.classes_, labels)

    def _declared_range(
        self, inputs: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        shape = (inputs.shape[1],)
        if self.feature_range is None:
            _leak("feature_range", "the smallest and largest values", "feature_range=(low, high)")
            low, high = inputs.min(axis=0), inputs.max(axis=0)
            return low, np.where(high > low, high, low + 1.0)
        low, high = (np.broadcast_to(np.asarray(end, float), shape) for end in self.feature_range)
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise ValueError(f"feature_range {self.feature_range!r}: low < high, both finite")
        return low, high

    def _scaled(self, inputs: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Clamped to the declared range and brought to [−1, 1]."""
        clamped = np.clip(inputs, self._low, self._high)
        return (2 * (clamped - self._low) / (self._high - self._low) - 1).astype(np.float32)


class DPLogisticRegression(DPClassifier):
    """Logistic regression trained by DP-SGD or GeoDP-SGD: :class:`DPClassifier` without hidden layers."""

    def __init__(
        self,
        *,
        epsilon: float | None = 3.0,
        delta: float | None = None,
        classes: Sequence[Any] | None = None,
        feature_range: Range | None = None,
        mechanism: str = "dp",
        beta: float | None = None,
        noise_multiplier: float | None = None,
        clip_norm: float | None = None,
        batch: int | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        random_state: Any = None,
        folder: str | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            classes=classes,
            feature_range=feature_range,
            mechanism=mechanism,
            beta=beta,
            noise_multiplier=noise_multiplier,
            clip_norm=clip_norm,
            batch=batch,
            epochs=epochs,
            learning_rate=learning_rate,
            random_state=random_state,
            folder=folder,
            verbose=verbose,
        )


class _Fits:
    """How often an estimator and its clones were fitted, in this process."""

    count = 0


_FITS: WeakKeyDictionary[DPClassifier, _Fits] = WeakKeyDictionary()


def _count_fit(estimator: DPClassifier) -> None:
    """Warns once where an estimator or its clones are fitted again, as in cross-validation."""
    fits = _FITS.setdefault(estimator, _Fits())
    fits.count += 1
    if fits.count == 2:
        warnings.warn(
            "this estimator or a clone of it was fitted before, as in cross-validation and searches: "
            "each fit spends its own ε, on records that the fits share, and what is chosen by scores "
            "on private records is charged nowhere",
            PrivacyLeakWarning,
            stacklevel=3,
        )


def _given(**settings: Any) -> dict[str, Any]:
    """The settings that are not None."""
    return {name: value for name, value in settings.items() if value is not None}


def _leak(what: str, found: str, remedy: str) -> None:
    warnings.warn(
        f"{what} is not declared, so {found} are read off the private records, which no ε accounts "
        f"for; declare {remedy}",
        PrivacyLeakWarning,
        stacklevel=4,
    )
