from __future__ import annotations

import mmap
import os
import resource
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.workers.memory.shared_memory import (
    ALIGNMENT,
    Block,
    InputMemory,
    Layout,
    Window,
    aligned,
    contiguous_strides,
    in_pages,
)

SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@given(SHAPES)
def test_dense_strides_are_torch_s(shape):
    if 0 not in shape:
        assert contiguous_strides(shape) == tuple(torch.empty(shape).stride())


@given(SHAPES, st.sampled_from(["float32", "bfloat16", "int64", "bool", "float8_e5m2"]))
def test_a_tensor_put_in_a_block_comes_back(shape, dtype):
    block = Block.create("test", 1 << 16)
    layout = Layout.dense(shape, dtype, ALIGNMENT)
    tensor = block.tensor(layout)
    assert tuple(tensor.shape) == shape
    assert Layout.from_json(layout.to_json()) == layout
    if tensor.numel():
        source = torch.randint(0, 2, shape).to(tensor.dtype)
        tensor.copy_(source)
        again = block.tensor(layout)
        assert torch.equal(
            again.view(torch.uint8) if again.dim() else again,
            source.view(torch.uint8) if again.dim() else source,
        )
    block.close()


def test_strides_are_kept_and_expanded_ones_become_dense():
    tensor = torch.randn(4, 6).t()
    layout = Layout.of(tensor)
    block = Block.create("test", layout.nbytes)
    block.tensor(layout).copy_(tensor)
    assert block.tensor(layout).stride() == tensor.stride()
    assert torch.equal(block.tensor(layout), tensor)
    assert Layout.of(torch.ones(1).expand(3, 4)).strides == (4, 1)
    block.close()


@pytest.mark.parametrize(
    "layout",
    [Layout((1 << 20,), "float32", (1,)), Layout((4,), "float32", (1,), -64), Layout((4,), "object", (1,))],
)
def test_what_does_not_lie_inside_is_refused(layout):
    block = Block.create("test", 4096)
    with pytest.raises(ValueError):
        block.tensor(layout)
    block.close()


def test_a_sealed_block_can_only_be_read_by_others():
    block = Block.create("test", 4096)
    block.raw(0, 4).fill_(7)
    block.seal_writes()
    with pytest.raises(PermissionError):
        mmap.mmap(block.fd, 4096, mmap.MAP_SHARED)
    with pytest.raises(OSError):
        os.write(block.fd, b"x")
    with pytest.raises(OSError):
        os.ftruncate(block.fd, 0)
    private = Block(os.dup(block.fd), 4096, writable=False)
    private.raw(0, 4).fill_(9)
    assert block.raw(0, 1).item() == 7
    block.raw(0, 4).fill_(8)
    assert block.raw(0, 1).item() == 8
    private.close()
    block.close()


def test_the_mapping_outlives_the_descriptor():
    block = Block.create("test", 4096)
    tensor = block.tensor(Layout.dense((4,), "float32"))
    block.close()
    block.close()
    tensor.fill_(3.0)
    assert tensor.sum() == 12
    assert aligned(1) == ALIGNMENT


def test_a_window_shows_what_is_written_to_its_file():
    page = mmap.PAGESIZE
    block = Block.create("test", 3 * page)
    block.seal_size()
    window = Window(block.fd, 3 * page)
    tensor = window.tensor(Layout.dense((4,), "int32", page))
    for value in (7, 9):
        content = Block.create("content", 16)
        content.write(torch.full((4,), value, dtype=torch.int32).view(torch.uint8))
        block.copy(content, page)
        assert tensor.tolist() == [value] * 4
        tensor.fill_(1)
        assert content.tensor(Layout.dense((4,), "int32")).tolist() == [value] * 4
    assert block.read(Layout.dense((4,), "int32", page)).tolist() == [1] * 4
    assert (in_pages(0), in_pages(page), in_pages(page + 1)) == (page, page, 2 * page)


def test_a_window_is_resident_from_the_start():
    nbytes = 256 * mmap.PAGESIZE
    block = Block.create("test", nbytes)
    mapped = Window(block.fd, nbytes)._mapped
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    assert mapped.find(b"x") == -1
    mapped[:: mmap.PAGESIZE] = bytes(256)
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before < 128


def test_a_block_that_nobody_holds_gives_its_descriptor_back():
    fd = Block.create("test", 16).fd
    with pytest.raises(OSError):
        os.fstat(fd)


@given(SHAPES, st.sampled_from(["float32", "bfloat16", "int64", "bool", "complex64"]), st.booleans())
def test_what_is_placed_past_the_mapping_is_read_back(shape, dtype, turned):
    tensor = torch.randint(0, 2, shape).to(getattr(torch, dtype))
    tensor = tensor.transpose(0, -1) if turned and shape else tensor
    layout = Layout.of(tensor, ALIGNMENT)
    block = Block.create("test", 1 << 16)
    block.place(layout, tensor)
    for seen in (block.read(layout), block.tensor(layout)):
        assert torch.equal(seen, tensor)
        assert seen.stride() == tensor.stride() or not tensor.numel() or seen.is_contiguous()
    beyond = layout.at((1 << 16) - layout.nbytes + ALIGNMENT)
    if tensor.numel():
        with pytest.raises(ValueError):
            block.place(beyond, tensor)
        with pytest.raises(ValueError):
            block.read(beyond)


def test_what_is_placed_past_the_mapping_is_not_resident_here():
    def resident() -> int:
        fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
        return int(fields["RssShmem"].split()[0]) << 10

    tensor = torch.ones(32 << 18)
    block, layout = Block.create("test", tensor.nbytes), Layout.of(tensor)
    before = resident()
    block.place(layout, tensor)
    assert torch.equal(block.read(layout), tensor)
    assert resident() - before < tensor.nbytes / 2


@given(st.integers(0, 40), st.integers(0, 50), st.integers(0, 50))
def test_a_range_of_a_tensor_is_read_as_a_slice_would_give_it(numel, first, count):
    block = Block.create("test", 1 << 12)
    content = torch.arange(numel, dtype=torch.bfloat16)
    layout = Layout.dense((numel,), "bfloat16", ALIGNMENT)
    block.tensor(layout).copy_(content)
    assert torch.equal(block.read_range(layout, first, count), content[first : first + count])


@pytest.mark.parametrize("nbytes", [100, 200_000])
def test_what_a_worker_writes_to_its_inputs_shows(nbytes):
    content = Block.create("content", nbytes)
    content.raw(0, nbytes).random_()
    contents = SimpleNamespace(slot_bytes=nbytes, slots=2, layouts=[], content=lambda _: content)
    memory = InputMemory(contents)
    for slot in (0, 1):
        memory.write(slot)
    theirs = Block(os.dup(memory.fd), 2 * in_pages(nbytes))
    theirs.raw(in_pages(nbytes), 1).add_(1)
    assert memory.changed(1)
    assert not memory.changed(0)
    for block in (memory, theirs, content):
        block.close()
