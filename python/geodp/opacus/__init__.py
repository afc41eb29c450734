"""GeoDP, secure noise and a durable ledger inside Opacus.

>>> from geodp.opacus import PrivacyEngine                                      # doctest: +SKIP
>>> engine = PrivacyEngine(mechanism="dp", ledger="ledger.jsonl")               # doctest: +SKIP
>>> model, optimizer, loader = engine.make_private(                             # doctest: +SKIP
...     module=model, optimizer=optimizer, data_loader=loader,
...     noise_multiplier=1.0, max_grad_norm=1.0)

The rest of an Opacus training stays as it is. What differs:

- Noise comes from ChaCha20 in Rust, and so do the coins of Poisson sampling; empty batches are kept.
- A step's event is durable in the ledger before its noisy gradient exists.
- Between processes gradients are summed, perturbed once on rank 0 and broadcast. GeoDP is not
  linear, so noise before the sum would be another mechanism.
- ``get_epsilon`` answers a certified ε for DP and for certified GeoDP, and refuses for GeoDP, which
  has none: ``statement(delta)`` says what can be said, with its kind. Sums are Opacus', in floating
  point, and so the claims say.
- ``optimizer.state_dict()`` keeps the step and what certified GeoDP learnt from its releases. Where
  there is a ledger, it and not a checkpoint says what was spent.

Needs ``pip install geodp[torch]``. Tried on CPUs with gloo; on a GPU gradients go to the host to be
perturbed, which nobody has run yet.
"""

from geodp.opacus._accountant import NoCertifiedEpsilon, PldAccountant
from geodp.opacus._engine import PrivacyEngine
from geodp.opacus._sampler import PoissonSampler

__all__ = ["NoCertifiedEpsilon", "PldAccountant", "PoissonSampler", "PrivacyEngine"]
