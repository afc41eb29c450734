"""GeoDP and DP at client level inside Flower (message API, flwr 1.41), with a durable ledger.

    strategy = GeoDPStrategy(
        run_dir="run", population=1000, sample_rate=0.1, rounds=100, clip_norm=0.25,
        epsilon=3.0, delta=1e-4, mechanism="dp",
    )
    strategy.start(grid, initial_arrays=ArrayRecord(model.state_dict()), num_rounds=100)
    print(strategy.statement)

What Flower's own wrappers leave open is closed here: cohorts are drawn by independent secret coins (so the
account is amplified, and true), noise is ChaCha20's and not NumPy's, the sum is divided by the public
``sample_rate × population``, every round is charged on disk before it is sent, the round beyond the limit
is not made, and no metrics of clients are released.

Nodes take places 0, 1, … of ``population`` as they are first seen. A place without a node, a client that
fails, is late, or sends what is not finite or of another shape, contributes nothing. Unit of privacy: one
node with all its data. A client that comes back under another node id is another unit.
"""

import time
from collections.abc import Callable, Iterable
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from flwr.supercore import log

from geodp import federated
from geodp._statement import Statement
from geodp.account import Claim
from geodp.federated import LocalNetwork

__all__ = ["GeoDPStrategy", "native_client", "torch_client"]

SLOT, BITS = "geodp-client", "geodp-bits"
"""What a client is told besides the round: its place, and bits to draw its batches by."""


class _Layout:
    """An ArrayRecord as one vector: its floating-point arrays, in their order."""

    def __init__(self, arrays: ArrayRecord) -> None:
        values = {name: array.numpy() for name, array in arrays.items()}
        self.kept = {n: v for n, v in values.items() if not np.issubdtype(v.dtype, np.floating)}
        self.trained = [
            (n, v.shape, v.dtype) for n, v in values.items() if np.issubdtype(v.dtype, np.floating)
        ]
        self.names = list(values)

    def flat(self, arrays: ArrayRecord) -> npt.NDArray[np.float32]:
        """All trained values in a row. KeyError or ValueError where the record has another form."""
        parts = []
        for name, shape, _ in self.trained:
            value = arrays[name].numpy()
            if value.shape != shape:
                raise ValueError(f"{name} has shape {value.shape}, not {shape}")
            parts.append(np.asarray(value, np.float32).ravel())
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def record(self, flat: npt.NDArray[np.float32]) -> ArrayRecord:
        """The vector as arrays again, with what is not trained as it was."""
        values, at = dict(self.kept), 0
        for name, shape, dtype in self.trained:
            size = int(np.prod(shape, dtype=np.int64))
            values[name] = flat[at : at + size].reshape(shape).astype(dtype)
            at += size
        return ArrayRecord({name: Array(values[name]) for name in self.names})


class GeoDPStrategy(Strategy):  # type: ignore[misc]
    """A Flower strategy whose rounds are those of ``geodp.federated``.

    ``options`` are those of :func:`geodp.federated.settings`: ``population``, ``sample_rate``, ``rounds``,
    ``clip_norm``, ``delta``, ``noise_multiplier`` or ``epsilon``, ``epsilon_limit``, ``mechanism``,
    ``beta``, ``clip``, ``quantile``, ``server_lr``, ``server_optimizer``, ``seed``. A federation that was begun in ``run_dir`` is
    taken up there; the arrays given to ``start`` then serve for their form.
    """

    def __init__(
        self,
        *,
        run_dir: str | Path,
        population: int,
        min_available_nodes: int = 1,
        arrayrecord_key: str = "arrays",
        configrecord_key: str = "config",
        model: str = "",
        **options: Any,
    ) -> None:
        federated.settings(population=population, **options)
        self.run_dir, self.population, self.options = Path(run_dir), population, options
        self.min_available_nodes, self.model = min_available_nodes, model
        self.arrayrecord_key, self.configrecord_key = arrayrecord_key, configrecord_key
        self.statement: Statement | None = None
        self._server: federated.Server | None = None
        self._layout: _Layout | None = None
        self._places: dict[int, int] = {}
        self._sent = np.zeros(0, np.float32)
        self._open = False

    def claim(self) -> Claim | None:
        """What was charged so far, with its kind; None before the first round."""
        if self.statement is not None:
            return self.statement.claims[0]
        return None if self._server is None else self._server.claim()

    def start(self, *args: Any, **kwargs: Any) -> Result:
        """As any strategy's; once all rounds are done, writes model, statement and report."""
        result = super().start(*args, **kwargs)
        server = self._server
        if server is not None and self.statement is None and server.rounds_done == server.rounds:
            self.statement = server.conclude()
            log(INFO, "%s", self.statement)
        return result

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Charges the round, draws its cohort by secret coins, and asks those of it that are there."""
        server, layout = self._opened(arrays)
        nodes = self._nodes(grid)
        begun = None if self.statement is not None else server.begin()
        self._open = begun is not None
        if begun is None:
            log(INFO, "geodp: all %s rounds are done, no further one is made", server.rounds)
            return []
        self._sent = server.weights
        record, messages = layout.record(self._sent), []
        for place in begun.cohort.tolist():
            if place in nodes:
                told = ConfigRecord({**config, "server-round": server_round})
                # A record holds signed whole numbers; the bits come back by the same cast.
                told[SLOT], told[BITS] = place, int(np.uint64(begun.bits).astype(np.int64))
                content = RecordDict({self.arrayrecord_key: record, self.configrecord_key: told})
                messages.append(
                    Message(
                        content=content, dst_node_id=nodes[place], message_type=MessageType.TRAIN
                    )
                )
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Adds what came, releases the round, and answers the new weights. No metrics."""
        server, layout = self._server, self._layout
        if not self._open or server is None or layout is None:
            return None, None
        for reply in replies:
            place = self._places.get(reply.metadata.src_node_id)
            update = self._update(reply, layout)
            if place is not None and update is not None:
                server.add(place, update)
        self._open = False
        return layout.record(server.finish()), None

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Nobody is asked: what clients measure is private, and no budget is set aside for it."""
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> None:
        """Nothing, see :meth:`configure_evaluate`; ``start`` takes an ``evaluate_fn`` for public data."""

    def summary(self) -> None:
        """Logs what protects the clients."""
        for name, value in {"population": self.population, **self.options}.items():
            log(INFO, "\t├──> %s: %s", name, value)

    def _opened(self, arrays: ArrayRecord) -> tuple[federated.Server, _Layout]:
        if self._server is None or self._layout is None:
            self._layout = _Layout(arrays)
            self._server = federated.Server(
                self.run_dir,
                self._layout.flat(arrays),
                population=self.population,
                model=self.model,
                clients=f"{self.population} Flower nodes",
                **self.options,
            )
            for warning in self._server.warnings:
                log(WARNING, "geodp: %s", warning)
        return self._server, self._layout

    def _nodes(self, grid: Grid) -> dict[int, int]:
        """Who is there: places to node ids. New nodes take the next places, decided by no coin."""
        while len(ids := sorted(grid.get_node_ids())) < self.min_available_nodes:
            time.sleep(0.5)
        for node in ids:
            if node not in self._places and len(self._places) < self.population:
                self._places[node] = len(self._places)
            elif node not in self._places:
                log(WARNING, "geodp: node %s is beyond the population and is not asked", node)
        return {self._places[node]: node for node in ids if node in self._places}

    def _update(self, reply: Message, layout: _Layout) -> npt.NDArray[np.float32] | None:
        """(Weights after local training) − (weights sent), or None: a bad reply counts as none."""
        try:
            if reply.has_error():
                return None
            after = layout.flat(reply.content.array_records[self.arrayrecord_key])
            with np.errstate(all="ignore"):
                return after - self._sent
        except Exception:  # noqa: BLE001: whatever a client sends must not stop the round
            return None


def _told(message: Message, name: str) -> int:
    """A whole number that the strategy told the client."""
    value = message.content.config_records["config"][name]
    if not isinstance(value, int):
        raise TypeError(f"{name} is {value!r}; this client works with GeoDPStrategy")
    return value


def _reply(message: Message, arrays: ArrayRecord, key: str) -> Message:
    return Message(content=RecordDict({key: arrays}), reply_to=message)


def native_client(
    network: LocalNetwork,
    data: Callable[[int, Context], tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]],
    *,
    epochs: int = 1,
    batch: int = 20,
    learning_rate: float = 0.1,
) -> ClientApp:
    """A ClientApp that trains with this project's engine, without torch.

    ``data`` gives inputs (a row each) and labels, by the client's place and Flower's context. The weights
    are one array; start from ``ArrayRecord({"weights": Array(network.init())})``.
    """
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        arrays = message.content.array_records["arrays"]
        place, bits = _told(message, SLOT), int(np.int64(_told(message, BITS)).astype(np.uint64))
        inputs, labels = data(place, context)
        (name,) = arrays.keys()
        after = network.train(
            arrays[name].numpy(),
            np.ascontiguousarray(inputs, np.float32),
            np.ascontiguousarray(labels, np.int64),
            epochs=epochs,
            batch=batch,
            learning_rate=learning_rate,
            client=place,
            bits=bits,
        )
        return _reply(message, ArrayRecord({name: Array(after)}), "arrays")

    return app


def torch_client(
    model: Callable[[], Any],
    data: Callable[[int, Context], Iterable[tuple[Any, Any]]],
    *,
    loss: Callable[[Any, Any], Any] | None = None,
    epochs: int = 1,
    learning_rate: float = 0.1,
) -> ClientApp:
    """A ClientApp that trains any torch module by SGD.

    ``data`` gives the client's batches of (inputs, targets), by its place and Flower's context; ``loss``
    is the cross-entropy unless another is given.
    """
    import torch

    criterion = loss or torch.nn.functional.cross_entropy
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        module = model()
        module.load_state_dict(message.content.array_records["arrays"].to_torch_state_dict())
        module.train()
        optimizer = torch.optim.SGD(module.parameters(), lr=learning_rate)
        place = _told(message, SLOT)
        for _ in range(epochs):
            for inputs, targets in data(place, context):
                optimizer.zero_grad()
                criterion(module(inputs), targets).backward()
                optimizer.step()
        return _reply(message, ArrayRecord(module.state_dict()), "arrays")

    return app
