"""Accounting from Python: the golden values of dp-accounting, calibration, ledgers."""

from __future__ import annotations

import json
import math
import threading
import time
from pathlib import Path

import pytest

from geodp import account

GOLDEN = Path(__file__).parents[2] / "crates/geodp-account/tests/golden/dp_accounting.json"


def test_a_bracket_holds_the_known_value() -> None:
    bracket = account.epsilon(sample_rate=0.01, noise_multiplier=1.0, steps=1000, delta=1e-5)
    assert 1.8284 in bracket and bracket.width < 0.01 * bracket.upper
    assert float(bracket) == bracket.upper and bracket.adjacency == "add-remove"
    assert "add-remove" in repr(bracket)


def test_epsilon_and_delta_are_each_others_inverse() -> None:
    run = {"sample_rate": 0.02, "noise_multiplier": 0.9, "steps": 500}
    epsilon = account.epsilon(**run, delta=1e-6)  # type: ignore[arg-type]
    delta = account.delta(**run, epsilon=epsilon.upper)  # type: ignore[arg-type]
    assert delta.lower <= 1e-6 * 1.001 and delta.upper > 0.9e-6


def test_replace_one_costs_more_and_rdp_is_one_sided() -> None:
    run = {"sample_rate": 0.01, "noise_multiplier": 1.0, "steps": 100, "delta": 1e-5}
    add = account.epsilon(**run)  # type: ignore[arg-type]
    replace = account.epsilon(**run, adjacency="replace-one")  # type: ignore[arg-type]
    renyi = account.epsilon(**run, method="rdp")  # type: ignore[arg-type]
    assert replace.lower > add.upper
    assert renyi.upper >= add.lower and renyi.reason is not None


def test_calibration_meets_its_target_from_below() -> None:
    sigma = account.noise_multiplier(epsilon=3.0, delta=1e-5, sample_rate=0.02, steps=2000)
    spent = account.epsilon(sample_rate=0.02, noise_multiplier=sigma, steps=2000, delta=1e-5)
    assert 2.99 < spent.upper <= 3.0
    steps = account.steps(epsilon=3.0, delta=1e-5, sample_rate=0.02, noise_multiplier=sigma)
    assert 1990 <= steps < 2010
    rate = account.sample_rate(epsilon=3.0, delta=1e-5, noise_multiplier=sigma, steps=2000)
    assert rate == pytest.approx(0.02, rel=5e-3)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"delta": 0.0}, "delta"),
        ({"sample_rate": 1.5}, "sample rate"),
        ({"noise_multiplier": math.nan}, "noise multiplier"),
        ({"adjacency": "sideways"}, "adjacency"),
        ({"method": "guess"}, "accountant"),
    ],
)
def test_a_wrong_question_is_a_value_error(change: dict[str, object], complaint: str) -> None:
    run = {"sample_rate": 0.01, "noise_multiplier": 1.0, "steps": 100, "delta": 1e-5}
    with pytest.raises(ValueError, match=complaint):
        account.epsilon(**{**run, **change})  # type: ignore[arg-type]


def test_an_accountant_refuses_geodp() -> None:
    plain = {"type": "sampled_gaussian", "sample_rate": 0.01, "noise_multiplier": 1.0}
    accountant = account.Accountant()
    accountant.compose_event(plain, 10)
    with pytest.raises(ValueError, match="assumed, not enforced"):
        accountant.compose_event({"type": "geometric", "event": plain, "beta": 0.1, "dim": 10})
    with pytest.raises(ValueError, match="cannot be read"):
        accountant.compose_event({"type": "magic"})


def test_a_claim_names_its_kind_and_only_a_certified_one_is_a_number() -> None:
    plain = {"type": "sampled_gaussian", "sample_rate": 0.01, "noise_multiplier": 1.0}
    dp = account.Account(delta=1e-5)
    dp.charge(plain, 1000)
    (certified,) = dp.claims()
    bracket = account.epsilon(sample_rate=0.01, noise_multiplier=1.0, steps=1000, delta=1e-5)
    assert certified.kind == "certified" and certified.epsilon == bracket
    assert float(certified) == bracket.upper and certified.delta == 1e-5
    assert str(certified).startswith("certified ε") and certified.assumption is None

    geodp = account.Account(delta=1e-5)
    geodp.charge({"type": "geometric", "event": plain, "beta": 0.1, "dim": 50}, 1000)
    conditional, published = geodp.claims()
    assert (conditional.kind, published.kind) == ("conditional", "as published")
    assert conditional.assumption is not None
    assert conditional.epsilon.lower > published.epsilon.upper == bracket.upper
    for claim in (conditional, published):
        with pytest.raises(TypeError, match="not certified"):
            float(claim)

    bare = account.Account(delta=1e-5)
    bare.charge({"type": "no_privacy"})
    assert bare.claims()[0].kind == "no privacy"
    with pytest.raises(TypeError):
        float(bare.claims()[0])


def test_composition_is_a_sum_of_its_parts() -> None:
    parts, whole = account.Accountant(), account.Accountant()
    for _ in range(4):
        parts.compose(sample_rate=0.01, noise_multiplier=1.0, steps=25)
    whole.compose(sample_rate=0.01, noise_multiplier=1.0, steps=100)
    assert parts.epsilon(1e-5) == whole.epsilon(1e-5)


def test_other_threads_go_on_while_an_accountant_works() -> None:
    ticks, stop = [], threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    account.noise_multiplier(epsilon=1.0, delta=1e-7, sample_rate=0.003, steps=30_000)
    ended = time.monotonic()
    stop.set()
    thread.join()
    assert sum(began < tick < ended for tick in ticks) >= 3


def test_a_ledger_is_durable_chained_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    event = {"type": "sampled_gaussian", "sample_rate": 0.01, "noise_multiplier": 1.0}
    writer = account.LedgerWriter.create(path, delta=1e-5, plan="test")
    writer.append(step=1, event=event)
    again = account.LedgerWriter.open(path)
    again.append(step=3, event=event, count=2)
    ledger = account.Ledger(path)
    assert [(step, count) for step, _, count in ledger.charges] == [(1, 1), (3, 2)]
    assert ledger.charges[0][1] == event
    assert (ledger.steps, ledger.delta, ledger.plan, len(ledger)) == (3, 1e-5, "test", 2)
    (claim,) = ledger.claims()
    run = {"sample_rate": 0.01, "noise_multiplier": 1.0, "steps": 3, "delta": 1e-5}
    assert claim.epsilon == account.epsilon(**run)  # type: ignore[arg-type]
    assert not ledger.torn and ledger.head == again.head
    ledger.verify_against(1, writer.head)
    with pytest.raises(account.LedgerError, match="rewritten"):
        ledger.verify_against(2, writer.head)


def test_an_edited_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    event = {"type": "sampled_gaussian", "sample_rate": 0.01, "noise_multiplier": 0.6}
    account.LedgerWriter.create(path, delta=1e-5, plan="test").append(step=1, event=event)
    path.write_text(path.read_text().replace("0.6", "6.0"))
    with pytest.raises(account.LedgerError, match="line 2: was altered"):
        account.Ledger(path)
    with pytest.raises(OSError, match="exists"):
        account.LedgerWriter.create(path, delta=1e-5, plan="test")
    with pytest.raises(OSError):
        account.Ledger(tmp_path / "missing")


def test_golden_values_of_dp_accounting() -> None:
    """A few rows across the file; Rust's own tests hold all of them."""
    for row in json.loads(GOLDEN.read_text())["sets"][::25]:
        run = {key: row[key] for key in ("sample_rate", "noise_multiplier", "steps", "delta")}
        bracket = account.epsilon(**run)
        assert row["optimistic"] - 2e-7 <= bracket.upper
        # Rounding of their FFT can put their bound below the truth.
        assert bracket.lower <= row["pessimistic"] * (1 + 1e-4) + 2e-7
