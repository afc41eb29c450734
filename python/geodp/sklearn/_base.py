"""What the estimators share: their settings, declared ranges, the training, and warnings.

Estimators are dataclasses: scikit-learn wants every setting as an argument of ``__init__`` and as an
attribute of the same name, and so each stands here once.
"""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from geodp.training import train

Range = tuple[npt.ArrayLike, npt.ArrayLike]


class PrivacyLeakWarning(RuntimeWarning):
    """Something was read off the private records that no ε accounts for."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):
    """Settings of every estimator; see :class:`geodp.sklearn.DPClassifier`."""

    epsilon: float | None = 3.0
    delta: float | None = None
    feature_range: Range | None = None
    mechanism: str = "dp"
    beta: float | None = None
    noise_multiplier: float | None = None
    clip_norm: float | None = None
    batch: int | None = None
    epochs: int | None = None
    learning_rate: float | None = None
    rows_per_unit: int = 8
    random_state: Any = None
    folder: str | None = None
    verbose: bool = False

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()
        _FITS[made] = _FITS.setdefault(self, _Fits())
        return made

    def _train(
        self,
        inputs: npt.NDArray[Any],
        labels: npt.NDArray[Any],
        model: dict[str, Any],
        units: npt.ArrayLike | None,
        **data: Any,
    ) -> None:
        """Trains into the folder, or into one that is deleted afterwards."""
        if units is not None:
            data |= {"units": units, "rows_per_unit": self.rows_per_unit}
        if self.folder is not None:
            self._train_into(Path(self.folder), inputs, labels, model, data)
        else:
            with tempfile.TemporaryDirectory() as folder:
                self._train_into(Path(folder) / "run", inputs, labels, model, data)

    def _train_into(
        self,
        folder: Path,
        inputs: npt.NDArray[Any],
        labels: npt.NDArray[Any],
        model: dict[str, Any],
        data: dict[str, Any],
    ) -> None:
        privacy = _given(
            mechanism=self.mechanism,
            beta=self.beta,
            epsilon=self.epsilon if self.noise_multiplier is None else None,
            noise_multiplier=self.noise_multiplier,
            delta=self.delta,
            clip_norm=self.clip_norm,
        )
        length = _given(
            batch=self.batch,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            seed=self._seed(),
        )
        run = train(
            self._scaled(inputs),
            labels,
            folder=folder,
            holdout=0,
            model=model,
            privacy=privacy,
            train=length,
            progress=self.verbose,
            **data,
        )
        self._model, self.statement_ = run.model, run.statement

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        return int(check_random_state(self.random_state).randint(2**31))

    def _declare_features(self, inputs: npt.NDArray[Any]) -> None:
        """Keeps the declared range of each feature."""
        shape = (inputs.shape[1],)
        if self.feature_range is None:
            leak("feature_range", "the smallest and largest values", "feature_range=(low, high)")
            low, high = inputs.min(axis=0), inputs.max(axis=0)
            self._low, self._high = low, np.where(high > low, high, low + 1.0)
            return
        self._low, self._high = check_range("feature_range", self.feature_range, shape)

    def _scaled(self, inputs: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Clamped to the declared range and brought to [−1, 1]."""
        clamped = np.clip(inputs, self._low, self._high)
        return (2 * (clamped - self._low) / (self._high - self._low) - 1).astype(np.float32)

    def _new_inputs(self, X: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """New records as the model takes them."""
        check_is_fitted(self)
        return self._scaled(validate_data(self, X, dtype=np.float64, reset=False))


def model_table(hidden: Any) -> dict[str, Any]:
    """The config's ``[model]`` for hidden layers of these widths."""
    widths = [int(width) for width in hidden]
    return {"name": "mlp", "hidden": widths} if widths else {"name": "logistic"}


def check_range(
    name: str, ends: Range, shape: tuple[int, ...]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Low and high of a declared range, for every entry of ``shape``."""
    low, high = (np.broadcast_to(np.asarray(end, float), shape) for end in ends)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(f"{name} {ends!r}: low < high, both finite")
    return low, high


class _Fits:
    """How often an estimator and its clones were fitted, in this process."""

    count = 0


_FITS: WeakKeyDictionary[PrivateEstimator, _Fits] = WeakKeyDictionary()


def count_fit(estimator: PrivateEstimator) -> None:
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


def leak(what: str, found: str, remedy: str) -> None:
    """Warns that something was read off the records."""
    warnings.warn(
        f"{what} is not declared, so {found} are read off the private records, which no ε accounts "
        f"for; declare {remedy}",
        PrivacyLeakWarning,
        stacklevel=4,
    )


def _given(**settings: Any) -> dict[str, Any]:
    """The settings that are not None."""
    return {name: value for name, value in settings.items() if value is not None}
