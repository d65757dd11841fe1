"""Linux namespaces by system calls: own processes, network, users, and a root that shows only the needed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from agentforge.registry import Availability

from .. import linux, procfs, seccomp
from ._base import Box, Limits
from .rlimits import Mapped, apply_limits, close_descriptors

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix", "/run/opengl-driver",
           "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
           "/sys/devices/system/cpu")  # fmt: skip
_ALLOW = "sysctl kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu, --cap-add SYS_ADMIN in a container"
_MOST_FILES = 65_536
"""In the scratch folder: each takes about 1 KiB of the kernel's memory."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def visible_system() -> tuple[Path, ...]:
    """The system's libraries, this interpreter and its packages: what any candidate needs to see."""
    python = [sys.prefix, sys.base_prefix, sys.exec_prefix, *(p for p in sys.path if p.endswith("-packages"))]
    found = (Path(p) for p in dict.fromkeys([*_SYSTEM, *python]))
    return tuple(part for path in found if path.exists() for part in _searchable(path))


def _searchable(path: Path) -> Iterable[Path]:
    """The path itself, or a folder's entries if only root may list it (an environment below `mktemp -d`)."""
    closed = os.geteuid() == 0 and path.is_dir() and path.stat().st_mode & 0o005 != 0o005
    return sorted(path.iterdir()) if closed else (path,)


class Namespaces:
    """A fresh user (or another user id), process, network, IPC and mount namespace for each worker.

    The root is an empty tmpfs with read-only binds of the system's libraries, the interpreter and `readable`;
    scratch is a tmpfs of bounded size. The kernel ends all processes with the namespace's first one.
    """

    name = "namespaces"
    hides_processes = True

    def available(self) -> Availability:
        return _probe()

    def enter(self, limits: Limits, *, keep_fds: Sequence[int], box: Box) -> None:
        before = Mapped.now()
        close_descriptors(keep_fds)
        root = os.geteuid() == 0
        uid, gid = os.getuid(), os.getgid()
        flags = linux.CLONE_NEWPID | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
        linux.unshare(flags | linux.CLONE_NEWNS | (0 if root else linux.CLONE_NEWUSER))
        if not root:
            map_user(uid, gid)
        if box.loopback:
            linux.raise_loopback()
        parent = _fork_and_become_child()
        _build_root(box, limits.file_bytes)
        if root and box.identity:
            os.setgroups([])
            os.setresgid(box.identity, box.identity, box.identity)
            os.setresuid(box.identity, box.identity, box.identity)
        linux.drop_capabilities()
        linux.no_new_privileges()
        _die_with(parent)  # a change of user id cancels it
        os.close(parent)
        os.close(_fork_and_become_child())
        # Other processes are out of reach in here; ASan and profilers want to read their own maps.
        linux.set_dumpable(True)
        apply_limits(limits, before)
        if box.filtered:
            seccomp.confine(memory_files=bool(box.devices))


def map_user(uid: int, gid: int) -> None:
    """Keep the caller's user and group in a fresh user namespace.

    The forkserver is not dumpable, so root owns the files below: the caller is dumpable while it opens them.
    No candidate can name this process then.
    """
    linux.set_dumpable(True)
    try:
        files = [os.open(f"/proc/self/{name}", os.O_WRONLY) for name in ("setgroups", "uid_map", "gid_map")]
    finally:
        linux.set_dumpable(False)
    for file, text in zip(files, ("deny", f"{uid} {uid} 1", f"{gid} {gid} 1"), strict=True):
        os.write(file, text.encode())
        os.close(file)


def _fork_and_become_child() -> int:
    """Fork; the parent stays behind, reaps, and leaves with the child's exit code.

    Returns:
        In the child, the reading end of a pipe whose writing end the parent alone has.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        _die_with(reading)
        return reading
    close_descriptors([writing])
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


def _die_with(parent: int) -> None:
    """SIGKILL when the parent ends. It may have ended already, and getppid(2) does not tell that in a new
    process namespace."""
    linux.die_with_parent()
    if select.select([parent], [], [], 0)[0]:
        os._exit(1)


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
        "tmpfs",
        scratch,
        "tmpfs",
        linux.MS_NOSUID | linux.MS_NODEV,
        f"mode=1777,size={scratch_bytes},nr_inodes={_MOST_FILES}",
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


def confine_and_say(scratch: str) -> None:
    """Confine this process as a worker of the forkserver is, print `inside` and leave."""
    linux.set_dumpable(False)
    box = Box(Path(scratch), identity=next(iter(procfs.spare_ids()), 0))
    Namespaces().enter(Limits(memory_bytes=1 << 31), keep_fds=[], box=box)
    os.write(1, b"inside")
    os._exit(0)


def probe_command(scratch: str) -> list[str]:
    """A command that runs `confine_and_say`."""
    code = f"import sys; from {__name__} import confine_and_say; confine_and_say(sys.argv[1])"
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
        f"namespaces do not work here ({reason}); allow user namespaces, or run it as root: {_ALLOW}",
    )
