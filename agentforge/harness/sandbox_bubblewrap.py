"""The strongest sandbox: bubblewrap around the forkserver, namespaces of their own for each worker in it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from agentforge.languages import Availability

from ._base import Box, Limits
from .sandbox_namespaces import Namespaces, visible_system


class Bubblewrap:
    """The forkserver sees an empty network and a root that shows only what is needed; see `Namespaces`
    for what each worker gets inside."""

    name = "bubblewrap"

    def available(self) -> Availability:
        return _probe()

    def wrap(
        self, argv: Sequence[str], *, scratch: Path, readable: Sequence[Path], env: Mapping[str, str]
    ) -> list[str]:
        command = ["bwrap", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-pid",
                   "--die-with-parent", "--new-session", "--dev", "/dev", "--proc", "/proc"]  # fmt: skip
        for path in (*visible_system(), *readable):
            if path.is_symlink():
                command += ["--symlink", str(path.readlink()), str(path)]
            real = path.resolve()
            command += ["--dev-bind" if real.is_char_device() else "--ro-bind", str(real), str(real)]
        command += ["--bind", str(scratch), str(scratch), "--chdir", str(scratch), "--clearenv"]
        for key, value in env.items():
            command += ["--setenv", key, value]
        return [*command, "--", *argv]

    def enter(self, limits: Limits, *, keep_fds: Sequence[int], box: Box) -> None:
        Namespaces().enter(limits, keep_fds=keep_fds, box=box)


@cache
def _probe() -> Availability:
    program = shutil.which("bwrap")
    if program is None:
        return Availability(False, "bubblewrap is not installed; apt-get install bubblewrap")
    with tempfile.TemporaryDirectory() as folder:
        from .sandbox_namespaces import probe_command

        argv = Bubblewrap().wrap(
            probe_command(folder),
            scratch=Path(folder),
            readable=[Path(__file__).resolve().parents[2]],
            env={"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PATH": "/usr/bin:/bin"},
        )
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Availability(False, f"bubblewrap cannot be run: {error}")
    if done.returncode == 0 and done.stdout.endswith("inside"):
        return Availability(True, "bubblewrap")
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return Availability(False, f"bubblewrap with namespaces inside does not work here ({reason})")
