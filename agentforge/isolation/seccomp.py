"""A system-call filter for candidates, in classic BPF (seccomp(2), userspace-api/seccomp_filter.rst).

It refuses namespaces, mounts, access to other processes, work while a process is stopped, and memory that no
limit counts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _SPEC_ALLOW = 1, 4
"""Of seccomp(2). Without the flag, kernels before 5.16 switch speculation off in a process with a filter: a
candidate would be slower than a baseline."""
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_X32 = 0x40000000
"""Numbers from here on are of the x32 ABI: the same calls again."""
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
        "mount_setattr": 442, "io_setup": 206, "io_submit": 209, "vmsplice": 278, "move_pages": 279,
        "migrate_pages": 256, "kcmp": 312, "pidfd_send_signal": 424, "process_madvise": 440,
        "fanotify_init": 300,
    },
    "aarch64": {
        "ptrace": 117, "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41,
        "chroot": 51, "process_vm_readv": 270, "process_vm_writev": 271, "bpf": 280, "perf_event_open": 241,
        "userfaultfd": 282, "keyctl": 219, "add_key": 217, "request_key": 218, "open_by_handle_at": 265,
        "kexec_load": 104, "init_module": 105, "finit_module": 273, "reboot": 142, "swapon": 224,
        "io_uring_setup": 425, "pidfd_getfd": 438, "open_tree": 428, "move_mount": 429, "fsopen": 430,
        "mount_setattr": 442, "io_setup": 0, "io_submit": 2, "vmsplice": 75, "move_pages": 239,
        "migrate_pages": 238, "kcmp": 272, "pidfd_send_signal": 424, "process_madvise": 440,
        "fanotify_init": 262,
    },
}  # fmt: skip
"""io_submit is among them because it runs its whole list before it looks at a signal, SIGKILL included."""
_UNCOUNTED = {
    "x86_64": {"memfd_create": 319, "memfd_secret": 447, "shmget": 29},
    "aarch64": {"memfd_create": 279, "memfd_secret": 447, "shmget": 194},
}
"""They give memory that is neither address space nor resident in a process."""
_SIGNALS = {
    "x86_64": {"kill": 62, "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "prlimit64": 302},
    "aarch64": {
        "kill": 129, "tgkill": 131, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "prlimit64": 261,
    },
}  # fmt: skip
"""Their first argument is a process, which they can end."""
_SCHEDULING = {
    "x86_64": {
        "sched_setparam": 142, "sched_setscheduler": 144, "sched_setaffinity": 203, "sched_setattr": 314,
    },
    "aarch64": {
        "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122, "sched_setattr": 274,
    },
}  # fmt: skip
"""Their first argument is a thread, which they can slow down."""
_PRIORITIES = {
    "x86_64": {"setpriority": 141, "ioprio_set": 251},
    "aarch64": {"setpriority": 140, "ioprio_set": 30},
}
"""They can slow down all processes of a user at once, whom 0 may stand for."""
_TKILL = {"x86_64": 200, "aarch64": 130}
_FCNTL = {"x86_64": 72, "aarch64": 25}
_F_SETOWN, _F_SETOWN_EX = 8, 15
"""Of fcntl: the kernel sends signals to the owner of a file."""
_IOCTL = {"x86_64": 16, "aarch64": 29}
_FIOSETOWN, _SIOCSPGRP = 0x8901, 0x8902
"""Of ioctl: they set a socket's owner."""


_Instruction = tuple[int, int, int, int]
"""Operation, jumps if true and false, operand."""


def program(machine: str, *, memory_files: bool = False, signals_only_to: int = 0) -> bytes:
    """The filter's instructions for a machine, 8 bytes each.

    Args:
        memory_files: allow memfd_create and shmget.
        signals_only_to: the only process (and its group) that may be signalled, and scheduled in another way;
            0 for no restriction.

    Raises:
        KeyError: unknown machine.
    """
    refuse, absent = _REFUSE | errno.EPERM, _REFUSE | errno.ENOSYS
    refused = [*_REFUSED[machine].values()]
    judged = [_judged(_CLONE[machine], _FIRST_ARGUMENT, _JUMP_BITS, (_NAMESPACE_FLAGS,), refuse, _ALLOW)]
    if not memory_files:
        refused += _UNCOUNTED[machine].values()
    if signals_only_to:
        refused += [_TKILL[machine], *_PRIORITIES[machine].values()]
        own = (0, signals_only_to, -signals_only_to & 0xFFFFFFFF)
        judged += [
            _judged(number, _FIRST_ARGUMENT, _JUMP_EQUAL, own, _ALLOW, refuse)
            for number in (*_SIGNALS[machine].values(), *_SCHEDULING[machine].values())
        ]
        judged += [
            _judged(number, _SECOND_ARGUMENT, _JUMP_EQUAL, set_owner, refuse, _ALLOW)
            for number, set_owner in (
                (_FCNTL[machine], (_F_SETOWN, _F_SETOWN_EX)),
                (_IOCTL[machine], (_FIOSETOWN, _SIOCSPGRP)),
            )
        ]
    code: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 1, 0, _X32),
        (_JUMP_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, absent),
    ]
    for number in refused:
        code += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    for block in judged:
        code += block
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _judged(
    number: int, argument: int, compare: int, values: Sequence[int], then: int, otherwise: int
) -> list[_Instruction]:
    """For one system call: `then` if the low half of an argument compares with one of the values."""
    count = len(values)
    block = [(_LOAD, 0, 0, argument)]
    block += [(compare, count - n, 0, value) for n, value in enumerate(values)]
    block += [(_RETURN, 0, 0, otherwise), (_RETURN, 0, 0, then)]
    return [(_JUMP_EQUAL, 0, len(block), number), *block]


def confine(*, memory_files: bool = False, signals_only_to: int = 0) -> bool:
    """Install the filter in this process for good; `no_new_privs` must be set.

    Returns:
        False if the machine is unknown or the kernel has no seccomp.
    """
    machine = os.uname().machine
    if machine not in _AUDIT_ARCH:
        return False
    instructions = program(machine, memory_files=memory_files, signals_only_to=signals_only_to)
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    header = struct.pack("HxxxxxxP", len(instructions) // 8, ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(header, len(header))
    libc = ctypes.CDLL(None, use_errno=True)
    installed = libc.syscall(_SECCOMP[machine], _SET_MODE_FILTER, _SPEC_ALLOW, holder) == 0
    return installed or bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, holder, 0, 0) == 0)
