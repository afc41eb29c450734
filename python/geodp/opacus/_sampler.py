"""Poisson batches from ChaCha20's coins, the same for any number of processes.

Every rank draws the whole sample of a step from one shared key and takes its part, so a step over
ranks is the step of one process, cut up. Opacus draws on each rank from torch's generator: ranks of
equal seed toss equal coins, and empty batches are left out on some ranks only.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch.utils.data import Sampler

from geodp.mechanism import NoiseSource


class PoissonSampler(Sampler[list[int]]):
    """Each of ``records`` records joins a batch with probability batch / records.

    An iteration is an epoch of round(records / batch) batches, some of which may be empty. Batches
    go on where the last epoch ended and never repeat.
    """

    def __init__(
        self, coins: NoiseSource, records: int, batch: int, rank: int = 0, world_size: int = 1
    ) -> None:
        if not 1 <= batch <= records:
            raise ValueError(f"the batch is {batch}; it must be in 1..={records}, the records")
        self.records, self.batch = records, batch
        self._coins, self._rank, self._world_size = coins, rank, world_size
        self.step = 0
        """The step whose batch is drawn next; a training that is resumed sets it."""

    @property
    def sample_rate(self) -> float:
        """q, the probability that a record takes part in a step."""
        return self.batch / self.records

    def __len__(self) -> int:
        return max(1, round(self.records / self.batch))

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(len(self)):
            sample = self._coins.poisson(self.step, self.records, self.batch)
            self.step += 1
            yield sample[self._rank :: self._world_size].tolist()
