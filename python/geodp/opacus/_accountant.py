"""geodp's accountants in the form of Opacus.

``get_noise_multiplier`` of Opacus overwrites ``history`` and asks for ε, so ε is computed from the
history each time, never kept beside it.
"""

from __future__ import annotations

from typing import Any

from opacus.accountants import IAccountant, register_accountant

from geodp import account


class NoCertifiedEpsilon(ValueError):
    """GeoDP has no certified ε; ``PrivacyEngine.statement`` says what can be said."""


class PldAccountant(IAccountant):
    """The tight accountant of ``geodp.account``; answers the upper end of its bracket."""

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Counts one release."""
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            sigma, rate, count = self.history.pop()
            self.history.append((sigma, rate, count + 1))
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    def bracket(self, delta: float) -> account.Bracket:
        """ε as a bracket."""
        accountant = account.Accountant()
        for sigma, rate, count in self.history:
            accountant.compose(sample_rate=rate, noise_multiplier=sigma, steps=count)
        return accountant.epsilon(delta)

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """The certified ε: an upper bound."""
        return self.bracket(delta).upper

    def __len__(self) -> int:
        return sum(count for _, _, count in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Its name in Opacus' registry."""
        return "geodp-pld"


class GeodpAccountant(PldAccountant):
    """Counts GeoDP's releases and refuses to call anything their ε.

    Its name differs from :class:`PldAccountant`'s, so Opacus does not load the history of a GeoDP
    run into an accountant that would take its releases for plain Gaussian ones.
    """

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """Refuses."""
        raise NoCertifiedEpsilon(
            "GeoDP has no certified ε: its direction's sensitivity is assumed, not enforced. "
            "Ask PrivacyEngine.statement(delta) for what can be said, with its kind"
        )

    bracket = get_epsilon  # type: ignore[assignment]

    @classmethod
    def mechanism(cls) -> str:
        """Its name in Opacus' registry."""
        return "geodp-conditional"


register_accountant(PldAccountant.mechanism(), PldAccountant, force=True)
register_accountant(GeodpAccountant.mechanism(), GeodpAccountant, force=True)
