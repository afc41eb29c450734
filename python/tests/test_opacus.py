"""geodp inside Opacus: one release whatever the mode, durable charges, ranks that agree."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from geodp import account  # noqa: E402
from geodp.mechanism import NoiseSource, perturb  # noqa: E402

# Opacus and torch warn about their own ways of working; only geodp's warnings matter here.
pytestmark = pytest.mark.filterwarnings("ignore")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from opacus.accountants.utils import get_noise_multiplier
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    from geodp.opacus import NoCertifiedEpsilon, PrivacyEngine

RECORDS, BATCH = 60, 12


def parts(batch: int = BATCH, records: int = RECORDS) -> tuple[Any, Any, Any]:
    """A model, its optimiser and a loader, always the same."""
    torch.manual_seed(0)
    x = torch.randn(records, 5)
    y = (x[:, 0] > 0).long()
    layers = [torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)]
    model = torch.nn.Sequential(*layers)
    data = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(data, batch_size=batch)
    return model, torch.optim.SGD(model.parameters(), lr=0.5), loader


def train(
    engine: Any, epochs: int = 2, sigma: float = 1.0, largest: int | None = None, **settings: Any
) -> Any:
    """The trained weights, flat."""
    model, optimizer, loader = parts(settings.pop("batch", BATCH))
    criterion = torch.nn.CrossEntropyLoss()
    made = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        criterion=criterion,
        noise_multiplier=sigma,
        max_grad_norm=settings.pop("max_grad_norm", 0.5),
        **settings,
    )
    module, optimizer, loader = made[0], made[1], made[-1]
    loss_of = made[2] if len(made) == 4 else criterion

    def epoch(batches: Any) -> None:
        for x, y in batches:
            optimizer.zero_grad()
            loss_of(module(x), y).backward()
            optimizer.step()

    for _ in range(epochs):
        if largest is None:
            epoch(loader)
        else:
            with BatchMemoryManager(
                data_loader=loader, max_physical_batch_size=largest, optimizer=optimizer
            ) as small:
                epoch(small)
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


@pytest.mark.parametrize("mode", ["functorch", "ghost"])
@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_every_mode_makes_the_same_step(mode: str, sigma: float) -> None:
    hooks = train(PrivacyEngine(seed=3), sigma=sigma)
    other = train(PrivacyEngine(seed=3), sigma=sigma, grad_sample_mode=mode)
    torch.testing.assert_close(hooks, other, rtol=1e-4, atol=1e-5)


def test_batches_cut_for_memory_are_the_same_step() -> None:
    whole, cut = PrivacyEngine(seed=3), PrivacyEngine(seed=3)
    torch.testing.assert_close(train(whole), train(cut, largest=4), rtol=1e-4, atol=1e-5)
    assert len(whole.accountant) == len(cut.accountant) == 10


@pytest.mark.parametrize(("mechanism", "beta"), [("dp", None), ("geodp", 0.1)])
def test_the_release_is_rusts_perturbation_of_the_mean(mechanism: Any, beta: Any) -> None:
    def gradient(sigma: float, mechanism: Any, beta: Any) -> Any:
        engine = PrivacyEngine(mechanism=mechanism, beta=beta, seed=9)
        model, optimizer, loader = parts()
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=sigma,
            max_grad_norm=0.5,
        )
        x, y = next(iter(loader))
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        return torch.cat([p.grad.reshape(-1) for p in model.parameters()]).numpy()

    expected = gradient(0.0, "dp", None)
    perturb(
        expected,
        clip_norm=0.5,
        noise_multiplier=2.0,
        batch=BATCH,
        mechanism=mechanism,
        beta=beta,
        noise=NoiseSource(9),
    )
    np.testing.assert_array_equal(gradient(2.0, mechanism, beta), expected)


def test_per_layer_clipping_has_noise_for_all_its_thresholds() -> None:
    weights = train(PrivacyEngine(seed=3), clipping="per_layer", max_grad_norm=[0.1, 0.2, 0.3, 0.4])
    assert torch.isfinite(weights).all()


def test_a_loss_that_sums_is_scaled_by_the_batch() -> None:
    engine = PrivacyEngine(seed=3)
    model, optimizer, loader = parts()
    for group in optimizer.param_groups:
        group["lr"] /= BATCH
    model_s, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=0.5,
        loss_reduction="sum",
    )
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model_s(x), y, reduction="sum").backward()
            optimizer.step()
    weights = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    torch.testing.assert_close(weights, train(PrivacyEngine(seed=3)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
def test_empty_batches_are_steps_and_are_charged(mode: str, tmp_path: Path) -> None:
    engine = PrivacyEngine(seed=1, ledger=tmp_path / "ledger.jsonl")
    # With one expected record a batch, a third of the batches is empty.
    weights = train(engine, epochs=1, batch=1, grad_sample_mode=mode)
    assert torch.isfinite(weights).all()
    assert account.Ledger(tmp_path / "ledger.jsonl").steps == RECORDS == len(engine.accountant)
    coins = NoiseSource(1)
    assert any(len(coins.poisson(step, RECORDS, 1)) == 0 for step in range(RECORDS))


def test_epsilon_of_dp_is_certified_by_the_ledgers_events(tmp_path: Path) -> None:
    engine = PrivacyEngine(ledger=tmp_path / "ledger.jsonl")
    train(engine)
    expected = account.epsilon(
        sample_rate=BATCH / RECORDS,
        noise_multiplier=1.0,
        steps=10,
        delta=1e-3,
        adjacency="zero-out",
    )
    assert engine.get_epsilon(1e-3) == expected.upper
    (claim,) = engine.statement(1e-3)
    assert claim.kind == "certified" and claim.epsilon == expected
    ledger = account.Ledger(tmp_path / "ledger.jsonl")
    assert [event["type"] for _, event, _ in ledger.charges] == ["sampled_gaussian"] * 10


def test_geodp_has_no_epsilon_but_a_statement(tmp_path: Path) -> None:
    engine = PrivacyEngine(mechanism="geodp", beta=0.1, ledger=tmp_path / "ledger.jsonl")
    train(engine)
    with pytest.raises(NoCertifiedEpsilon, match="statement"):
        engine.get_epsilon(1e-5)
    ledger = account.Ledger(tmp_path / "ledger.jsonl")
    assert {event["type"] for _, event, _ in ledger.charges} == {"geometric"}
    claims = engine.statement()
    assert [claim.kind for claim in claims] == ["conditional", "as published"]
    assert claims == ledger.claims()
    plain = PrivacyEngine().accountant
    plain.load_state_dict(engine.accountant.state_dict())
    with pytest.raises(NoCertifiedEpsilon):
        plain.get_epsilon(1e-5)


def test_a_target_epsilon_is_not_passed() -> None:
    engine = PrivacyEngine(delta=1e-3)
    model, optimizer, loader = parts()
    made = engine.make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        target_epsilon=3.0,
        target_delta=1e-3,
        epochs=4,
        max_grad_norm=1.0,
    )
    spent = account.epsilon(
        sample_rate=BATCH / RECORDS,
        noise_multiplier=made[1].noise_multiplier,
        steps=20,
        delta=1e-3,
    )
    assert 2.99 < spent.upper <= 3.0


def test_opacus_calibrates_by_our_accountant() -> None:
    sigma = get_noise_multiplier(
        target_epsilon=3.0, target_delta=1e-5, sample_rate=0.02, steps=500, accountant="geodp-pld"
    )
    spent = account.epsilon(sample_rate=0.02, noise_multiplier=sigma, steps=500, delta=1e-5)
    assert 2.98 < spent.upper <= 3.0


def test_a_ledger_is_continued_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    train(PrivacyEngine(ledger=path))
    with pytest.raises(OSError, match="exists"):
        train(PrivacyEngine(ledger=path))
    train(PrivacyEngine(ledger=path, resume=True))
    assert account.Ledger(path).steps == 20


KILLED = """
import os, sys, warnings
warnings.simplefilter("ignore")
import geodp.opacus._optimizer as optimizer
sys.path.insert(0, sys.argv[2])
import test_opacus as tests
calls = []
def perturb(*given, **named):
    calls.append(given)
    if len(calls) == 3:
        os._exit(9)  # Between the charge and the noise of the third step.
optimizer.perturb = perturb
tests.train(tests.PrivacyEngine(ledger=sys.argv[1]))
"""


def test_a_step_is_paid_for_before_its_noise_exists(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    arguments = [sys.executable, "-c", KILLED, str(path), str(Path(__file__).parent)]
    killed = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert killed.returncode == 9, killed.stderr
    assert account.Ledger(path).steps == 3


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"grad_sample_mode": "ghost_fsdp"}, "order of coordinates"),
        ({"grad_sample_mode": "ew"}, "not tried"),
        ({"clipping": "per_layer", "max_grad_norm": [0.1] * 4}, "one threshold"),
        ({"clipping": "adaptive"}, "no ledger here charges"),
        ({"poisson_sampling": False}, "Poisson"),
    ],
)
def test_what_cannot_be_right_is_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        train(PrivacyEngine(mechanism="geodp", beta=0.1), **settings)


def test_beta_belongs_to_geodp() -> None:
    named = [{"mechanism": name} for name in ("laplace", "geodp")]
    for settings in (*named, {"beta": 0.1}, {"miss": 1e-9}, {"mechanism": "geodp", "miss": 1e-9}):
        with pytest.raises(ValueError):
            PrivacyEngine(**settings)  # type: ignore[arg-type]


RANKS = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from torch import distributed, multiprocessing
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
sys.path.insert(0, sys.argv[2])
import test_opacus as tests

def work(rank, folder, mechanism, beta, mode):
    warnings.simplefilter("ignore")
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    seed = 5
    engine = tests.PrivacyEngine(mechanism=mechanism, beta=beta, seed=seed, ledger=f"{folder}/ledger")
    model, _, loader = tests.parts()
    wrapped = DPDDP(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.5)
    criterion = torch.nn.CrossEntropyLoss()
    made = engine.make_private(module=wrapped, optimizer=optimizer, data_loader=loader,
        criterion=criterion, noise_multiplier=1.0, max_grad_norm=0.5, grad_sample_mode=mode)
    module, optimizer, loader = made[0], made[1], made[-1]
    loss_of = made[2] if len(made) == 4 else criterion
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss_of(module(x), y).backward()
            optimizer.step()
    torch.save(torch.cat([p.detach().reshape(-1) for p in model.parameters()]), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()

if __name__ == "__main__":
    folder, mode = sys.argv[1], sys.argv[3]
    mechanism, beta = sys.argv[4], 0.1 if sys.argv[4] == "geodp" else None
    multiprocessing.start_processes(
        work, (folder, mechanism, beta, mode), nprocs=2, start_method="fork")
"""


CERTIFIED: dict[str, Any] = {"mechanism": "geodp-certified", "delta": 1e-3}


def test_certified_geodp_costs_dps_epsilon(tmp_path: Path) -> None:
    engine = PrivacyEngine(**CERTIFIED, ledger=tmp_path / "ledger.jsonl")
    train(engine)
    (claim,) = engine.statement()
    assert claim.kind == "certified" and claim.arithmetic == "floating point"
    plain = account.epsilon(
        sample_rate=BATCH / RECORDS, noise_multiplier=1.0, steps=10, delta=1e-3
    )
    assert plain.upper < engine.get_epsilon(1e-3) == claim.epsilon.upper < 1.002 * plain.upper
    ledger = account.Ledger(tmp_path / "ledger.jsonl")
    assert ledger.claims() == [claim]
    assert {event["type"] for _, event, _ in ledger.charges} == {"polar"}
    model, optimizer, loader = parts()
    made = PrivacyEngine(**CERTIFIED).make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        target_epsilon=3.0,
        target_delta=1e-3,
        epochs=4,
        max_grad_norm=1.0,
    )
    total = account.Account(delta=1e-3, adjacency="zero-out")
    polar = {**ledger.charges[0][1]}
    polar["event"] = {**polar["event"], "noise_multiplier": made[1].noise_multiplier}
    total.charge(polar, 20)
    assert 2.99 < float(total.claims()[0]) <= 3.0


@pytest.mark.parametrize("mechanism", ["dp", "geodp-certified"])
def test_a_checkpoint_goes_on_to_the_same_bits(mechanism: str, tmp_path: Path) -> None:
    """With noise so small that certified GeoDP leaves its first kind of step."""

    def made(engine: Any) -> tuple[Any, Any, Any]:
        model, optimizer, loader = parts(records=600, batch=300)
        return engine.make_private(  # type: ignore[no-any-return]
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=0.5,
            max_grad_norm=0.1,
        )

    def go_on(model: Any, optimizer: Any, loader: Any, epochs: int) -> Any:
        for _ in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        return torch.cat([p.detach().reshape(-1) for p in model.parameters()])

    whole = go_on(*made(PrivacyEngine(mechanism=mechanism, seed=8)), 4)
    engine, path = PrivacyEngine(mechanism=mechanism, seed=8), tmp_path / "checkpoint.pt"
    first = made(engine)
    go_on(*first, 2)
    engine.save_checkpoint(path=path, module=first[0], optimizer=first[1])
    again = PrivacyEngine(mechanism=mechanism, seed=8)
    second = made(again)
    again.load_checkpoint(path=path, module=second[0], optimizer=second[1])
    if mechanism == "geodp-certified":
        assert second[1].release.history.values()[2][0] > 0, "no polar step was kept"
    torch.testing.assert_close(go_on(*second, 2), whole, rtol=0, atol=0)
    assert len(again.accountant) == 8


def test_the_ledger_and_not_a_checkpoint_says_what_was_spent(tmp_path: Path) -> None:
    ledger, path = tmp_path / "ledger.jsonl", tmp_path / "checkpoint.pt"

    def made(engine: Any) -> tuple[Any, Any, Any]:
        model, optimizer, loader = parts()
        return engine.make_private(  # type: ignore[no-any-return]
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=0.5,
        )

    engine = PrivacyEngine(ledger=ledger)
    model, optimizer, loader = made(engine)
    engine.save_checkpoint(path=path, module=model, optimizer=optimizer)
    x, y = next(iter(loader))
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    again = PrivacyEngine(ledger=ledger, resume=True)
    model, optimizer, _ = made(again)
    again.load_checkpoint(path=path, module=model, optimizer=optimizer)
    assert again.get_epsilon(1e-3) == engine.get_epsilon(1e-3) > 0
    assert len(again.accountant) == 1


@pytest.mark.parametrize("dim", [2, 3, 1025, 21_840, 1_000_000])
def test_geodp_in_torch_is_the_textbook_with_the_same_noise(dim: int) -> None:
    from test_mechanism import geodp_by_angles

    from geodp.opacus import PoissonSampler
    from geodp.opacus._optimizer import Release

    torch.manual_seed(dim)
    total = torch.nn.functional.normalize(torch.randn(dim, dtype=torch.float64), dim=0)
    release = Release(
        mechanism="geodp",
        beta=0.05,
        miss=None,
        sampler=PoissonSampler(NoiseSource(dim), 128, 64),
        noise=NoiseSource(dim),
        charge=lambda sigma, d: None,
        is_distributed=False,
    )
    released = release(total, 0.3, 1.5)
    mean = total.numpy() / 64
    stds = 0.3 * 1.5 / 64, 1.5 * 0.05 * np.pi / 64
    expected = geodp_by_angles(mean, NoiseSource(dim), 0, *stds)
    np.testing.assert_allclose(released.numpy(), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("mechanism", "mode"), [("geodp", "hooks"), ("dp", "ghost"), ("geodp-certified", "hooks")]
)
def test_two_ranks_make_the_weights_of_one(mechanism: Any, mode: str, tmp_path: Path) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    here = str(Path(__file__).parent)
    arguments = [sys.executable, str(script), str(tmp_path), here, mode, mechanism]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    assert torch.equal(first, second)
    beta = 0.1 if mechanism == "geodp" else None
    alone = train(PrivacyEngine(mechanism=mechanism, beta=beta, seed=5), grad_sample_mode=mode)
    torch.testing.assert_close(first, alone, rtol=1e-3, atol=1e-4)
    assert account.Ledger(tmp_path / "ledger").steps == 10
