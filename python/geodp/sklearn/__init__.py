"""Estimators for scikit-learn, trained with differential privacy.

>>> from geodp.sklearn import DPClassifier                                        # doctest: +SKIP
>>> model = DPClassifier(epsilon=3.0, classes=[0, 1], feature_range=(-1, 1))      # doctest: +SKIP
>>> model.fit(X, y).score(X_test, y_test); print(model.statement_)                # doctest: +SKIP

Two things must be known without looking at the records, because looking is not private: which
``classes`` there are (for :class:`DPRegressor`, in which ``target_range`` the target lies) and in which
``feature_range`` each feature lies. Left out, they are taken from the
data with a :class:`PrivacyLeakWarning`, and ε then says nothing about what they reveal. Values outside
the range are clamped to it.

ε is of one ``fit``. Cross-validation and searches fit many times on the same records, and no ε here
counts that: k fits on overlapping records cost up to k·ε together, and a score on private records is
itself a release. A :class:`PrivacyLeakWarning` says so at the second ``fit``.

What is not given is chosen as on the command line: by the same rules in the number of records, ε and
the number of features. So ``DPClassifier`` and ``geodp train`` make the same bits of a seed.
"""

from geodp.sklearn._base import PrivacyLeakWarning
from geodp.sklearn._classifier import DPClassifier, DPLogisticRegression
from geodp.sklearn._regressor import DPRegressor

__all__ = ["DPClassifier", "DPLogisticRegression", "DPRegressor", "PrivacyLeakWarning"]
