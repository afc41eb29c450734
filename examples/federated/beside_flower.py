"""MNIST over 1,000 clients at one client-level ε, beside Flower's own DP strategy.

    python examples/federated/beside_flower.py --seeds 5 --out results/federated-beside-flower.csv

Flower's strategy is its own code (clipping, FedAvg, noise, accountant), with the clients in this process in
place of its simulation. Its account knows no amplification, so it has two rows:

- the same cohorts: 100 of 1,000 clients in each of 100 rounds, with C as ours;
- at its best: all clients in every round, which is where amplification is worth nothing; rounds and C
  are the best of six by accuracy on 10,000 held-back training images.

Ours: Poisson cohorts of 100, 100 rounds, C = 0.25, the server's rate as `geodp lab run federated` chose it.
Each side trains clients 5,000 times or more for a model. pip install '.[flower]' 'flwr[dp]==1.41.0'.
"""

import csv
import itertools
import logging
import pathlib
import random
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from federation import arguments, images, learning_rate, network, seen_by
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from flwr.supercore.privacy_accounting import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    SamplingMethod,
)
from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant
from flwr.supercore.task_identity import TaskIdentity
from geodp.federated import deal, simulate

COHORT, ROUNDS, CLIP, HELD_BACK = 100, 100, 0.25, 10_000
SERVER_RATE = 2.0
Weights = npt.NDArray[np.float32]


def accountant(args: Any) -> RdpAccountant:
    return RdpAccountant(
        PrivacyConfig(
            target_delta=args.delta,
            population_size=args.clients,
            neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
            sampling_method=SamplingMethod.NO_AMPLIFICATION,
        )
    )


def flowers_sigma(args: Any, cohort: int, rounds: int) -> float:
    """The smallest σ whose ε Flower's accountant puts within the target, to a part in 10⁴."""
    low, high = 0.1, 1000.0
    while high / low > 1.0001:
        middle = (low * high) ** 0.5
        account = accountant(args)
        account.compose(GaussianPrivacyEvent(middle, cohort, args.clients), rounds)
        low, high = (middle, high) if account.get_epsilon(args.delta) > args.epsilon else (low, middle)
    return high


class Federation:
    """Clients in this process: a grid for Flower's strategies, and arrays for ours."""

    def __init__(self, args: Any, records: slice, measured: tuple[Any, Any], seed: int) -> None:
        (_, labels), _ = images(args.data)
        self.args, self.model, self.test = args, network(args.model), measured
        self.inputs, self.labels = INPUTS[records], labels[records]
        self.shards = deal(self.labels, args.clients, seed=seed)
        self.seed = seed

    def get_node_ids(self) -> list[int]:
        return list(range(self.args.clients))

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> list[Message]:
        return [self.reply(message) for message in messages]

    def reply(self, message: Message) -> Message:
        client = message.metadata.dst_node_id
        rows = self.shards[client]
        after = self.model.train(
            message.content["arrays"]["weights"].numpy(),
            self.inputs[rows],
            self.labels[rows],
            epochs=1,
            batch=20,
            learning_rate=learning_rate(self.args.model),
            client=client,
            bits=int(message.content["config"]["server-round"]),
        )
        content = {
            "arrays": ArrayRecord({"weights": Array(after)}),
            "metrics": MetricRecord({"num-examples": len(rows)}),
        }
        return Message(RecordDict(content), reply_to=message)

    def accuracy(self, weights: Weights) -> float:
        return self.model.evaluate(weights, *self.test)[1]

    def flower(self, cohort: int, rounds: int, clip: float) -> tuple[float, float, float]:
        """Accuracy, σ and ε of Flower's own strategy."""
        random.seed(self.seed)
        np.random.seed(self.seed)  # noqa: NPY002: what Flower's noise is drawn from
        spent, sigma = accountant(self.args), flowers_sigma(self.args, cohort, rounds)
        average = FedAvg(
            fraction_train=cohort / self.args.clients,
            fraction_evaluate=0.0,
            min_train_nodes=cohort,
            min_available_nodes=self.args.clients,
        )
        strategy = DifferentialPrivacyServerSideFixedClipping(
            average, sigma, clip, cohort, accountant=spent
        )
        start = ArrayRecord({"weights": Array(self.model.init(self.seed))})
        result = strategy.start(self, initial_arrays=start, num_rounds=rounds)
        return (
            self.accuracy(result.arrays["weights"].numpy()),
            sigma,
            float(spent.get_epsilon(self.args.delta)),
        )

    def ours(self, **options: Any) -> float:
        """Accuracy of a federation of this package."""
        weights = simulate(
            self.model,
            self.model.init(self.seed),
            self.inputs,
            self.labels,
            self.shards,
            learning_rate=learning_rate(self.args.model),
            delta=self.args.delta,
            seed=self.seed,
            **options,
        )
        return self.accuracy(weights)


def chosen(args: Any) -> tuple[int, float]:
    """(Rounds, C) for Flower with all clients, by accuracy on held-back images.

    With all clients in every round both sides draw by the same law, so our simulator chooses.
    """
    total = len(INPUTS)
    held_back = slice(total - HELD_BACK, total)
    (_, labels), _ = images(args.data)
    measured = (INPUTS[held_back], labels[held_back])
    federation = Federation(args, slice(0, total - HELD_BACK), measured, 100)
    found: dict[tuple[int, float], float] = {}
    for rounds, clip in itertools.product((5, 10, 20), (0.5, 1.0)):
        sigma = flowers_sigma(args, args.clients, rounds)
        found[rounds, clip] = federation.ours(
            sample_rate=1.0, rounds=rounds, clip_norm=clip, noise_multiplier=sigma
        )
        accuracy = 100 * found[rounds, clip]
        print(f"held back, all clients, {rounds} rounds, C = {clip}: {accuracy:.2f} %", flush=True)
    return max(found, key=lambda key: found[key])


def main() -> None:
    rounds, clip = chosen(ARGS)
    _, (pixels, labels) = images(ARGS.data)
    test = (seen_by(ARGS.model, pixels), labels)
    rows: list[list[Any]] = []
    for seed in range(ARGS.seeds):
        federation = Federation(ARGS, slice(0, len(INPUTS)), test, seed)
        cases = {
            "Flower, the same cohorts": (COHORT, ROUNDS, CLIP),
            "Flower, all clients": (ARGS.clients, rounds, clip),
        }
        for name, (cohort, count, c) in cases.items():
            started = time.monotonic()
            accuracy, sigma, epsilon = federation.flower(cohort, count, c)
            seconds = time.monotonic() - started
            rows.append([name, ARGS.model, seed, cohort, count, c, sigma, epsilon, accuracy, seconds])
        for mechanism, beta in (("dp", None), ("geodp-certified", None), ("geodp", 0.1)):
            started = time.monotonic()
            accuracy = federation.ours(
                sample_rate=COHORT / ARGS.clients, rounds=ROUNDS, clip_norm=CLIP, beta=beta,
                epsilon=ARGS.epsilon, server_lr=SERVER_RATE, mechanism=mechanism,
            )
            seconds = time.monotonic() - started
            rows.append([mechanism, ARGS.model, seed, COHORT, ROUNDS, CLIP, None, ARGS.epsilon,
                         accuracy, seconds])
        for row in rows[-5:]:
            print(*row, flush=True)
    with pathlib.Path(ARGS.out).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["strategy", "model", "seed", "cohort", "rounds", "clip_norm",
                         "noise_multiplier", "epsilon", "accuracy", "seconds"])
        writer.writerows(rows)
    for name in dict.fromkeys(row[0] for row in rows):
        percents = [100 * row[8] for row in rows if row[0] == name]
        print(f"{name}: {np.mean(percents):.2f} ± {np.std(percents, ddof=1):.2f} %")


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", default="beside-flower.csv")
    ARGS = parser.parse_args()
    logging.disable(logging.INFO)
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
    INPUTS = seen_by(ARGS.model, images(ARGS.data)[0][0])
    sys.exit(main())
