"""The release inside Opacus' optimisers: sum, charge, perturb once, hand out.

Opacus clips and sums per-sample gradients into ``p.summed_grad`` (hooks, functorch) or makes the
clipped sum by a second backward pass (ghost). From there this module takes over:

    flatten Σ over all parameters → all-reduce → charge → rank 0 perturbs Σ/B → broadcast → p.grad

The charge is durable before any noise is drawn: a process killed in between has paid for a step that
nobody saw, never the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping, DPPerLayerOptimizer
from torch import distributed

from geodp.mechanism import NoiseSource, PolarState, perturb
from geodp.opacus._sampler import PoissonSampler


class Release:
    """How a clipped sum is charged and perturbed."""

    def __init__(
        self,
        *,
        mechanism: str,
        beta: float | None,
        miss: float | None,
        sampler: PoissonSampler,
        noise: NoiseSource | None,
        charge: Callable[[float, int], None],
        is_distributed: bool,
    ) -> None:
        self.mechanism, self.beta, self.miss = mechanism, beta, miss
        self.sampler, self.batch = sampler, sampler.batch
        self.noise, self.charge, self.is_distributed = noise, charge, is_distributed
        self.step = 0
        self.history = PolarState() if mechanism == "geodp-certified" else None

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: steps done, and what certified GeoDP's releases said. No key."""
        return {"step": self.step, "polar": None if self.history is None else self.history.values()}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on after a checkpoint: a seed then draws what it would have drawn."""
        self.step = self.sampler.step = state["step"]
        if self.history is not None and state["polar"] is not None:
            self.history = PolarState(*state["polar"])

    def __call__(
        self, total: torch.Tensor, clip_norm: float, noise_multiplier: float
    ) -> torch.Tensor:
        """The noisy mean of a flat clipped sum, the same on every rank."""
        if self.is_distributed:
            distributed.all_reduce(total)
        failure: BaseException | None = None
        mean = total / self.batch
        try:
            # Every rank counts the step; the ledger is rank 0's.
            self.charge(noise_multiplier, mean.numel())
            if self.noise is not None:
                mean = self._perturb(mean, clip_norm, noise_multiplier, self.noise)
            self.step += 1
        except Exception as error:
            failure = error
        if self.is_distributed:
            # A rank must not wait for a release that another rank refused.
            failed = torch.tensor([failure is not None], dtype=torch.int32)
            distributed.all_reduce(failed)
            if failure is None and failed.item():
                raise RuntimeError("another rank refused the release; its error says why")
        if failure is not None:
            raise failure
        if self.is_distributed:
            distributed.broadcast(mean, 0)
        return mean

    def _perturb(
        self,
        mean: torch.Tensor,
        clip_norm: float,
        noise_multiplier: float,
        noise: NoiseSource,
    ) -> torch.Tensor:
        """Through Rust on the host; a tensor on another device is copied there and back."""
        host = mean.detach().to("cpu", copy=True).contiguous()
        if host.dtype not in (torch.float32, torch.float64):
            host = host.to(torch.float32)
        perturb(
            host.numpy(),
            clip_norm=clip_norm,
            noise_multiplier=noise_multiplier,
            batch=self.batch,
            mechanism=self.mechanism,  # type: ignore[arg-type]
            beta=self.beta,
            miss=self.miss,
            history=self.history,
            noise=noise,
            step=self.step,
        )
        return host.to(device=mean.device, dtype=mean.dtype)


class _WithRelease:
    """Replaces the noise of an Opacus optimiser by a :class:`Release`."""

    release: Release
    #: Parameters, to which Opacus adds ``summed_grad``.
    params: list[Any]
    noise_multiplier: float
    max_grad_norm: float
    loss_reduction: str

    def add_noise(self) -> None:
        """Puts the released gradient into ``p.grad``."""
        if self.accumulated_iterations != 1:  # type: ignore[attr-defined]
            raise ValueError(
                "gradients of several batches were accumulated before one step; that is another "
                "sampling than was accounted. Use opacus.utils.batch_memory_manager for batches "
                "that do not fit into memory"
            )
        for p in self.params:
            if getattr(p.summed_grad, "_processed", False):
                raise ValueError("call optimizer.zero_grad() after every step")
        total = torch.cat([p.summed_grad.reshape(-1) for p in self.params])
        mean = self.release(total, self.max_grad_norm, self.noise_multiplier)
        if self.loss_reduction == "sum":
            mean = mean * self.release.batch
        start = 0
        for p in self.params:
            p.grad = mean[start : start + p.numel()].view_as(p).to(p.dtype).clone()
            p.summed_grad._processed = True
            start += p.numel()

    def scale_grad(self) -> None:
        """Nothing: the release is a mean already."""

    def state_dict(self) -> dict[str, Any]:
        """As Opacus', and what the release needs to go on."""
        return {**super().state_dict(), "geodp": self.release.state()}  # type: ignore[misc]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As Opacus', and the release goes on after it."""
        rest = dict(state_dict)
        state = rest.pop("geodp", None)
        super().load_state_dict(rest)  # type: ignore[misc]
        if state is not None:
            self.release.restore(state)


class FlatOptimizer(_WithRelease, DPOptimizer):
    """Per-sample gradients by hooks or functorch."""


class GhostOptimizer(_WithRelease, DPOptimizerFastGradientClipping):
    """Norms by ghost clipping, no per-sample gradients in memory."""


class PerLayerOptimizer(_WithRelease, DPPerLayerOptimizer):
    """One threshold a parameter; noise for the norm of all thresholds."""
