"""The privacy statement of a run, as an object that names the kind of every ε.

A certified ε may be used as a number: ``float(statement)``. GeoDP's may not, because a bare number says
nothing of the assumption it rests on; ``statement.claims[0].epsilon.upper`` asks for it by name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geodp.account import Claim


@dataclass(frozen=True)
class Statement:
    """What may be said about the privacy of a run's released weights."""

    fields: dict[str, Any]
    """Everything in ``statement.json``."""

    @classmethod
    def read(cls, path: Path) -> Statement:
        """Reads ``statement.json``; it is as trustworthy as the file."""
        return cls(json.loads(path.read_text(encoding="utf-8")))

    @property
    def claims(self) -> list[Claim]:
        """Every claim, the strongest first."""
        return [Claim.from_json(json.dumps(claim)) for claim in self.fields["claims"]]

    @property
    def kind(self) -> str:
        """The kind of the strongest claim: "certified", "conditional" or "no privacy"."""
        return self.claims[0].kind

    def __float__(self) -> float:
        return float(self.claims[0])

    def __str__(self) -> str:
        seed = self.fields.get("noise", {}).get("seed")
        known = "" if seed is None else f" (not private against whoever knows the seed {seed})"
        return f"{self.claims[0]}{known}"
