"""Runs a notebook's cells from top to bottom, without Jupyter, and can keep what they show.

    python python/tests/run_notebook.py examples/notebooks/private_table.ipynb [--keep]

Cells are plain Python in one namespace; the value of a cell's last expression is shown, as Jupyter does.
What a cell prints and shows is its output; with ``--keep`` outputs are written into the notebook.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any


def run(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of its cells; what a cell raises is raised."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for count, cell in enumerate(code, 1):
            cell["outputs"] = _run_cell("".join(cell["source"]), names, count)
            cell["execution_count"] = count
    finally:
        os.chdir(before)
    return notebook


def _run_cell(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    body = ast.parse(source).body
    last = None
    if body and isinstance(body[-1], ast.Expr):
        last = ast.Expression(body[-1].value)
        body.pop()
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"cell {count}", "exec"), names)
        if last is not None:
            value = eval(compile(last, f"cell {count}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if value is not None:
        data = {"text/plain": [repr(value)]}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append(
            {"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}}
        )
    return outputs


if __name__ == "__main__":
    notebook_path = Path(sys.argv[1])
    done = run(notebook_path)
    if "--keep" in sys.argv:
        text = json.dumps(done, indent=1, ensure_ascii=False)
        notebook_path.write_text(text + "\n", encoding="utf-8")
