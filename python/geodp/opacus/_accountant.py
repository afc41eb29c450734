"""geodp's accountant in the form of Opacus.

It keeps the events of a ledger. Opacus' ``history`` of (σ, q, steps) is a view of them, because
``get_noise_multiplier`` of Opacus overwrites the history and asks for ε.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opacus.accountants import IAccountant, register_accountant

from geodp import account

Event = dict[str, Any]


class NoCertifiedEpsilon(ValueError):
    """GeoDP has no certified ε; ``PrivacyEngine.statement`` says what can be said."""


def sampled_gaussian(noise_multiplier: float, sample_rate: float) -> Event:
    """The event of a step of DP-SGD; without noise it is the event of no privacy."""
    if noise_multiplier == 0:
        return {"type": "no_privacy"}
    return {
        "type": "sampled_gaussian",
        "sample_rate": sample_rate,
        "noise_multiplier": noise_multiplier,
    }


class PldAccountant(IAccountant):
    """The tight accountant of ``geodp.account``; answers the upper end of its bracket."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, int]] = []
        """Every release so far, and how often in a row."""

    def charge(self, event: Event, count: int = 1) -> None:
        """Counts ``count`` releases."""
        if self.events and self.events[-1][0] == event:
            count += self.events.pop()[1]
        self.events.append((event, count))

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Counts one step of DP-SGD."""
        self.charge(sampled_gaussian(noise_multiplier, sample_rate))

    @property
    def history(self) -> list[tuple[float, float, int]]:
        """(σ, q, steps), as Opacus has it."""
        return [(*_gaussian(event), count) for event, count in self.events]

    @history.setter
    def history(self, history: Iterable[tuple[float, float, int]]) -> None:
        self.events = [(sampled_gaussian(sigma, rate), count) for sigma, rate, count in history]

    def claims(self, delta: float, adjacency: Any = "add-remove") -> list[account.Claim]:
        """What may be said of all releases so far, the strongest claim first."""
        total = account.Account(delta=delta, adjacency=adjacency)
        for event, count in self.events:
            total.charge(event, count)
        return total.claims()

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """The certified ε, an upper bound; refuses where there is none."""
        claim = self.claims(delta)[0]
        if claim.kind == "conditional":
            raise NoCertifiedEpsilon(
                "GeoDP has no certified ε: its direction's sensitivity is assumed, not enforced. "
                "Ask PrivacyEngine.statement(delta) for what can be said, with its kind"
            )
        return claim.epsilon.upper

    def state_dict(self, destination: Any = None) -> Any:
        """As Opacus', with the events."""
        state = super().state_dict(destination)
        state["events"] = list(self.events)
        return state

    def load_state_dict(self, state_dict: Any) -> None:
        """As Opacus', with the events."""
        super().load_state_dict(state_dict)
        self.events = list(state_dict["events"])

    def __len__(self) -> int:
        return sum(count for _, count in self.events)

    @classmethod
    def mechanism(cls) -> str:
        """Its name in Opacus' registry."""
        return "geodp-pld"


def _gaussian(event: Event) -> tuple[float, float]:
    """σ and q of an event, or of the one it wraps."""
    event = event.get("event", event)
    return event.get("noise_multiplier", 0.0), event.get("sample_rate", 1.0)


register_accountant(PldAccountant.mechanism(), PldAccountant, force=True)
