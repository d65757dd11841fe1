"""`examples/trajectory.ipynb`, executed by a kernel of its own."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "trajectory.ipynb"
Outputs = dict[str, list[nbformat.NotebookNode]]
"""By source of the cells."""
WRONG = 'af.attempts("wrong")'


@pytest.fixture
def executed(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outputs:
    """A wrong identifier is asked for in the end. Writes below `tmp_path`."""
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.delenv("AGENTFORGE_DATABASE_URL", raising=False)
    monkeypatch.setenv("AGENTFORGE_HOME", str(home))
    book = nbformat.read(NOTEBOOK, as_version=4)
    book.cells.append(nbformat.v4.new_code_cell(WRONG, metadata={"tags": ["raises-exception"]}))
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    return {cell.source: cell.outputs for cell in book.cells if cell.cell_type == "code"}


def test_it_is_kept_without_outputs() -> None:
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    assert not any(c.get("outputs") or c.get("execution_count") for c in book.cells)


@pytest.mark.slow
def test_it_shows_a_run(executed: Outputs) -> None:
    (wrong,) = executed.pop(WRONG)
    assert wrong.traceback == ["UsageError: there is no run 'wrong': `agentforge runs list` shows them all"]
    shown = {source: outputs[-1].data for source, outputs in executed.items()}
    (figure,) = [data for source, data in shown.items() if source.endswith("run.plot()")]
    assert "application/vnd.plotly.v1+json" in figure
    assert "fuse-row-program" in shown["run"]["text/html"]
    assert "memory-bound" in shown["run"]["text/html"]
    assert "application/vnd.plotly.v1+json" in shown["run.roofline()"]
    (table,) = [data for source, data in shown.items() if "pivot_table" in source]
    assert "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed" in table["text/html"]
    assert "Long Scoreboard" in shown["af.findings(run.run.id)"]["text/html"]
