"""``PrivacyEngine``: Opacus' front door, with geodp's noise, coins, ledger and claims behind it.

Opacus prepares model and criterion as ever. Loader and optimiser are made here, since those two
decide what is released: the loader tosses the coins, the optimiser charges and perturbs.
"""

from __future__ import annotations

import os
import secrets
import warnings
from typing import Any, Final, Literal

import opacus
import torch
from opacus.data_loader import DPDataLoader
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from geodp import account
from geodp.mechanism import NoiseSource
from geodp.opacus._accountant import PldAccountant, sampled_gaussian
from geodp.opacus._optimizer import FlatOptimizer, GhostOptimizer, PerLayerOptimizer, Release
from geodp.opacus._sampler import PoissonSampler

Mechanism = Literal["dp", "geodp", "geodp-certified"]

MISS_OF_DELTA = 1e-10
"""Chance of a miss for each step of certified GeoDP, as a part of δ: a hundred thousand steps at ε = 6
spend less than a hundredth of δ on it."""

NEIGHBOURS: Final = "zero-out"
"""One record's content is blanked. The number of records is public: the sample rate is made of it."""


class PrivacyEngine(opacus.PrivacyEngine):
    """Opacus' engine with secure noise, a ledger, and GeoDP.

    ``mechanism``
        "dp" (Gaussian noise on every coordinate, certified), "geodp" (noise on magnitude and
        direction, needs ``beta``, conditional) or "geodp-certified" (the same with the direction's
        sensitivity enforced, at DP's ε; ``miss`` is the chance of each step that is charged on δ).
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
        miss: float | None = None,
        ledger: str | os.PathLike[str] | None = None,
        delta: float = 1e-5,
        resume: bool = False,
        seed: int | None = None,
    ) -> None:
        if mechanism not in ("dp", "geodp", "geodp-certified"):
            names = "dp, geodp, geodp-certified"
            raise ValueError(f"unknown mechanism '{mechanism}': use one of {names}")
        if (mechanism == "geodp") != (beta is not None):
            raise ValueError('beta in (0, 1] belongs to mechanism="geodp": give both or neither')
        if miss is not None and mechanism != "geodp-certified":
            raise ValueError('miss belongs to mechanism="geodp-certified"')
        with warnings.catch_warnings():
            # Opacus warns that its own generator is not secure; it is not used.
            warnings.simplefilter("ignore")
            super().__init__(accountant=PldAccountant.mechanism())
        self._mechanism, self._beta, self._seed = mechanism, beta, seed
        self._ledger_path, self._delta, self._resume = ledger, delta, resume
        if mechanism == "geodp-certified" and miss is None:
            miss = MISS_OF_DELTA * delta
        self._miss = miss
        self._ledger: account.LedgerWriter | None = None

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
            miss=self._miss,
            sampler=self._sampler,
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
            adjacency=NEIGHBOURS,
            miss=self._miss,
        )
        return self.make_private(noise_multiplier=sigma, **settings)

    def get_epsilon(self, delta: float) -> float:
        """The certified ε of all releases so far, an upper bound; refuses for GeoDP, which has none."""
        return self.accountant.get_epsilon(delta)

    def statement(self, delta: float | None = None) -> list[account.Claim]:
        """What may be said of all releases so far, each claim with its kind; strongest first."""
        at = self._delta if delta is None else delta
        claims: list[account.Claim] = self.accountant.claims(at, NEIGHBOURS)
        return claims

    def load_checkpoint(self, **settings: Any) -> Any:
        """As Opacus'. Where there is a ledger, it and not the checkpoint says what was spent."""
        events = self.accountant.events
        loaded = super().load_checkpoint(**settings)
        if self._ledger is not None:
            self.accountant.events = events
        return loaded

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
            for _, event, count in account.Ledger(self._ledger_path).charges:
                self.accountant.charge(event, count)
            self._ledger = account.LedgerWriter.open(self._ledger_path)
        else:
            plan = f"geodp.opacus {self._mechanism}"
            self._ledger = account.LedgerWriter.create(
                self._ledger_path, delta=self._delta, plan=plan, adjacency=NEIGHBOURS
            )

    def _charge(self, noise_multiplier: float, dim: int) -> None:
        """One release: in the ledger, then in memory."""
        event = sampled_gaussian(noise_multiplier, self._sampler.sample_rate)
        if noise_multiplier != 0 and self._mechanism == "geodp":
            event = {"type": "geometric", "event": event, "beta": self._beta, "dim": dim}
        elif noise_multiplier != 0 and self._mechanism == "geodp-certified":
            event = {"type": "polar", "event": event, "miss": self._miss}
        if self._ledger is not None:
            self._ledger.append(step=len(self.accountant) + 1, event=event)
        self.accountant.charge(event)

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
