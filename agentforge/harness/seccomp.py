"""A system-call filter for candidates: no namespaces, no mounts, no looking into other processes.

Classic BPF by prctl, as seccomp(2) and the kernel's userspace-api/seccomp_filter.rst describe it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_LOAD, _JUMP_EQUAL, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
_NAMESPACE_FLAGS = 0x7E020080
"""CLONE_NEW* of clone(2): time, mount, cgroup, UTS, IPC, user, process, network."""

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
"""Its flags lie in memory, which a filter cannot read: it is not there, and libc falls back to clone."""
_REFUSED = {
    "x86_64": {
        "ptrace": 101, "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155,
        "chroot": 161, "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "perf_event_open": 298,
        "userfaultfd": 323, "keyctl": 250, "add_key": 248, "request_key": 249, "open_by_handle_at": 304,
        "kexec_load": 246, "init_module": 175, "finit_module": 313, "reboot": 169, "swapon": 167,
        "io_uring_setup": 425, "pidfd_getfd": 438, "open_tree": 428, "move_mount": 429, "fsopen": 430,
        "mount_setattr": 442,
    },
    "aarch64": {
        "ptrace": 117, "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41,
        "chroot": 51, "process_vm_readv": 270, "process_vm_writev": 271, "bpf": 280, "perf_event_open": 241,
        "userfaultfd": 282, "keyctl": 219, "add_key": 217, "request_key": 218, "open_by_handle_at": 265,
        "kexec_load": 104, "init_module": 105, "finit_module": 273, "reboot": 142, "swapon": 224,
        "io_uring_setup": 425, "pidfd_getfd": 438, "open_tree": 428, "move_mount": 429, "fsopen": 430,
        "mount_setattr": 442,
    },
}  # fmt: skip


def program(machine: str) -> bytes:
    """The filter's instructions for a machine, 8 bytes each.

    Raises:
        KeyError: a machine that is not known.
    """
    refuse, absent = _REFUSE | errno.EPERM, _REFUSE | errno.ENOSYS
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, absent),
    ]
    for number in _REFUSED[machine].values():
        code += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    code += [
        (_JUMP_EQUAL, 0, 3, _CLONE[machine]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_BITS, 0, 1, _NAMESPACE_FLAGS),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def confine() -> bool:
    """Install the filter in this process for good; `no_new_privs` must be set.

    Returns:
        False where the machine is not known or the kernel has no seccomp.
    """
    machine = os.uname().machine
    if machine not in _AUDIT_ARCH:
        return False
    instructions = program(machine)
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    header = struct.pack("HxxxxxxP", len(instructions) // 8, ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(header, len(header))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, holder, 0, 0) == 0)
