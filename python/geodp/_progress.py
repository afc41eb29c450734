"""A progress line for terminals and notebooks, without any dependency.

Written to standard error: in a terminal in place, ten times a second at most; elsewhere (notebooks,
logs) a line now and then, which every place shows alike. It shows no number made of private records.
"""

from __future__ import annotations

import sys
import time
from typing import Any


class Progress:
    """Step, rate and time left, until closed."""

    def __init__(self, shown: bool) -> None:
        self._out = sys.stderr
        self._in_place = shown and self._out.isatty()
        self._shown = shown
        self._began = self._last = time.monotonic()
        self._first_step: int | None = None
        self._wrote = False

    def see(self, kind: str, what: Any) -> None:
        """Takes one piece of news."""
        if not self._shown or kind != "step":
            return
        step, steps = what
        if self._first_step is None:
            self._first_step = step - 1
        now = time.monotonic()
        if now - self._last < (0.1 if self._in_place else 10.0):
            return
        self._last = now
        done = step - self._first_step
        left = (now - self._began) / done * (steps - step)
        text = f"step {step}/{steps}, {done / (now - self._began):.1f} steps/s, {left:.0f} s left"
        self._out.write(f"\r{text:<60}" if self._in_place else f"{text}\n")
        self._out.flush()
        self._wrote = True

    def close(self) -> None:
        """Ends the line."""
        if self._wrote and self._in_place:
            self._out.write("\n")
            self._out.flush()
