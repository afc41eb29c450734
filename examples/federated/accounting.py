"""Flower's account of its own strategy beside ours: pip install '.[flower]' 'flwr[dp]==1.41.0'."""

from flwr.supercore.privacy_accounting import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    SamplingMethod,
)
from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant
from geodp import account

SIGMA, ROUNDS, RATE, DELTA, CLIENTS = 1.0, 100, 0.05, 1e-4, 1000

flower = RdpAccountant(
    PrivacyConfig(
        target_delta=DELTA,
        population_size=CLIENTS,
        neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
        sampling_method=SamplingMethod.NO_AMPLIFICATION,
    )
)
flower.compose(GaussianPrivacyEvent(SIGMA, int(RATE * CLIENTS), CLIENTS), ROUNDS)
ours = account.epsilon(sample_rate=RATE, noise_multiplier=SIGMA, steps=ROUNDS, delta=DELTA)
print(f"Flower, without amplification: ε = {flower.get_epsilon(DELTA):.2f}")
tight = account.epsilon(sample_rate=1.0, noise_multiplier=SIGMA, steps=ROUNDS, delta=DELTA)
print(f"The same, tightly:             ε ≤ {tight.upper:.2f}")
print(f"Poisson cohorts, certified:    ε ≤ {ours.upper:.4f}")
