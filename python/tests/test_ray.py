"""Training over Ray: the bits of one process, also after an actor was killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")

import geodp  # noqa: E402
import geodp.ray  # noqa: E402
from geodp.training import RunWarning  # noqa: E402

# Ray leaves files and processes of its own to the collector of garbage, and gives tips.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:Tip. In future:FutureWarning")

SETTINGS: dict[str, Any] = {
    "model": "logistic",
    "privacy": {"noise_multiplier": 1.0},
    "train": {"steps": 6, "batch": 256},
    "seed": 5,
    "progress": False,
}
MNIST = {"source": "mnist", "labels": [0, 1]}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def bits(run: geodp.Run) -> tuple[bytes, ...]:
    return tuple((run.folder / name).read_bytes() for name in ("model.safetensors", "statement.json"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, ...]:
    return bits(geodp.train(MNIST, folder=tmp_path_factory.mktemp("alone") / "run", **SETTINGS))


@pytest.mark.filterwarnings("ignore::geodp.training.RunWarning")
@pytest.mark.parametrize("workers", [1, 2])
def test_the_bits_of_one_process(tmp_path: Path, alone: tuple[bytes, ...], workers: int) -> None:
    run = geodp.ray.train(MNIST, folder=tmp_path / "run", workers=workers, **SETTINGS)
    assert bits(run) == alone


@pytest.mark.filterwarnings("ignore::geodp.training.RunWarning")
def test_a_killed_actor_is_replaced_and_its_part_repeated(
    tmp_path: Path, alone: tuple[bytes, ...]
) -> None:
    class Killing(geodp.ray.Actors):
        steps = 0

        def broadcast(self, weights: Any) -> None:
            super().broadcast(weights)
            self.steps += 1
            if self.steps in (2, 4):
                ray.kill(self._actors[1])

    with Killing(2) as actors, pytest.warns(RunWarning, match="worker 1 was lost"):
        run = geodp.train(MNIST, folder=tmp_path / "run", team=actors, **SETTINGS)
    assert bits(run) == alone
    assert actors.steps == 6


@pytest.mark.filterwarnings("ignore::geodp.training.RunWarning")
def test_a_replaced_actor_must_find_the_same_records(tmp_path: Path) -> None:
    table, schema = tmp_path / "t.csv", tmp_path / "s.toml"
    rows = [f"{at % 7},{'ab'[at % 2]}\n" for at in range(200)]
    table.write_text("x,y\n" + "".join(rows))
    schema.write_text(
        '[label]\ncolumn = "y"\nclasses = ["a", "b"]\n[[feature]]\ncolumn = "x"\nrange = [0, 7]\n'
    )

    class Changing(geodp.ray.Actors):
        def broadcast(self, weights: Any) -> None:
            super().broadcast(weights)
            table.write_text("x,y\n" + "".join(reversed(rows)))
            ray.kill(self._actors[1])

    settings = {**SETTINGS, "train": {"steps": 2, "batch": 64}}
    data = {"source": "table", "train": str(table), "schema": str(schema)}
    with Changing(1) as actors, pytest.raises(Exception, match="found other data"):
        geodp.train(data, folder=tmp_path / "run", team=actors, **settings)


@pytest.mark.filterwarnings("ignore::geodp.training.RunWarning")
def test_what_depends_on_the_order_is_refused(tmp_path: Path) -> None:
    settings = {**SETTINGS, "privacy": {"mechanism": "none"}}
    with pytest.raises(Exception, match="without privacy"):
        geodp.ray.train(MNIST, folder=tmp_path / "run", workers=1, **settings)


def test_no_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        geodp.ray.Actors(0)
