"""Reading another process's memory, and standing still."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
import torch

from agentforge.isolation import procfs
from agentforge.referee.workers.memory import process_memory
from agentforge.referee.workers.memory.process_memory import (
    Unreadable,
    cut_parts,
    elements_of,
    read_elements,
    read_runs,
    read_tensor,
    runs_of,
    write_runs,
)
from agentforge.referee.workers.memory.shared_memory import Layout
from agentforge.referee.workers.protocol import ProtocolViolation
from agentforge.referee.workers.pytree import Leaf, LeafSpec, locate, parse_located

BASE = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)


@pytest.mark.parametrize(
    "view",
    [
        BASE,
        BASE.permute(2, 0, 1),
        BASE[:, 1],
        BASE[..., 3],
        BASE[:1, :1, :2].expand(3, 4, 2),
        BASE[1, 2, 3],
        BASE[:0],
        BASE[::2, 1:3, ::2],
    ],
    ids=["dense", "permuted", "rows", "column", "expanded", "scalar", "empty", "slices"],
)
def test_tensors_are_read_as_they_lie(view):
    layout = Layout(tuple(view.shape), "float32", tuple(view.stride()))
    assert torch.equal(read_tensor(os.getpid(), view.data_ptr(), layout), view)


def test_many_small_runs():
    wide = torch.randn(3000, 64)
    column = wide[:, 7]
    layout = Layout((3000,), "float32", (64,))
    assert torch.equal(read_tensor(os.getpid(), column.data_ptr(), layout), column)


def test_what_is_not_there_is_unreadable():
    with pytest.raises(Unreadable):
        read_tensor(os.getpid(), 64, Layout.dense((4,), "float32"))
    with pytest.raises(Unreadable):
        read_tensor(os.getpid(), 1 << 62, Layout((4, 4), "float32", (1 << 39, 1 << 38)))


def test_places_are_described_and_checked():
    value = torch.ones(2, 3).t()
    (spec,) = parse_located({"leaves": locate([Leaf("out", value)])})
    assert spec.address == value.data_ptr()
    assert spec.layout == Layout((3, 2), "float32", (1, 3))
    good = ["out", [2], "float32", [1], 4096]
    for place, bad in ((3, [1, 1]), (3, [-1]), (3, [1 << 50]), (3, None), (4, -1), (4, 1.5), (4, 1 << 63)):
        with pytest.raises(ProtocolViolation):
            parse_located({"leaves": [[bad if i == place else x for i, x in enumerate(good)]]})


def test_a_stopped_process_stands_still():
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        assert not procfs.stands_still(process.pid)
        process.send_signal(signal.SIGSTOP)
        for _ in range(10_000):
            if procfs.stands_still(process.pid):
                break
        assert procfs.stands_still(process.pid)
        assert procfs.mapped(process.pid, "python")
    finally:
        process.kill()
        process.wait()
    assert procfs.stands_still(process.pid)
    assert procfs.mapped(process.pid, "python") == []


@pytest.mark.parametrize(
    "view", [BASE, BASE.permute(2, 0, 1), BASE[..., 1:3]], ids=["dense", "permuted", "slices"]
)
def test_a_sample_is_read_in_logical_order(view):
    spec = LeafSpec("out", Layout(tuple(view.shape), "float32", tuple(view.stride())), None, view.data_ptr())
    runs = runs_of(spec, 3, 5) + runs_of(spec, 0, 2)
    taken = torch.frombuffer(read_runs(os.getpid(), runs), dtype=torch.float32)
    flat = view.reshape(-1)
    assert torch.equal(taken, torch.cat([flat[3:8], flat[:2]]))
    assert spec.holds(0, view.numel())
    assert not spec.holds(1, view.numel())
    with pytest.raises(Unreadable):
        read_runs(os.getpid(), [(64, 8)])


@pytest.mark.parametrize(
    ("error", "allowed"),
    [(None, True), (process_memory.Unreadable, True), (process_memory.NotAllowed, False)],
)
def test_whether_reading_is_allowed_is_known_before_anything_is_read(monkeypatch, error, allowed):
    monkeypatch.setattr(process_memory, "read_runs", mock.Mock(side_effect=error))
    assert process_memory.allows(os.getpid()) is allowed


def test_nothing_lies_at_the_address_that_is_tried():
    assert process_memory.allows(os.getpid())


def test_runs_and_tensors_are_written_where_they_belong():
    target = torch.zeros(3000)
    address = target.data_ptr()
    runs = [(address + 8 * number, 4) for number in range(1500)]
    write_runs(os.getpid(), runs, bytearray(torch.arange(1500.0).numpy().tobytes()))
    assert torch.equal(target[::2], torch.arange(1500.0))
    assert not target[1::2].any()
    write_runs(os.getpid(), [(address + 40, 16)], bytearray(torch.full((4,), 7.0).numpy().tobytes()))
    assert target[8:16].tolist() == [4.0, 0.0, 7.0, 7.0, 7.0, 7.0, 7.0, 0.0]


def test_what_cannot_be_written_says_so():
    with pytest.raises(Unreadable):
        write_runs(os.getpid(), [(64, 8)], bytearray(8))
    page = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ), dtype=np.uint8)
    with pytest.raises(Unreadable):
        write_runs(os.getpid(), [(page.ctypes.data, 16)], bytearray(torch.ones(4).numpy().tobytes()))


@pytest.mark.parametrize(
    "view",
    [
        BASE,
        BASE.permute(2, 0, 1),
        BASE[:, 1],
        BASE[:1, :1, :2].expand(3, 4, 2),
        BASE[1, 2, 3],
        BASE[::2, 1:3],
    ],
    ids=["dense", "permuted", "rows", "expanded", "scalar", "slices"],
)
def test_a_sample_is_read_in_as_many_pieces_for_each_layout(view, monkeypatch):
    specs = parse_located({"leaves": locate([Leaf("a", BASE), Leaf("b", view)])})
    parts = [(0, 7, 3), (0, 50, 2), (1, 0, 1), (1, view.numel() - 1, 1)]
    pieces, read = [], process_memory._read
    monkeypatch.setattr(process_memory, "_read", lambda *a: (pieces.append(len(a[2])), read(*a)))
    taken = read_elements(os.getpid(), specs, elements_of(parts))
    flat = (BASE.reshape(-1), view.reshape(-1))
    right = [flat[leaf][first : first + count] for leaf, first, count in parts]
    assert all(map(torch.equal, cut_parts(specs, parts, taken), right))
    assert pieces == [7]


def test_a_sample_that_the_output_lacks_is_not_read():
    specs = parse_located({"leaves": locate([Leaf("a", BASE)])})
    assert read_elements(os.getpid(), specs, elements_of([(0, 59, 2)])) is None
    assert read_elements(os.getpid(), specs, elements_of([(1, 0, 1)])) is None
