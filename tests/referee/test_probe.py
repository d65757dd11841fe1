"""The doctor's worker: confined as candidates are, also if others may not list the environment's folder."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

import agentforge
from agentforge.isolation.sandboxes import Box
from agentforge.isolation.sandboxes.rlimits import Rlimits
from agentforge.languages import CommandResult
from agentforge.referee.probe import probe_worker
from agentforge.referee.workers.device_backend import CPU

_PROBE = """
from agentforge.referee import choose_sandbox
from agentforge.referee.probe import probe_worker
print("limited by", probe_worker(choose_sandbox("auto")))
"""


def test_an_environment_in_a_folder_of_the_owner_alone(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    site = next(environment.glob("lib/python*/site-packages"))
    packages = (sysconfig.get_path("purelib"), Path(agentforge.__file__).parents[1])
    (site / "shared.pth").write_text("".join(f"{folder}\n" for folder in packages))
    environment.chmod(0o700)
    done = subprocess.run(
        [environment / "bin" / "python", "-c", _PROBE],
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("limited by")


def test_the_probes_folder_is_one_that_the_next_start_removes(monkeypatch: pytest.MonkeyPatch) -> None:
    def forkserver(kind: str, sandbox: Rlimits, folder: Path, environment: object) -> NoReturn:
        assert (folder / ".owner").exists()
        raise RuntimeError(str(folder))

    monkeypatch.setattr("agentforge.referee.probe.Forkserver", forkserver)
    with pytest.raises(RuntimeError, match="agentforge-probe-") as raised:
        probe_worker(Rlimits())
    assert not Path(str(raised.value)).exists()


@pytest.mark.parametrize("filtered", [True, False])
def test_a_probe_is_filtered_as_candidates_are(filtered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: list[Box] = []

    class Recorded:
        def __init__(self, *_: object) -> None: ...

        def ready(self) -> None: ...

        def execute(self, argv: object, *, box: Box, **_: object) -> CommandResult:
            boxes.append(box)
            return CommandResult(0, "", "inside", 0.0)

        def close(self) -> None: ...

    monkeypatch.setattr("agentforge.referee.probe.Forkserver", Recorded)
    probe_worker(Rlimits(), backend=replace(CPU, filtered=filtered))
    assert [box.filtered for box in boxes] == [filtered]
