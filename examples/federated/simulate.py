"""Images over simulated clients, with privacy for each client: in Flower, or in this process.

    python examples/federated/simulate.py --rounds 100 --out runs/federated
    python examples/federated/simulate.py --rounds 100 --seed 1 --by rust    # the same weights, sooner

Run it again with the same arguments after a kill: Flower's goes on where it stopped. Accuracy is measured
on public test images; no client is asked for metrics. In --out: rounds.csv with accuracy and ε of every
round, the statement and a report.
"""

import csv
import hashlib
import pathlib
from typing import Any

from federation import arguments, images, learning_rate, network, records, seen_by, shards
from flwr.app import Array, ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation
from geodp.federated import simulate
from geodp.flower import GeoDPStrategy, native_client


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--by", default="flower", choices=["flower", "rust"])
    parser.add_argument("--sample-rate", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--mechanism", default="dp", choices=["dp", "geodp", "geodp-certified"])
    parser.add_argument("--beta", type=float, default=None, help="of geodp")
    parser.add_argument("--clip-norm", type=float, default=0.25)
    parser.add_argument("--server-lr", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=None, help="for experiments: not private")
    parser.add_argument("--out", default="runs/federated")
    args = parser.parse_args()
    deal_seed = args.seed or 0
    options: dict[str, Any] = {
        "sample_rate": args.sample_rate,
        "rounds": args.rounds,
        "clip_norm": args.clip_norm,
        "epsilon": args.epsilon,
        "delta": args.delta,
        "mechanism": args.mechanism,
        "beta": args.beta,
        "server_lr": args.server_lr,
        "seed": args.seed,
    }
    model, (pixels, labels) = network(args.model), images(args.data)[1]
    test = seen_by(args.model, pixels)

    if args.by == "rust":
        pixels, own = images(args.data)[0]
        dealt = shards(args.data, args.clients, args.split, deal_seed)
        inputs = seen_by(args.model, pixels)
        rate = learning_rate(args.model)
        weights = simulate(model, model.init(), inputs, own, dealt, learning_rate=rate, **options)
        print(f"accuracy {100 * model.evaluate(weights, test, labels)[1]:.2f} %")
        print(f"weights {hashlib.sha256(weights.tobytes()).hexdigest()[:16]}")
        return

    app, out = ServerApp(), pathlib.Path(args.out)

    @app.main()
    def server(grid: Grid, context: Context) -> None:
        strategy = GeoDPStrategy(
            run_dir=out,
            model=f"{args.model}: {model.dim} parameters",
            min_available_nodes=args.clients,
            population=args.clients,
            **options,
        )

        def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
            loss, accuracy = model.evaluate(arrays["weights"].numpy(), test, labels)
            claim = strategy.claim()
            print(f"round {server_round}: {100 * accuracy:.2f} %, {claim or 'nothing spent'}")
            if claim is not None:
                with (out / "rounds.csv").open("a", newline="") as file:
                    row = [server_round, accuracy, loss, claim.epsilon.upper, claim.kind]
                    csv.writer(file).writerow(row)
            return MetricRecord({"loss": loss, "accuracy": accuracy})

        start = ArrayRecord({"weights": Array(model.init())})
        result = strategy.start(
            grid, initial_arrays=start, num_rounds=args.rounds, evaluate_fn=evaluate
        )
        weights = result.arrays["weights"].numpy()
        print(f"weights {hashlib.sha256(weights.tobytes()).hexdigest()[:16]}")
        print(f"{strategy.statement}\nreport: {out / 'report.html'}")

    whose = (args.data, args.model, args.clients, args.split, deal_seed)
    run_simulation(
        server_app=app,
        client_app=native_client(
            model, lambda place, _: records(*whose, place), learning_rate=learning_rate(args.model)
        ),
        num_supernodes=args.clients,
        backend_config={"client_resources": {"num_cpus": 1}},
    )


if __name__ == "__main__":
    main()
