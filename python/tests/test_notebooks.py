"""The notebooks run from top to bottom and say what they promise."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from run_notebook import run

NOTEBOOKS = Path(__file__).parents[2] / "examples/notebooks"

# Notebooks choose their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")


def shown(name: str) -> str:
    with warnings.catch_warnings():
        cells = run(NOTEBOOKS / name)["cells"]
    parts = [output.get("text") or output["data"]["text/plain"] for c in cells for output in c.get("outputs", [])]
    return "\n".join("".join(part) for part in parts)


def test_a_private_table() -> None:
    pytest.importorskip("sklearn")
    text = shown("private_table.ipynb")
    assert "certified ε = 1.99" in text and "each fit spends its own ε" in text
    assert "conditional, not certified" in text
    private, plain = (float(text.split(word)[1][:5]) for word in ("private ", "not private "))
    assert private > plain - 0.05


def test_geodp_in_opacus() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("opacus")
    text = shown("opacus_mnist.ipynb")
    lines = [line for line in text.splitlines() if line.startswith(("DP:", "GeoDP:", "certified GeoDP:"))]
    assert len(lines) == 3 and all(float(line.split(": ")[1]) > 0.6 for line in lines), text
    assert text.count("certified ε") == 2 and "conditional" in text
