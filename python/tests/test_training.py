"""Training from Python: results, news, Ctrl-C, kill and resume, the bits of the command line."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import geodp
from geodp import account

# A seed is warned about, and a few steps teach little.
pytestmark = pytest.mark.filterwarnings("ignore::geodp.RunWarning")

SMALL: dict[str, Any] = {"batch": 64, "steps": 40, "learning_rate": 5.0}
ROOT = Path(__file__).parents[2]


def table(records: int = 600) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    random = np.random.default_rng(0)
    inputs = random.uniform(-1, 1, (records, 4)).astype(np.float32)
    return inputs, (inputs[:, 0] + inputs[:, 1] > 0).astype(np.int64)


def trained(folder: Path, **settings: Any) -> geodp.Run:
    inputs, labels = table()
    whole = {"model": "logistic", "train": SMALL, "epsilon": 8.0, "progress": False, **settings}
    return geodp.train(inputs, labels, folder=folder, classes=2, **whole)


def test_arrays_in_a_model_and_a_statement_out(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    inputs, labels = table()
    assert (run.predict(inputs) == labels).mean() > 0.85
    probabilities = run.predict_proba(inputs)
    assert probabilities.shape == (600, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert run.statement.kind == "certified" and 7.5 < float(run.statement) <= 8.0
    assert "certified" in str(run.statement) and "certified" in repr(run)
    assert run.metrics[-1]["step"] == 40
    assert "<html" in run.report.lower() and "srcdoc" in run._repr_html_()
    claims = account.Ledger(tmp_path / "run/ledger.jsonl").claims()
    assert claims == run.statement.claims
    again = geodp.Run(tmp_path / "run")
    np.testing.assert_array_equal(again.predict_proba(inputs), probabilities)


def test_a_model_lives_without_its_folder(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    inputs, _ = table()
    expected = run.predict_proba(inputs)
    packed = pickle.dumps(run.model)
    shutil.rmtree(tmp_path / "run")
    np.testing.assert_array_equal(pickle.loads(packed).predict_proba(inputs), expected)


def test_geodp_has_no_bare_number(tmp_path: Path) -> None:
    privacy = {"mechanism": "geodp", "beta": 0.1, "noise_multiplier": 1.0}
    run = trained(tmp_path / "run", privacy=privacy, epsilon=None)
    assert run.statement.kind == "conditional"
    with pytest.raises(TypeError, match="conditional, not certified"):
        float(run.statement)
    assert run.statement.claims[0].epsilon.upper > 0
    assert run.statement.claims[0].assumption is not None


def test_records_are_measured_where_that_is_asked(tmp_path: Path) -> None:
    measured = trained(tmp_path / "run", train={**SMALL, "measure": 50}).measured
    assert measured is not None and len(measured["followed"]["totals"]) == 50
    assert trained(tmp_path / "plain").measured is None


def test_a_seed_repeats_the_bits(tmp_path: Path) -> None:
    first = trained(tmp_path / "a", seed=7)
    with pytest.warns(geodp.RunWarning, match="seed"):
        second = trained(tmp_path / "b", seed=7)
    weights = [(run.folder / "model.safetensors").read_bytes() for run in (first, second)]
    assert weights[0] == weights[1]
    assert "seed 7" in str(first.statement)


def test_the_command_line_makes_the_same_bits(tmp_path: Path) -> None:
    binary = Path(os.environ.get("GEODP_BINARY", ROOT / "target/debug/geodp"))
    if not binary.exists():
        pytest.skip("the binary is not built; GEODP_BINARY names another")
    settings: dict[str, Any] = {"batch": 64, "steps": 3, "learning_rate": 2.0}
    run = geodp.train(
        "mnist", folder=tmp_path / "py", model="logistic", train=settings, seed=5, progress=False
    )
    command = "train --data mnist --model logistic --batch 64 --steps 3 --learning-rate 2 --seed 5"
    out = ["--out", str(tmp_path / "cli")]
    subprocess.run([binary, *command.split(), *out], check=True, capture_output=True)
    models = [folder / "model.safetensors" for folder in (run.folder, tmp_path / "cli")]
    assert models[0].read_bytes() == models[1].read_bytes()
    # A run has a random name; its charges are the same.
    ledgers = [account.Ledger(folder.with_name("ledger.jsonl")) for folder in models]
    assert ledgers[0].charges == ledgers[1].charges
    arrays = trained(tmp_path / "arrays", seed=5)
    again = ["train", "--config", str(arrays.folder / "run.toml"), "--out", str(tmp_path / "again")]
    subprocess.run([binary, *again], check=True, capture_output=True)
    model = (tmp_path / "again/model.safetensors").read_bytes()
    assert (arrays.folder / "model.safetensors").read_bytes() == model


def test_news_reach_the_callback_while_threads_go_on(tmp_path: Path) -> None:
    news: list[tuple[str, Any]] = []
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.002)

    thread = threading.Thread(target=tick)
    thread.start()
    settings = {**SMALL, "steps": 400}
    began = time.monotonic()
    trained(tmp_path / "run", train=settings, callback=lambda kind, what: news.append((kind, what)))
    ended = time.monotonic()
    stop.set()
    thread.join()
    blocks = [what for kind, what in news if kind == "block"]
    assert blocks and blocks[-1]["step"] == 400
    assert [what for kind, what in news if kind == "step"][-1][1] == 400
    assert sum(began < tick < ended for tick in ticks) >= 5


def test_an_exception_of_the_callback_stops_with_a_checkpoint(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def callback(kind: str, what: Any) -> None:
        if kind == "block":
            raise Enough

    settings = {**SMALL, "steps": 4000, "checkpoint_every": 20}
    with pytest.raises(Enough):
        trained(tmp_path / "run", train=settings, seed=1, callback=callback)
    with pytest.raises(FileExistsError):
        trained(tmp_path / "run", train=settings, seed=1)
    resumed = geodp.Run.resume(tmp_path / "run", progress=False)
    whole = trained(tmp_path / "whole", train=settings, seed=1)
    parts = [(run.folder / "model.safetensors").read_bytes() for run in (resumed, whole)]
    assert parts[0] == parts[1]


INTERRUPTED = """
import signal, sys
from pathlib import Path
import test_training
# Shells start what runs in the background with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    test_training.trained(Path(sys.argv[1]), seed=1,
        train={"batch": 64, "steps": 300_000, "learning_rate": 1.0, "checkpoint_every": 50},
        callback=lambda kind, what: kind == "block" and print("block", flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_control_c_and_a_kill_leave_a_run_that_resumes(by: signal.Signals, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "run")]
    here = str(Path(__file__).parent)
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": here}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "block\n"
        process.send_signal(by)
        sent = time.monotonic()
        rest = process.stdout.read()
        took = time.monotonic() - sent
    if by == signal.SIGINT:
        assert rest.endswith("interrupted\n") and took < 5  # A second, on a machine of its own.
    charged = account.Ledger(tmp_path / "run/ledger.jsonl").steps
    assert charged >= 50

    class Enough(Exception):
        pass

    seen: list[int] = []

    def callback(kind: str, what: Any) -> None:
        if kind == "block":
            seen.append(what["step"])
            raise Enough

    with pytest.raises(Enough):
        geodp.Run.resume(tmp_path / "run", progress=False, callback=callback)
    assert seen[0] >= 50 and account.Ledger(tmp_path / "run/ledger.jsonl").steps >= charged


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"privacy": {"epsilonn": 1.0}}, "epsilonn"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"model": "transformer"}, "transformer"),
        ({"train": {"batch": 10_000}}, "batch"),
    ],
)
def test_a_wrong_config_is_a_value_error(
    settings: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=complaint):
        trained(tmp_path / "run", **settings)


def test_arrays_need_labels_and_what_they_are(tmp_path: Path) -> None:
    inputs, labels = table()
    wrong: dict[str, dict[str, Any]] = {
        "need classes": {},
        "target_range": {"classes": 2, "target_range": (0, 1)},
        "loss belongs": {"classes": 2, "loss": "huber"},
        "belong together": {"classes": 2, "units": labels},
        "3 units for": {"classes": 2, "units": [1, 2, 3], "rows_per_unit": 2},
    }
    for complaint, settings in wrong.items():
        with pytest.raises(ValueError, match=complaint):
            geodp.train(inputs, labels, folder=tmp_path / "run", **settings)
    with pytest.raises(ValueError, match="public ranges"):
        geodp.train(3 * inputs, labels, folder=tmp_path / "run", target_range=(0, 1))
    with pytest.raises(TypeError, match="whole numbers"):
        geodp.train(inputs, labels * 0.5, folder=tmp_path / "run", classes=2)
    with pytest.raises(ValueError, match="label 6"):
        geodp.train(inputs, labels + 6, folder=tmp_path / "run", classes=2, model="logistic")
