"""A command that is cut short records that its run was interrupted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agentforge.cli import _report
from agentforge.schema import RunStatus
from agentforge.store import Store
from tests.store import nouns


def test_a_reader_that_has_gone_does_not_keep_the_interruption_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'agentforge.db'}"
    with Store(url) as store:
        run = nouns.run(status=RunStatus.SEARCHING)
        store.create_run(run)
    reader, writer = os.pipe()
    os.close(reader)
    nobody = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    os.dup2(writer, nobody.fileno())
    monkeypatch.setattr(sys, "stdout", nobody)
    _report._cut_short(run.id, url, as_json=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), nobody.fileno())  # for the rest of its buffer
    with Store(url) as store:
        assert store.get_run(run.id).status is RunStatus.INTERRUPTED
