"""The few Linux calls that Python's standard library lacks."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import signal
import socket
import struct
import time
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1
_PR_GET_DUMPABLE = 3
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SYS_TGKILL = {"x86_64": 234, "aarch64": 131}
_CAPABILITY_VERSION_3 = 0x20080522
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1
_THREAD_ENDS_S = 2.0
_SANDBOX_ARGUMENTS = 32
"""Bytes of `__sanitizer_sandbox_arguments` and more; all zero."""
_OUT_OF_REACH = (errno.EACCES, errno.ENOENT, errno.ENOTCONN, errno.EINVAL)
"""Errors at a mount that this process, and so a candidate, cannot reach; EINVAL at one that another hides."""

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def unshare(flags: int) -> None:
    """Leave the caller's namespaces.

    A process with more than one thread cannot leave its users' namespace. ThreadSanitizer's own thread is
    ended first, by the function that it has for sandboxes; a fork starts it again. The kernel counts it for
    a moment longer.
    """
    until = 0.0
    if flags & CLONE_NEWUSER and hasattr(_libc, "__sanitizer_sandbox_on_notify"):
        _libc.__sanitizer_sandbox_on_notify(bytes(_SANDBOX_ARGUMENTS))
        until = time.monotonic() + _THREAD_ENDS_S
    while (result := _libc.unshare(flags)) and time.monotonic() < until:
        time.sleep(0.001)
    _check(result, "unshare")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """mount(2)."""
    arguments = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode())
    _check(_libc.mount(*arguments), f"mount {target}")


def bind(source: str, target: str, *, read_only: bool) -> None:
    """Show `source` (and all mounts under it) at `target`."""
    mount(source, target, "", MS_BIND | MS_REC)
    if not read_only:
        return
    _remount_read_only(target)
    for place in _mounts_below(target):
        try:
            _remount_read_only(place)
        except OSError as error:
            if error.errno not in _OUT_OF_REACH:
                raise


def _remount_read_only(target: str) -> None:
    """Make one mount read-only, and none below it."""
    # The flags that the source was mounted with are locked in a user namespace: keep them.
    locked = os.statvfs(target).f_flag & ~MS_RDONLY & 0xFFF
    mount("", target, "", MS_BIND | MS_REMOUNT | MS_RDONLY | locked)


def _mounts_below(folder: str) -> list[str]:
    """Places of the mounts below a folder, also of those that later ones hide."""
    beginning = f"{os.path.realpath(folder)}/"
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    # A blank in a place is written as `\040`.
    places = [re.sub(rb"\\(\d{3})", lambda m: bytes([int(m[1], 8)]), line.split()[4]) for line in lines]
    return [place for place in map(os.fsdecode, places) if place.startswith(beginning)]


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root and show the old one at `old`."""
    number = _SYS_PIVOT_ROOT[os.uname().machine]
    _check(_libc.syscall(number, new.encode(), old.encode()), "pivot_root")


def detach(target: str) -> None:
    """Unmount lazily."""
    _check(_libc.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def raise_loopback() -> None:
    """Let processes of this network namespace talk to each other by `localhost`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """A signal for the caller when the thread that forked it ends; a change of user id cancels it."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0), "prctl")


def become_subreaper() -> None:
    """Become the parent of descendants whose own parent ends."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def signal_thread(pid: int, thread: int, number: int) -> None:
    """tgkill(2)."""
    _check(_libc.syscall(_SYS_TGKILL[os.uname().machine], pid, thread, number), "tgkill")


def set_dumpable(value: bool) -> None:
    """Whether others of the same user may read this process's memory."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, int(value), 0, 0, 0), "prctl")


def is_dumpable() -> bool:
    """What `set_dumpable` has set, for the whole process."""
    return bool(_libc.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0))


def set_name(name: str) -> None:
    """The name of the process as `ps` and `top` show it; the first 15 bytes."""
    _check(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0), "prctl")


def no_new_privileges() -> None:
    """No setuid program gives anything from here on."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def drop_capabilities() -> None:
    """Drop every capability, also from the bounding set as far as allowed."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    _check(_libc.syscall(_SYS_CAPSET[os.uname().machine], header, data), "capset")
