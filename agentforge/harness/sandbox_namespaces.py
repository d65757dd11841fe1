"""Linux namespaces by system calls: own processes, network, users, and a root that shows only the needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from agentforge.languages import Availability

from . import linux, seccomp
from ._base import Box, Limits
from .sandbox_rlimits import address_space, apply_limits, close_descriptors

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix", "/run/opengl-driver",
           "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
           "/sys/devices/system/cpu")  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def visible_system() -> tuple[Path, ...]:
    """The system's libraries, this interpreter and its packages: what any candidate needs to see."""
    python = [sys.prefix, sys.base_prefix, sys.exec_prefix, *(p for p in sys.path if p.endswith("-packages"))]
    return tuple(Path(p) for p in dict.fromkeys([*_SYSTEM, *python]) if Path(p).exists())


class Namespaces:
    """A fresh user (or another user id), process, network, IPC and mount namespace for each worker.

    The worker's root is an empty tmpfs into which the system's libraries, the interpreter and `readable`
    are bound read-only; its scratch folder is a tmpfs of bounded size. When the first process of the
    namespace ends, the kernel kills all others, whatever they ignore.
    """

    name = "namespaces"

    def available(self) -> Availability:
        return _probe()

    def wrap(
        self, argv: Sequence[str], *, scratch: Path, readable: Sequence[Path], env: Mapping[str, str]
    ) -> list[str]:
        return list(argv)

    def enter(self, limits: Limits, *, keep_fds: Sequence[int], box: Box) -> None:
        before = address_space()
        close_descriptors(keep_fds)
        root = os.geteuid() == 0
        uid, gid = os.getuid(), os.getgid()
        flags = linux.CLONE_NEWPID | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
        linux.unshare(flags | linux.CLONE_NEWNS | (0 if root else linux.CLONE_NEWUSER))
        if not root:
            _map_user(uid, gid)
        if box.loopback:
            linux.raise_loopback()
        _fork_and_become_child()
        _build_root(box, limits.file_bytes)
        if root and box.identity:
            os.setgroups([])
            os.setresgid(box.identity, box.identity, box.identity)
            os.setresuid(box.identity, box.identity, box.identity)
        linux.drop_capabilities()
        linux.no_new_privileges()
        linux.die_with_parent()
        _fork_and_become_child()
        linux.die_with_parent()
        # Other processes are out of reach in here; ASan and profilers want to read their own maps.
        linux.set_dumpable(True)
        apply_limits(limits, before, count_processes=True)
        seccomp.confine()


def _map_user(uid: int, gid: int) -> None:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _fork_and_become_child() -> None:
    """Fork; the parent stays behind, reaps, and leaves with the child's exit code."""
    child = os.fork()
    if child == 0:
        linux.die_with_parent()
        return
    close_descriptors(())
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    while True:
        try:
            pid, status = os.wait()
        except InterruptedError:
            continue
        except ChildProcessError:
            os._exit(1)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _build_root(box: Box, scratch_bytes: int) -> None:
    linux.mount("", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    root = str(box.scratch)
    linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=16m")
    for path in _outermost((*visible_system(), *box.readable, *box.devices, *map(Path, _DEVICES))):
        _show(path, root, read_only=not str(path).startswith("/dev/"))
    for path in box.writable:
        _show(path, root, read_only=False)
    scratch = root + root
    for folder in (scratch, root + "/tmp", root + "/dev/shm", root + "/proc"):
        Path(folder).mkdir(parents=True, exist_ok=True)
    linux.mount(
        "tmpfs", scratch, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, f"mode=1777,size={scratch_bytes}"
    )
    for folder in (root + "/tmp", root + "/dev/shm"):
        if not any(
            str(p).startswith(folder.removeprefix(root) + "/")
            for p in (*box.readable, *box.writable, box.scratch)
        ):
            linux.mount(scratch, folder, "", linux.MS_BIND)
    _mount_proc(root + "/proc", needed=bool(box.devices))
    old = Path(root, ".old")
    old.mkdir()
    linux.pivot_root(root, str(old))
    os.chdir("/")
    linux.detach("/.old")
    Path("/.old").rmdir()
    linux.mount(
        "", "/", "", linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    )
    os.chdir(box.scratch)


def _mount_proc(target: str, *, needed: bool) -> None:
    try:
        linux.mount("proc", target, "proc", linux.MS_NOSUID | linux.MS_NODEV)
    except OSError as error:
        # A container that masks parts of /proc forbids a fresh one in a user namespace; live without. A GPU's
        # driver reads /proc/driver and writes the names of its threads to /proc/self/task.
        if needed:
            raise OSError(
                error.errno, "a GPU's driver needs /proc, and this container forbids a fresh one: "
                "run it as root, or take the sandbox rlimits"
            ) from error  # fmt: skip


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Without those that lie in another one."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda p: len(p.parts)):
        if not any(path.is_relative_to(other) and not other.is_symlink() for other in kept):
            kept.append(path)
    return kept


def _show(path: Path, root: str, *, read_only: bool) -> None:
    target = Path(root + str(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        if not target.is_symlink():
            target.symlink_to(path.readlink())
        real = path.resolve()
        if not Path(root + str(real)).exists() and real.exists():
            _show(real, root, read_only=read_only)
        return
    if path.is_dir():
        target.mkdir(exist_ok=True)
    elif not target.exists():
        target.touch()
    linux.bind(str(path), str(target), read_only=read_only)


def probe_command(scratch: str) -> list[str]:
    """A command that confines itself and then prints `inside`."""
    code = (
        "import os, pathlib, sys\n"
        "from agentforge.harness._base import Box, Limits\n"
        "from agentforge.harness.sandbox_namespaces import Namespaces\n"
        "box = Box(pathlib.Path(sys.argv[1]), identity=200000)\n"
        "Namespaces().enter(Limits(memory_bytes=1 << 31), keep_fds=[], box=box)\n"
        "os.write(1, b'inside')\n"
        "os._exit(0)\n"
    )
    return [sys.executable, "-c", code, scratch]


@cache
def _probe() -> Availability:
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                probe_command(folder), capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Availability(False, f"namespaces cannot be tried: {error}")
    if done.returncode == 0 and done.stdout.endswith("inside"):
        return Availability(True, "Linux namespaces")
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return Availability(
        False,
        f"unprivileged namespaces do not work here ({reason}); install bubblewrap or allow user namespaces",
    )
