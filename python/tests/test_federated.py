"""Rounds from Python: what a client sends moves a release by its share at most, and a kill costs once."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from geodp import account
from geodp.federated import LocalNetwork, Server, deal, settings, simulate

DIM = 4
OPTIONS: dict[str, Any] = {
    "population": 50,
    "sample_rate": 0.2,
    "rounds": 4,
    "clip_norm": 0.5,
    "noise_multiplier": 1.0,
    "delta": 1e-3,
    "seed": 5,
}


def server(folder: Path, **changes: Any) -> Server:
    return Server(folder, np.zeros(DIM, np.float32), **OPTIONS | changes)


def update(client: int) -> npt.NDArray[np.float32]:
    return np.float32(0.1) * np.arange(client, client + DIM, dtype=np.float32)


def test_a_federation_has_a_ledger_and_a_statement(tmp_path: Path) -> None:
    federation = server(tmp_path / "run")
    while (begun := federation.begin()) is not None:
        for client in begun.cohort.tolist():
            assert federation.add(client, update(client)) == "added"
            assert federation.add(client, update(client)) == "twice"
        assert federation.add(51, update(0)) == federation.add(-1, update(0)) == "not in cohort"
        assert np.isfinite(federation.finish()).all()
    ledger = account.Ledger(tmp_path / "run" / "ledger.jsonl")
    event = {"type": "sampled_gaussian", "sample_rate": 0.2, "noise_multiplier": 1.0}
    assert ledger.charges == [(n, event, 1) for n in (1, 2, 3, 4)]
    claim = federation.claim()
    statement = federation.conclude()
    assert statement.claims[0] == claim and statement.unit == "client"
    by_hand = account.epsilon(
        sample_rate=0.2, noise_multiplier=1.0, steps=4, delta=1e-3, adjacency="zero-out"
    )
    assert float(statement) == pytest.approx(by_hand.upper, rel=1e-3)
    with pytest.raises(ValueError, match="concluded"):
        federation.begin()


def test_a_killed_server_pays_once_and_replays(tmp_path: Path) -> None:
    killed = server(tmp_path / "run")
    first = killed.begin()
    assert first is not None
    del killed
    resumed = server(tmp_path / "run")
    again = resumed.begin()
    assert again is not None and again.number == 0
    assert again.cohort.tolist() == first.cohort.tolist() and again.bits == first.bits
    resumed.finish()
    assert account.Ledger(tmp_path / "run" / "ledger.jsonl").steps == 1
    assert resumed.rounds_done == 1


def test_nonsense_counts_as_nothing(tmp_path: Path) -> None:
    def first(name: str, sent: npt.NDArray[np.float32] | None) -> npt.NDArray[np.float32]:
        federation = server(tmp_path / name)
        begun = federation.begin()
        assert begun is not None
        if sent is not None:
            assert federation.add(int(begun.cohort[0]), sent) == "unusable"
        return federation.finish()

    silent = first("silent", None)
    bad = {"nan": np.full(DIM, np.nan), "infinite": np.full(DIM, np.inf), "short": np.ones(2)}
    for name, sent in bad.items():
        assert np.array_equal(first(name, sent.astype(np.float32)), silent)


def test_the_limit_is_a_hard_stop(tmp_path: Path) -> None:
    federation = server(tmp_path / "run", rounds=200, epsilon_limit=4.0)
    made = 0
    while federation.begin() is not None:
        federation.finish()
        made += 1
    assert 0 < made < 200 and made == federation.rounds
    assert float(federation.claim()) <= 4.0


def test_c_follows_a_quantile_at_no_other_epsilon(tmp_path: Path) -> None:
    fixed, moving = server(tmp_path / "fixed"), server(tmp_path / "moving", quantile=0.9)
    for federation in (fixed, moving):
        while (begun := federation.begin()) is not None:
            for client in begun.cohort.tolist():
                federation.add(client, update(client))
            federation.finish()
    assert fixed.clip_norm == 0.5 and moving.clip_norm is not None and moving.clip_norm > 0.5
    assert fixed.claim() == moving.claim()
    fast = settings(
        population=10,
        sample_rate=0.5,
        rounds=1,
        clip_norm=1.0,
        delta=1e-3,
        quantile={"quantile": 0.5, "rate": 1.0},
    )
    assert fast["privacy"]["quantile"]["rate"] == 1.0


def test_a_simulation_has_the_bits_of_a_server(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    inputs = random.normal(size=(300, 3)).astype(np.float32)
    labels = (inputs[:, 0] > 0).astype(np.int64)
    network, shards = LocalNetwork.logistic(3, 2), deal(labels, 50, alpha=0.3, seed=2)
    assert shards.shape == (50, 6) and len(np.unique(shards)) == 300
    how: dict[str, Any] = {"epochs": 2, "batch": 4, "learning_rate": 0.5}
    federation = server(tmp_path / "run", mechanism="geodp-certified", quantile=0.5)
    assert len(federation.weights) == DIM == network.dim
    while (begun := federation.begin()) is not None:
        sent = federation.weights
        for client in begun.cohort.tolist():
            own = (inputs[shards[client]], labels[shards[client]])
            after = network.train(sent, *own, client=client, bits=begun.bits, **how)
            assert federation.add(client, after - sent) == "added"
        federation.finish()
    start = np.zeros(DIM, np.float32)
    options = OPTIONS | {"mechanism": "geodp-certified", "quantile": 0.5}
    del options["population"]
    simulated = simulate(network, start, inputs, labels, shards, **how, **options)
    assert np.array_equal(simulated, federation.weights) and simulated.any()
    with pytest.raises(ValueError, match="no record 300"):
        simulate(network, start, inputs, labels, shards + 1, **how, **options)
    for bad in ({"clients": 301}, {"clients": 0}, {"clients": 5, "alpha": 1.0}):
        with pytest.raises(ValueError, match="clients|alpha"):
            deal(labels, **bad)


def test_settings_are_refused_with_reasons(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="whole number"):
        settings(population=10, sample_rate=0.33, rounds=1, clip_norm=1.0, delta=1e-3)
    with pytest.raises(ValueError, match="clip_norm|C"):
        server(tmp_path / "run", clip_norm=-1.0)
    with pytest.raises(TypeError, match="one-dimensional"):
        server(tmp_path / "other").add(0, np.zeros((2, 2), np.float32))


def test_a_local_training_learns(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(200, 3)).astype(np.float32)
    labels = (inputs[:, 0] > 0).astype(np.int64)
    network = LocalNetwork.logistic(3, 2)
    weights = network.init()
    assert len(weights) == network.dim == 4, "two classes need one output"
    after = network.train(weights, inputs, labels, epochs=5, batch=20, learning_rate=0.5, bits=3)
    again = network.train(weights, inputs, labels, epochs=5, batch=20, learning_rate=0.5, bits=3)
    assert np.array_equal(after, again)
    assert network.evaluate(after, inputs, labels)[1] > 0.95
    with pytest.raises(ValueError, match="label 2"):
        network.evaluate(after, inputs, labels + 1)
    described = LocalNetwork(
        json.dumps(
            {
                "input": [3],
                "loss": "softmax_cross_entropy",
                "layers": [{"type": "linear", "outputs": 3}],
            }
        )
    )
    assert described.dim == 12
    same = pickle.loads(pickle.dumps(described))
    assert same.dim == 12 and np.array_equal(same.init(3), described.init(3))
