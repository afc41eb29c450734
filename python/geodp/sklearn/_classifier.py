"""Classifiers: logistic regression, and networks with hidden layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from geodp.sklearn._base import PrivateEstimator, count_fit, leak, model_table


@dataclass(kw_only=True, eq=False, repr=False)
class DPLogisticRegression(ClassifierMixin, PrivateEstimator):
    """Logistic regression trained by DP-SGD or GeoDP-SGD; settings as in :class:`DPClassifier`."""

    classes: Sequence[Any] | None = None

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, units: npt.ArrayLike | None = None) -> Self:
        """Trains on X and y; ``statement_`` says what privacy was bought.

        ``units`` says whose each record is: ε is then about all records of one unit together.
        """
        inputs, labels = validate_data(self, X, y, dtype=np.float64)
        count_fit(self)
        check_classification_targets(labels)
        self._declare_classes(labels)
        self._declare_features(inputs)
        numbers, classes = self._numbered(labels), len(self.classes_)
        self._train(inputs, numbers, self._layers(), units, classes=classes)
        return self

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability of each class, in the order of ``classes_``."""
        inputs = self._new_inputs(X)
        return self._model.predict_proba(inputs).astype(np.float64)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most probable class."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def _layers(self) -> dict[str, Any]:
        return model_table(())

    def _declare_classes(self, labels: npt.NDArray[Any]) -> None:
        if self.classes is None:
            leak("classes", "the labels that occur", "classes=[…]")
        self.classes_ = np.unique(labels if self.classes is None else np.asarray(self.classes))

    def _numbered(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        if len(self.classes_) < 2:
            raise ValueError(f"one class, {self.classes_[0]!r}, cannot be told from others")
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise ValueError(f"label {labels[unknown][0]!r} is not among the declared classes")
        return np.searchsorted(self.classes_, labels)


@dataclass(kw_only=True, eq=False, repr=False)
class DPClassifier(DPLogisticRegression):
    """A network trained by DP-SGD or GeoDP-SGD; a linear one where ``hidden`` is empty.

    Parameters
    ----------
    epsilon, delta
        The budget of one ``fit``; certified for ``mechanism="dp"`` and "geodp-certified", conditional
        for "geodp".
    classes
        All labels that can occur, declared.
    feature_range
        (lowest, highest) of each feature, as numbers or as arrays, declared.
    hidden
        Widths of hidden layers; empty for a linear model.
    mechanism, beta
        "dp", "geodp-certified", or "geodp" with β in (0, 1].
    noise_multiplier
        σ instead of ``epsilon``.
    clip_norm, batch, epochs, learning_rate
        As in the config of a run; chosen by geodp's rules if None.
    rows_per_unit
        How many records of a unit are used in a step at most, where ``fit`` is given units.
    random_state
        For experiments: repeatable, and not private against whoever knows it. None draws noise from the
        operating system.
    folder
        Where to keep the run (ledger, model, report); a folder that is deleted after ``fit`` if None.
    """

    hidden: Sequence[int] = ()

    def _layers(self) -> dict[str, Any]:
        return model_table(self.hidden)
