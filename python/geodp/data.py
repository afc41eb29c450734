"""The bundled MNIST as arrays, and scattering features, for examples and for comparing with other libraries.

>>> from geodp.data import mnist, scattering
>>> (X, y), (X_test, y_test) = mnist()
>>> X.shape, X_test.shape
((60000, 28, 28), (10000, 28, 28))
>>> scattering(X[:2]).shape
(2, 3969)

Pixels are in [0, 1]. ``geodp.train("mnist", …)`` needs no arrays.
"""

from geodp._native import mnist, scattering

__all__ = ["mnist", "scattering"]
