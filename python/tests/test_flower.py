"""The Flower strategy: its rounds are the server's, bit by bit, and nothing a node does can hurt."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("flwr")
pytestmark = pytest.mark.filterwarnings("ignore")

from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, RecordDict  # noqa: E402
from geodp import account  # noqa: E402
from geodp.federated import Server  # noqa: E402
from geodp.flower import SLOT, GeoDPStrategy  # noqa: E402

OPTIONS: dict[str, Any] = {
    "population": 40,
    "sample_rate": 0.25,
    "rounds": 5,
    "clip_norm": 0.5,
    "noise_multiplier": 1.0,
    "delta": 1e-3,
    "seed": 3,
}


@pytest.fixture(autouse=True)
def identity() -> None:
    """Messages are made by a task of a run."""
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1


def pull(place: int, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """A client's weights after its training: towards a point of its own."""
    target = np.linspace(-1, 1, weights.size, dtype=np.float32) * np.float32(1 + place % 7)
    return weights + np.float32(0.3) * (target - weights)


class Nodes:
    """A grid of nodes in this process; ``fate`` says what a node does with its message."""

    def __init__(self, ids: list[int], fate: dict[int, str]) -> None:
        self.ids, self.fate, self.asked = ids, fate, list[int]()

    def get_node_ids(self) -> list[int]:
        return self.ids

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Message]:
        replies = []
        for message in messages:
            place = int(message.content["config"][SLOT])
            self.asked.append(place)
            fate = self.fate.get(place, "train")
            if fate == "late":
                continue
            if fate == "fails":
                replies.append(Message(Error(1, "out of memory"), reply_to=message))
            else:
                arrays = {name: a.numpy() for name, a in message.content["arrays"].items()}
                flat = pull(place, np.concatenate([arrays["w"].ravel(), arrays["b"]]))
                if fate == "nan":
                    flat[0] = np.nan
                if fate == "huge":
                    flat *= np.float32(1e30)
                parts = {"w": flat[:6].reshape(2, 3), "b": flat[6:], "n": arrays["n"]}
                if fate == "shape":
                    parts["w"] = flat[:5]
                record = ArrayRecord({name: Array(value) for name, value in parts.items()})
                replies.append(Message(RecordDict({"arrays": record}), reply_to=message))
        return list(reversed(replies))


def arrays() -> ArrayRecord:
    start = {"w": np.ones((2, 3), np.float32), "b": np.zeros(2, np.float32), "n": np.array([7])}
    return ArrayRecord({name: Array(value) for name, value in start.items()})


FATES = {3: "fails", 5: "nan", 8: "late", 11: "huge", 14: "shape"}
FATES |= dict.fromkeys(range(30, 36), "fails")


def test_flower_and_the_server_give_the_same_weights(tmp_path: Path) -> None:
    ids = [1000 + 7 * node for node in range(38)]
    strategy = GeoDPStrategy(run_dir=tmp_path / "flower", **OPTIONS)
    grid = Nodes(ids, FATES)
    result = strategy.start(grid, initial_arrays=arrays(), num_rounds=7)
    assert result.train_metrics_clientapp == {} and result.evaluate_metrics_clientapp == {}
    assert len(grid.asked) > 20

    server = Server(tmp_path / "plain", np.array([1] * 6 + [0] * 2, np.float32), **OPTIONS)
    while (begun := server.begin()) is not None:
        sent = server.weights
        for place in begun.cohort.tolist():
            fate = FATES.get(place, "train")
            if place < 38 and fate in ("train", "huge"):
                after = pull(place, sent)
                server.add(place, (after * np.float32(1e30) if fate == "huge" else after) - sent)
        server.finish()
    expected = server.weights
    found = {name: array.numpy() for name, array in result.arrays.items()}
    assert np.array_equal(np.concatenate([found["w"].ravel(), found["b"]]), expected)
    assert found["n"].tolist() == [7] and np.isfinite(expected).all()
    # Two rounds more were asked for than the plan has: they were not made.
    assert account.Ledger(tmp_path / "flower" / "ledger.jsonl").steps == 5
    assert strategy.statement is not None and strategy.statement.unit == "client"
    assert strategy.statement.claims == server.conclude().claims


def test_a_strategy_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    ids = list(range(40))

    def made(folder: str, stops: list[int]) -> npt.NDArray[np.float32]:
        for rounds in stops:
            strategy = GeoDPStrategy(run_dir=tmp_path / folder, **OPTIONS)
            result = strategy.start(Nodes(ids, {}), initial_arrays=arrays(), num_rounds=rounds)
            del strategy
        return np.asarray(result.arrays["w"].numpy())

    assert np.array_equal(made("whole", [5]), made("cut", [2, 1, 2]))


def test_late_joiners_take_free_places_and_strangers_none(tmp_path: Path) -> None:
    strategy = GeoDPStrategy(run_dir=tmp_path / "run", **OPTIONS | {"sample_rate": 1.0})
    grid: Any = Nodes([50, 40], {})
    strategy.configure_train(1, arrays(), ConfigRecord(), grid)
    assert strategy._places == {40: 0, 50: 1}
    grid.ids = [45, 50] + list(range(100, 200))
    messages = list(strategy.configure_train(1, arrays(), ConfigRecord(), grid))
    assert strategy._places[45] == 2 and len(strategy._places) == 40
    assert len(messages) == 39, "everyone but the one who left"


def test_torch_clients_train_any_module(tmp_path: Path) -> None:
    """A module with a buffer and two layers: its rounds bring the loss down, and whole numbers stay."""
    torch = pytest.importorskip("torch")
    from flwr.app import Context
    from geodp.flower import torch_client

    torch.manual_seed(0)
    inputs = torch.randn(40, 20, 3)
    targets = (inputs[:, :, 0] > 0).long()

    def module() -> Any:
        layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
        layers.register_buffer("seen", torch.tensor(7))
        return layers

    app = torch_client(
        module, lambda place, _: [(inputs[place], targets[place])], epochs=3, learning_rate=0.5
    )

    class Trained(Nodes):
        def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Message]:
            context = Context(1, 1, {}, RecordDict(), {})
            return [app(message, context) for message in messages]

    options = OPTIONS | {"noise_multiplier": 0.05, "clip_norm": 2.0, "sample_rate": 0.5}
    strategy = GeoDPStrategy(run_dir=tmp_path / "run", **options)
    start = module()

    def loss(state: Any) -> float:
        model = module()
        model.load_state_dict(state)
        found = torch.nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        return float(found)

    grid: Any = Trained(list(range(40)), {})
    result = strategy.start(grid, initial_arrays=ArrayRecord(start.state_dict()), num_rounds=5)
    after = result.arrays.to_torch_state_dict()
    assert loss(after) < 0.6 * loss(start.state_dict()) and int(after["seen"]) == 7
    assert account.Ledger(tmp_path / "run" / "ledger.jsonl").steps == 5


def test_simulation_for_real(tmp_path: Path) -> None:
    """Ray's actors train with our engine; the ledger and the statement are there in the end."""
    pytest.importorskip("ray")
    from flwr.app import Context
    from flwr.serverapp import Grid, ServerApp
    from flwr.simulation import run_simulation
    from geodp.federated import LocalNetwork, simulate
    from geodp.flower import native_client

    network = LocalNetwork.logistic(4, 2)
    random = np.random.default_rng(0)

    def data(place: int, context: Any) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        own = np.random.default_rng(place)
        inputs = own.normal(size=(30, 4)).astype(np.float32)
        return inputs, (inputs[:, 1] > 0).astype(np.int64)

    kept: dict[str, Any] = {}
    options: dict[str, Any] = {
        "sample_rate": 0.5,
        "rounds": 3,
        "clip_norm": 1.0,
        "quantile": 0.5,
        "noise_multiplier": 0.3,
        "delta": 1e-2,
        "seed": 1,
    }
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        strategy = GeoDPStrategy(
            run_dir=tmp_path / "run", min_available_nodes=12, population=12, **options
        )
        start = ArrayRecord({"weights": Array(network.init())})
        result = strategy.start(grid, initial_arrays=start, num_rounds=3)
        kept["weights"], kept["statement"] = result.arrays["weights"].numpy(), strategy.statement

    run_simulation(
        server_app=app,
        client_app=native_client(network, data, learning_rate=0.5),
        num_supernodes=12,
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 2}},
    )
    # The same rounds by the simulator in Rust.
    owned = [data(place, None) for place in range(12)]
    weights = simulate(
        network,
        network.init(),
        np.concatenate([inputs for inputs, _ in owned]),
        np.concatenate([labels for _, labels in owned]),
        np.arange(12 * 30).reshape(12, 30),
        learning_rate=0.5,
        **options,
    )
    assert np.array_equal(kept["weights"], weights)
    inputs = random.normal(size=(500, 4)).astype(np.float32)
    accuracy = network.evaluate(weights, inputs, (inputs[:, 1] > 0).astype(np.int64))[1]
    assert accuracy > 0.8 and kept["statement"].kind == "certified"
