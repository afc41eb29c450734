"""Regression on a declared range of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from geodp._arrays import Loss
from geodp.sklearn._base import PrivateEstimator, check_range, count_fit, leak, model_table


@dataclass(kw_only=True, eq=False, repr=False)
class DPRegressor(RegressorMixin, PrivateEstimator):
    """A number learnt by DP-SGD or GeoDP-SGD; linear where ``hidden`` is empty.

    Settings as in :class:`DPClassifier`, but in place of ``classes``:

    Parameters
    ----------
    target_range
        (lowest, highest) of the target, declared; targets outside it are clamped, and so are predictions.
    loss
        "squared", or "huber", which minds records that are far off less.
    hidden
        Widths of hidden layers; empty for a linear model.
    """

    target_range: tuple[float, float] | None = None
    loss: Loss = "squared"
    hidden: Sequence[int] = ()

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, units: npt.ArrayLike | None = None) -> Self:
        """Trains on X and y; ``statement_`` says what privacy was bought.

        ``units`` says whose each record is: ε is then about all records of one unit together.
        """
        inputs, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        count_fit(self)
        self._declare_features(inputs)
        ends = self._declared_targets(targets)
        self._train(
            inputs,
            np.clip(targets, *ends),
            model_table(self.hidden),
            units,
            target_range=ends,
            loss=self.loss,
        )
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The number, within its declared range."""
        inputs = self._new_inputs(X)
        return self._model.predict(inputs).astype(np.float64)

    def _declared_targets(self, targets: npt.NDArray[np.float64]) -> tuple[float, float]:
        if self.target_range is None:
            leak("target_range", "the smallest and largest targets", "target_range=(low, high)")
            low, high = float(targets.min()), float(targets.max())
            return low, high if high > low else low + 1.0
        ends = check_range("target_range", self.target_range, ())
        return float(ends[0]), float(ends[1])
