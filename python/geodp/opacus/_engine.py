"""``PrivacyEngine``: Opacus' front door, with geodp's noise, coins, ledger and claims behind it.

Opacus prepares model and criterion as ever. Loader and optimiser are made here, since those two
decide what is released: the loader tosses the coins, the optimiser charges and perturbs.
"""

from __future__ import annotations

import os
import secrets
import warnings
from typing import Any, Literal

import opacus
import torch
from opacus.data_loader import DPDataLoader
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from geodp import account
from geodp.mechanism import NoiseSource
from geodp.opacus._accountant import GeodpAccountant, PldAccountant
from geodp.opacus._optimizer import FlatOptimizer, GhostOptimizer, PerLayerOptimizer, Release
from geodp.opacus._sampler import PoissonSampler

Mechanism = Literal["dp", "geodp"]

NEIGHBOURS: account.Adjacency = "zero-out"
"""One record's content is blanked. The number of records is public: the sample rate is made of it."""


class PrivacyEngine(opacus.PrivacyEngine):
    """Opacus' engine with secure noise, a ledger, and GeoDP.

    ``mechanism``
        "dp" (Gaussian noise on every coordinate, certified) or "geodp" (noise on magnitude and
        direction, needs ``beta``, conditional).
    ``ledger``
        A file that is charged, durably, before each release; it must not exist yet, unless
        ``resume`` continues it. Without one the account lives and dies with the process.
    ``delta``
        δ that the ledger's totals are stated at.
    ``seed``
        For experiments: repeatable noise and coins, which protect nothing from whoever knows it.
    """

    def __init__(
        self,
        *,
        mechanism: Mechanism | str = "dp",
        beta: float | None = None,
        ledger: str | os.PathLike[str] | None = None,
        delta: float = 1e-5,
        resume: bool = False,
        seed: int | None = None,
    ) -> None:
        if mechanism == "geodp-certified":
            raise ValueError(
                "geodp-certified is a theorem about sums of whole numbers, one vector on a grid for "
                "each record; Opacus sums in floating point. Train it with geodp.train"
            )
        if mechanism not in ("dp", "geodp"):
            raise ValueError(f"unknown mechanism '{mechanism}': use one of dp, geodp")
        if (mechanism == "geodp") != (beta is not None):
            raise ValueError('beta in (0, 1] belongs to mechanism="geodp": give both or neither')
        kind = GeodpAccountant if mechanism == "geodp" else PldAccountant
        with warnings.catch_warnings():
            # Opacus warns that its own generator is not secure; it is not used.
            warnings.simplefilter("ignore")
            super().__init__(accountant=kind.mechanism())
        self._mechanism, self._beta, self._seed = mechanism, beta, seed
        self._ledger_path, self._delta, self._resume = ledger, delta, resume
        self._ledger: account.LedgerWriter | None = None
        self._charges: list[tuple[dict[str, Any], int]] = []
        self._steps = 0

    def make_private(self, **settings: Any) -> Any:
        """As Opacus'; refuses what cannot be right, with the reason."""
        module, loader = settings["module"], settings["data_loader"]
        self._refuse(module, settings)
        is_distributed = isinstance(module, DPDDP)
        rank = distributed.get_rank() if is_distributed else 0
        self._open_ledger(rank)
        self._sampler = self._make_sampler(loader, is_distributed)
        noise = NoiseSource(self._seed) if rank == 0 else None
        self._release = Release(
            mechanism=self._mechanism,
            beta=self._beta,
            batch=self._sampler.batch,
            noise=noise,
            charge=self._charge,
            is_distributed=is_distributed,
        )
        made = super().make_private(**settings)
        optimizer = made[1]
        optimizer.expected_batch_size = self._sampler.batch
        # Opacus counts a step after its noise; the release has counted it before.
        optimizer.attach_step_hook(None)
        return made

    def make_private_with_epsilon(
        self, *, target_epsilon: float, target_delta: float, epochs: int, **settings: Any
    ) -> Any:
        """As Opacus'; σ is the smallest whose certified ε stays within the target."""
        if self._mechanism == "geodp":
            raise ValueError(
                "GeoDP has no certified ε to calibrate to; give make_private a noise_multiplier "
                "and ask statement(delta) what it costs under GeoDP's assumption"
            )
        loader = settings["data_loader"]
        records, batch = _sizes(loader)
        sampler = PoissonSampler(NoiseSource(), records, batch)
        sigma = account.noise_multiplier(
            epsilon=target_epsilon,
            delta=target_delta,
            sample_rate=sampler.sample_rate,
            steps=epochs * len(sampler),
        )
        return self.make_private(noise_multiplier=sigma, **settings)

    def statement(self, delta: float | None = None) -> list[account.Claim]:
        """What may be said of all releases so far, each claim with its kind; strongest first."""
        total = account.Account(
            delta=self._delta if delta is None else delta, adjacency=NEIGHBOURS
        )
        for event, count in self._charges:
            total.charge(event, count)
        return total.claims()

    def _refuse(self, module: torch.nn.Module, settings: dict[str, Any]) -> None:
        mode = settings.get("grad_sample_mode", "hooks")
        if mode not in ("hooks", "functorch", "ghost"):
            reason = (
                "sharded parameters have no common order of coordinates, and a release is of all of "
                "them at once"
                if "fsdp" in mode or "tp" in mode
                else "it was not tried"
            )
            raise ValueError(f'grad_sample_mode="{mode}": {reason}; use hooks, functorch or ghost')
        if type(module).__module__.startswith("torch.distributed.fsdp") or hasattr(
            module, "set_requires_gradient_sync"
        ):
            raise ValueError(
                "FSDP shards parameters, so no rank has the gradient's coordinates in one order, "
                "and GeoDP's angles depend on it; use DifferentiallyPrivateDistributedDataParallel"
            )
        if isinstance(module, DistributedDataParallel):
            raise ValueError(
                "torch's DistributedDataParallel averages gradients by itself, before they are "
                "clipped; wrap the model in opacus.distributed."
                "DifferentiallyPrivateDistributedDataParallel"
            )
        clipping = settings.get("clipping", "flat")
        if clipping == "adaptive":
            raise ValueError('clipping="adaptive" releases a count that no ledger here charges')
        if clipping == "per_layer" and self._mechanism == "geodp":
            raise ValueError(
                "per-layer clipping bounds each layer by itself, and GeoDP's noise is scaled for "
                'one threshold over all coordinates; use clipping="flat"'
            )
        if not settings.get("poisson_sampling", True):
            raise ValueError(
                "poisson_sampling=False: batches that are not Poisson samples are not what is "
                "accounted; leave it on"
            )
        if settings.get("noise_generator") is not None:
            raise ValueError("noise comes from ChaCha20; for repeatable noise say seed=")

    def _open_ledger(self, rank: int) -> None:
        if self._ledger_path is None or rank != 0 or self._ledger is not None:
            return
        if self._resume:
            spent = account.Ledger(self._ledger_path)
            self._charges = [(dict(event), count) for _, event, count in spent.charges]
            self._steps = spent.steps
            self._ledger = account.LedgerWriter.open(self._ledger_path)
        else:
            plan = f"geodp.opacus {self._mechanism}"
            self._ledger = account.LedgerWriter.create(
                self._ledger_path, delta=self._delta, plan=plan, adjacency=NEIGHBOURS
            )

    def _charge(self, noise_multiplier: float, dim: int) -> None:
        """One release: in the ledger, then in memory."""
        event: dict[str, Any] = {
            "type": "sampled_gaussian",
            "sample_rate": self._sampler.sample_rate,
            "noise_multiplier": noise_multiplier,
        }
        if noise_multiplier == 0:
            event = {"type": "no_privacy"}
        elif self._mechanism == "geodp":
            event = {"type": "geometric", "event": event, "beta": self._beta, "dim": dim}
        if self._ledger is not None:
            self._ledger.append(step=self._steps + 1, event=event)
        self._steps += 1
        self.accountant.step(
            noise_multiplier=noise_multiplier, sample_rate=self._sampler.sample_rate
        )
        if self._charges and self._charges[-1][0] == event:
            event, count = self._charges.pop()
            self._charges.append((event, count + 1))
        else:
            self._charges.append((event, 1))

    def _make_sampler(self, loader: DataLoader[Any], is_distributed: bool) -> PoissonSampler:
        records, batch = _sizes(loader)
        if not is_distributed:
            coins = NoiseSource(self._seed)
            return PoissonSampler(coins, records, batch)
        rank, world_size = distributed.get_rank(), distributed.get_world_size()
        # Rank 0's bytes replace the others'.
        shared = [secrets.token_bytes(32)]
        distributed.broadcast_object_list(shared, 0)
        coins = NoiseSource.from_key(shared[0]) if self._seed is None else NoiseSource(self._seed)
        return PoissonSampler(coins, records, batch, rank, world_size)

    def _prepare_data_loader(
        self, data_loader: DataLoader[Any], *, batch_first: bool = True, **_: Any
    ) -> DataLoader[Any]:
        self.dataset = data_loader.dataset
        # Opacus' loader brings the collation of empty batches; its sampler is replaced.
        stock = DPDataLoader.from_data_loader(data_loader, batch_first=batch_first)
        return DataLoader(
            dataset=stock.dataset,
            batch_sampler=self._sampler,
            num_workers=stock.num_workers,
            collate_fn=stock.collate_fn,
            pin_memory=stock.pin_memory,
            timeout=stock.timeout,
            worker_init_fn=stock.worker_init_fn,
            multiprocessing_context=stock.multiprocessing_context,
            prefetch_factor=stock.prefetch_factor,
            persistent_workers=stock.persistent_workers,
        )

    def _prepare_optimizer(
        self,
        *,
        optimizer: torch.optim.Optimizer,
        clipping: str = "flat",
        grad_sample_mode: str = "hooks",
        distributed: bool = False,
        noise_generator: object = None,
        **settings: Any,
    ) -> Any:
        optimizer = getattr(optimizer, "original_optimizer", optimizer)
        if grad_sample_mode == "ghost":
            kind: Any = GhostOptimizer
        else:
            kind = PerLayerOptimizer if clipping == "per_layer" else FlatOptimizer
        made = kind(optimizer, **settings)
        made.release = self._release
        return made


def _sizes(loader: DataLoader[Any]) -> tuple[int, int]:
    """Records and expected batch of a loader."""
    if loader.batch_size is None:
        raise ValueError("the data loader has no batch_size; it is the expected batch of a step")
    records = len(loader.dataset)  # type: ignore[arg-type]
    return records, min(loader.batch_size, records)
