"""The privacy statement of a run, as an object that names the kind of every ε.

A certified ε may be used as a number: ``float(statement)``. GeoDP's may not, because a bare number says
nothing of the assumption it rests on; ``statement.claims[0].epsilon.upper`` asks for it by name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from geodp.account import Claim


@dataclass(frozen=True, repr=False)
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

    @property
    def warnings(self) -> list[str]:
        """What a reader must know."""
        return list(self.fields.get("warnings", []))

    def __float__(self) -> float:
        return float(self.claims[0])

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(str(claim))}</td><td>{escape(claim.assumption or 'none')}</td></tr>"
            for claim in self.claims
        )
        head = "<tr><th>claim</th><th>assumes</th></tr>"
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.warnings)
        return f"<table>{head}{rows}</table><p>Protected: one {escape(self.unit)}.</p>{notes}"

    @property
    def unit(self) -> str:
        """What is protected: a record, or a whole unit of records."""
        return str(self.fields["unit"])

    def __str__(self) -> str:
        seed = self.fields.get("noise", {}).get("seed")
        known = "" if seed is None else f" (not private against whoever knows the seed {seed})"
        return f"{self.claims[0]}{known}"
