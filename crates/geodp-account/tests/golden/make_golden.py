"""Writes dp_accounting.json: what the PyPI package dp-accounting says.

    pip install dp-accounting
    python make_golden.py > dp_accounting.json

For each random parameter set (fixed seed): the pessimistic and optimistic
epsilon of its privacy-loss distributions (interval 1e-4) and Renyi divergences
of one step. Replace-one sets have the pessimistic value only. About 15 minutes.
"""

import json
import math
import random
import sys

import dp_accounting
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant as rdp

ORDERS = [1.5, 2.5, 5.5, 10.9, 20.0, 63.0, 256.0]
REPLACE = dp_accounting.NeighboringRelation.REPLACE_ONE


def pld_epsilon(q, sigma, steps, delta, pessimistic, **options):
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        sigma,
        sampling_prob=q,
        pessimistic_estimate=pessimistic,
        use_connect_dots=pessimistic,
        **options,
    )
    return pld.self_compose(steps).get_epsilon_for_delta(delta)


def draw(rng):
    log_uniform = lambda low, high: math.exp(rng.uniform(math.log(low), math.log(high)))
    q = log_uniform(1e-4, 0.9)
    sigma = log_uniform(0.45, 12.0)
    steps = round(log_uniform(1, 20000))
    delta = log_uniform(1e-9, 1e-2)
    return q, sigma, steps, delta


def write(golden):
    """One set a line; an order that did not converge there is null."""
    def clean(value):
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        return [clean(item) for item in value] if isinstance(value, list) else value

    lines = lambda sets: ",\n".join(json.dumps(clean(one)) for one in sets)
    print('{"orders": %s,' % json.dumps(golden["orders"]))
    print('"sets": [\n%s\n],' % lines(golden["sets"]))
    print('"replace_one": [\n%s\n]}' % lines(golden["replace_one"]))


def main():
    rng = random.Random(20260)
    sets = []
    while len(sets) < 320:
        q, sigma, steps, delta = draw(rng)
        event = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
        accountant = rdp.RdpAccountant()
        accountant.compose(event, steps)
        rdp_epsilon = accountant.get_epsilon(delta)
        # Larger answers take the other library minutes and gigabytes.
        if rdp_epsilon > 25:
            continue
        sets.append({
            "sample_rate": q,
            "noise_multiplier": sigma,
            "steps": steps,
            "delta": delta,
            "pessimistic": pld_epsilon(q, sigma, steps, delta, True),
            "optimistic": pld_epsilon(q, sigma, steps, delta, False),
            "rdp_epsilon": rdp_epsilon,
            "rdp": rdp._compute_rdp_poisson_subsampled_gaussian(q, sigma, ORDERS).tolist(),
        })
        print(len(sets), file=sys.stderr)
    replace_one = []
    while len(replace_one) < 24:
        q, sigma, steps, delta = draw(rng)
        if steps > 2000 or sigma < 0.8 or q * math.sqrt(steps) / sigma > 2:
            continue
        replace_one.append({
            "sample_rate": q,
            "noise_multiplier": sigma,
            "steps": steps,
            "delta": delta,
            "pessimistic": pld_epsilon(q, sigma, steps, delta, True, neighboring_relation=REPLACE),
        })
    write({"orders": ORDERS, "sets": sets, "replace_one": replace_one})


main()
