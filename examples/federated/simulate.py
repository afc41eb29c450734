"""MNIST over simulated clients in Flower: a linear model, client-level privacy, a durable ledger.

    python examples/federated/simulate.py --epsilon 8 --rounds 10 --out runs/federated

Run it again with the same arguments after a kill: it goes on where it stopped. Accuracy is measured on
MNIST's public test images; no client is asked for metrics.
"""

import argparse
import os

import numpy as np
from flwr.app import Array, ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation
from geodp import data
from geodp.federated import LocalNetwork
from geodp.flower import GeoDPStrategy, native_client

network = LocalNetwork.logistic(784, 10)


def shard(place: int, clients: int) -> tuple[np.ndarray, np.ndarray]:
    """The records of one client: dealt at random, none twice."""
    (images, labels), _ = data.mnist()
    rows = np.random.default_rng(0).permutation(len(images))[place::clients]
    return images[rows].reshape(len(rows), 784), labels[rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--sample-rate", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--delta", type=float, default=1e-3)
    parser.add_argument("--mechanism", default="dp", choices=["dp", "geodp", "geodp-certified"])
    parser.add_argument("--beta", type=float, default=None, help="of geodp")
    parser.add_argument("--clip-norm", type=float, default=0.5)
    parser.add_argument("--server-lr", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=None, help="for experiments: not private")
    parser.add_argument("--out", default="runs/federated")
    args = parser.parse_args()

    app = ServerApp()

    @app.main()
    def server(grid: Grid, context: Context) -> None:
        strategy = GeoDPStrategy(
            run_dir=args.out,
            model="a linear model of 7,850 parameters",
            min_available_nodes=args.clients,
            population=args.clients,
            sample_rate=args.sample_rate,
            rounds=args.rounds,
            clip_norm=args.clip_norm,
            epsilon=args.epsilon,
            delta=args.delta,
            mechanism=args.mechanism,
            beta=args.beta,
            server_lr=args.server_lr,
            seed=args.seed,
        )

        _, (images, labels) = data.mnist()
        images = images.reshape(len(images), 784)

        def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
            loss, accuracy = network.evaluate(arrays["weights"].numpy(), images, labels)
            claim = strategy.claim()
            print(f"round {server_round}: accuracy {100 * accuracy:.2f} %, {claim or 'nothing spent'}")
            return MetricRecord({"loss": loss, "accuracy": accuracy})

        start = ArrayRecord({"weights": Array(network.init())})
        strategy.start(grid, initial_arrays=start, num_rounds=args.rounds, evaluate_fn=evaluate)
        print(f"{strategy.statement}\nreport: {os.path.join(args.out, 'report.html')}")

    clients = native_client(
        network, lambda place, _: shard(place, args.clients), batch=20, learning_rate=0.1
    )
    run_simulation(
        server_app=app,
        client_app=clients,
        num_supernodes=args.clients,
        backend_config={"client_resources": {"num_cpus": 1}},
    )


if __name__ == "__main__":
    main()
