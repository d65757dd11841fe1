"""What every sandbox must do: inherit `SandboxContract` in a test class.

The class gives a `sandbox` fixture of class scope.
"""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentforge.isolation.sandboxes import Box, Limits, Sandbox
from agentforge.languages import CommandResult
from agentforge.referee.workers.environment import worker_environment
from agentforge.referee.workers.process import Forkserver

_LIMITS = Limits(memory_bytes=1 << 30, file_bytes=1 << 20, cpu_seconds=20, processes=64)


@dataclass
class Cell:
    """A forkserver inside a sandbox, and a folder to work in."""

    server: Forkserver
    folder: Path
    identity: int = field(default_factory=lambda: 300_000 + os.getpid() % 10_000 * 50)
    """Other test processes have others: leftovers of one are found by its user, and ended."""

    def python(self, code: str, *, timeout_s: float = 20.0, limits: Limits = _LIMITS) -> CommandResult:
        """Run Python source inside; the scratch folder is the working directory."""
        self.identity += 1
        scratch = self.folder / f"scratch-{self.identity}"
        scratch.mkdir()
        if os.geteuid() == 0:
            os.chown(scratch, self.identity, self.identity)
        box = Box(scratch, identity=self.identity)
        return self.server.execute(
            [sys.executable, "-c", textwrap.dedent(code)],
            cwd=scratch,
            scratch=scratch,
            limits=limits,
            box=box,
            timeout_s=timeout_s,
        )


class SandboxContract:
    """Tests for one sandbox. `isolates` says whether network, files and processes are its own."""

    isolates = True

    @pytest.fixture(scope="class")
    @classmethod
    def sandbox(cls) -> Sandbox:
        """The sandbox under test."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def cell(cls, sandbox: Sandbox) -> Iterator[Cell]:
        """A running forkserver in the sandbox; skipped where it does not work on this machine."""
        available = sandbox.available()
        if not available.ok:
            pytest.skip(available.detail)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o711)
            server = Forkserver("candidate", sandbox, folder, worker_environment(1, folder, {}))
            yield Cell(server, folder)
            server.close()

    def test_says_whether_it_works(self, sandbox: Sandbox) -> None:
        """`available` gives a reason either way, and the same one twice."""
        assert sandbox.available() == sandbox.available()
        assert sandbox.available().detail
        assert "ImportError" not in sandbox.available().detail
        assert "ModuleNotFoundError" not in sandbox.available().detail

    def test_runs_a_program_and_gives_its_exit_code(self, cell: Cell) -> None:
        """Exit codes and output come back."""
        done = cell.python("import sys; print('out'); sys.exit(7)")
        assert done.returncode == 7
        assert "out" in done.stderr

    def test_a_signal_is_seen(self, cell: Cell) -> None:
        """A crash comes back as 128 + signal."""
        assert cell.python("import os; os.kill(os.getpid(), 11)").returncode == 139

    def test_scratch_is_writable(self, cell: Cell) -> None:
        """The working folder can be written to."""
        assert cell.python("open('file', 'w').write('x')").returncode == 0

    def test_large_files_are_refused(self, cell: Cell) -> None:
        """Files end at the limit."""
        self._refused(cell, "f = open('file', 'wb')\nfor _ in range(64): f.write(bytes(1 << 20))")

    def test_memory_is_limited(self, cell: Cell) -> None:
        """Allocating beyond the limit fails."""
        self._refused(cell, "bytearray(8 << 30)")

    def test_addresses_without_memory_can_be_reserved(self, cell: Cell) -> None:
        """An allocator may reserve more addresses than it may use."""
        done = cell.python(
            """
            import mmap
            kept = mmap.mmap(-1, 16 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)
            """
        )
        assert done.returncode == 0, done.stderr
        self._refused(cell, "import mmap\nmmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE)")

    def test_no_secret_of_the_environment_is_seen(self, cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
        """The environment is not the caller's."""
        monkeypatch.setenv("SECRET_KEY_OF_THE_TEST", "x")
        seen = cell.python("import os; print(dict(os.environ))").stderr
        assert "PATH" in seen
        assert "SECRET_KEY" not in seen

    def test_no_descriptor_is_inherited(self, cell: Cell) -> None:
        """Only 0 to 2 are open (and the one that lists them)."""
        done = cell.python(
            """
            import os
            def is_open(fd):
                try:
                    os.fstat(fd)
                except OSError:
                    return False
                return True
            print('open', [fd for fd in range(3, 200) if is_open(fd)])
            """
        )
        assert "open []" in done.stderr

    def test_an_endless_loop_is_killed(self, cell: Cell) -> None:
        """The time-out covers a process that ignores signals and has children of its own."""
        done = cell.python(
            """
            import os, signal
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            if os.fork() == 0: os.setsid()
            while True: pass
            """,
            timeout_s=1.0,
        )
        assert done.timed_out
        assert done.seconds < 8

    def test_ptrace_is_refused(self, cell: Cell) -> None:
        """No process can look into another."""
        done = cell.python(
            "import ctypes; l = ctypes.CDLL(None, use_errno=True); print('ptrace', l.ptrace(16, 1, 0, 0))"
        )
        assert "ptrace -1" in done.stderr

    def test_work_and_memory_without_limits_are_refused(self, cell: Cell) -> None:
        """No request that the kernel goes on with while the process is stopped, no memory that is not
        counted, no second numbering of system calls."""
        names = {"io_uring_setup", "io_setup", "vmsplice", "kcmp", "memfd_create", "shmget", "getppid of x32"}
        done = cell.python(
            """
            import ctypes, errno, os
            libc = ctypes.CDLL(None, use_errno=True)
            arm = os.uname().machine == "aarch64"
            space = ctypes.create_string_buffer(4096)
            calls = {
                "io_uring_setup": (425, 4, space),
                "io_setup": (0 if arm else 206, 4, space),
                "vmsplice": (75 if arm else 278, 1, space, 0, 0),
                "kcmp": (272 if arm else 312, os.getpid(), os.getpid(), 0, 0, 0),
                "memfd_create": (279 if arm else 319, b"file", 0),
                "shmget": (194 if arm else 29, 0, 4096, 0o1600),
                "getppid of x32": (0x40000000 + (173 if arm else 110),),
            }
            for name, call in calls.items():
                ctypes.set_errno(0)
                if libc.syscall(*call) == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
                    print("refused:", name)
            """
        )
        refused = {line.removeprefix("refused: ") for line in done.stderr.splitlines()}
        assert refused == names, done.stderr

    def test_nothing_outside_can_be_written(self, cell: Cell, tmp_path: Path) -> None:
        """Files of the caller stay as they are."""
        if not self.isolates:
            pytest.skip("this sandbox does not isolate files of the same user")
        target = tmp_path / "target"
        target.write_text("before")
        self._refused(cell, f"open({str(target)!r}, 'w').write('after')")
        assert target.read_text() == "before"

    def test_there_is_no_network(self, cell: Cell) -> None:
        """Not even the loopback of the caller."""
        if not self.isolates:
            pytest.skip("this sandbox does not isolate the network")
        import socket

        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port = listener.getsockname()[1]
            self._refused(cell, f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")

    def test_other_processes_cannot_be_seen(self, cell: Cell) -> None:
        """The caller's pid means nothing inside."""
        if not self.isolates:
            pytest.skip("this sandbox does not isolate processes")
        self._refused(cell, f"import os; os.kill({os.getpid()}, 0)")

    @staticmethod
    def _refused(cell: Cell, code: str) -> None:
        """The program begins, and then fails: a worker that never began proves nothing."""
        done = cell.python("import os\nos.write(2, b'begins ')\n" + textwrap.dedent(code))
        assert "begins" in done.stderr, done.stderr
        assert done.returncode != 0
