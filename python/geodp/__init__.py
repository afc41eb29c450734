"""Private training that says exactly what privacy was bought.

| module | for |
|---|---|
| ``geodp.account`` | ε, δ, noise and steps, as brackets; ledgers |
| ``geodp.mechanism`` | clipping, DP and GeoDP perturbation of NumPy arrays |
| ``geodp.train``, ``geodp.Run`` | a private training into a run folder, and its results |
| ``geodp.data`` | the bundled MNIST as arrays |
| ``geodp.audit`` | lower bounds on ε from attacks |
| ``geodp.sklearn`` | estimators for scikit-learn |
| ``geodp.opacus`` | GeoDP, secure noise and a ledger inside Opacus |
| ``geodp.jax`` | DP and GeoDP as an optax gradient transformation |
| ``geodp.federated``, ``geodp.flower`` | federated rounds with the client as unit of privacy |

>>> from geodp import account
>>> account.epsilon(sample_rate=0.01, noise_multiplier=1.0, steps=1000, delta=1e-5).upper < 1.84
True

Rust's threads do not survive ``fork``: start worker processes with
``multiprocessing.get_context("spawn")``.
"""

from geodp import account, mechanism
from geodp._native import __version__
from geodp.training import Run, RunWarning, Statement, train

__all__ = ["Run", "RunWarning", "Statement", "__version__", "account", "mechanism", "train"]
