"""Modules of the user that a source imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.problems.own_modules import import_root_of


def test_what_all_processes_import_is_no_module_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy", "logging", "agentforge"):
        (tmp_path / name).mkdir()
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    source = "import numpy, logging, agentforge\nif __name__ == '__main__':\n    import tests\n"
    assert import_root_of(source, tmp_path / "model") is None
    (tmp_path / "numpy" / "__init__.py").touch()  # Python takes the installed one
    assert import_root_of(source, tmp_path / "model") is None
    (tmp_path / "model" / "logging.py").touch()
    assert import_root_of(source, tmp_path / "model") == str(tmp_path / "model")
