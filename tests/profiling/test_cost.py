from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from agentforge.devices import DeviceSpec, Roofline
from agentforge.profiling.cost import Cost, cost_of, least_bytes, masked_at
from agentforge.profiling.graph.merges import merges
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import record
from tests.profiling.captured import capture_units

DEVICE = DeviceSpec(kind="cpu", name="test", architecture="none", cache_bytes=(1 << 15, 1 << 20))
ROOFLINE = Roofline(bandwidth=1e10, peak_flops={"float32": 1e11}, cache_bandwidth=1e11, call_overhead_s=1e-6)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def cost(function, *args, roofline=ROOFLINE) -> Cost:
    (unit,) = capture_units(Function(function).eval(), args, {}).units
    (region,) = partition(unit.graph_module.graph)
    seen = record(unit, {*region.inputs, *region.outputs, *masked_at(region)})
    return cost_of(region, seen, DEVICE, roofline)


def test_a_gemm_counts_its_multiplications_and_additions():
    found = cost(lambda a, b: a @ b, torch.randn(512, 64), torch.randn(64, 1024))
    assert found.flops == 2 * 512 * 64 * 1024
    assert found.bytes == 4 * (512 * 64 + 64 * 1024 + 512 * 1024)


def test_a_linear_and_a_convolution_are_counted_before_decomposition():
    assert cost(F.linear, torch.randn(8, 16), torch.randn(4, 16)).flops == 2 * 8 * 16 * 4
    found = cost(F.conv2d, torch.randn(1, 3, 8, 8), torch.randn(5, 3, 3, 3))
    assert found.flops == 2 * 5 * 3 * 9 * 36


def test_recurrent_layers_multiply_at_each_step():
    x = torch.randn(8, 5, 6)
    assert cost(
        torch.nn.LSTM(6, 7), x, (torch.zeros(1, 5, 7), torch.zeros(1, 5, 7))
    ).flops == 2 * 8 * 5 * 4 * 7 * (6 + 7)
    assert cost(torch.nn.GRUCell(6, 7), x[0], torch.randn(5, 7)).flops == 2 * 5 * 3 * 7 * (6 + 7)


def test_lookups_are_no_arithmetic_and_read_what_they_return():
    h, rows = torch.randn(4096, 1024), torch.randint(0, 1024, (4096, 1))
    picked = cost(lambda a, i: a.gather(1, i), h, rows)
    assert (picked.flops, picked.bytes) == (0, 4096 * (4 + 8 + 4))
    loss = cost(F.nll_loss, h, rows[:, 0])
    assert (loss.flops, loss.bytes) == (4096, 4096 * (4 + 8) + 4)


def test_products_that_torch_does_not_count():
    x, y, w = torch.randn(6, 5), torch.randn(6, 7), torch.randn(3, 5, 7)
    assert cost(F.bilinear, x, y, w).flops == 2 * 6 * w.numel()
    assert cost(torch.mv, x, torch.randn(5)).flops == 2 * 6 * 5
    assert cost(F.linear, torch.randn(5), x).flops == 2 * 6 * 5
    assert cost(torch.dot, x[0].clone(), x[1].clone()).flops == 2 * 5
    taps = torch.randn(3, 5, 4)
    found = cost(torch.conv_tbc, torch.randn(9, 6, 5), taps, torch.randn(4))
    assert found.flops == 2 * (9 - 2) * 6 * taps.numel()


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("count", [6, 40])
def test_distances_subtract_and_add_for_each_pair(p, count):
    x, y = torch.randn(2, count, 5), torch.randn(2, 7, 5)
    assert cost(lambda a, b: torch.cdist(a, b, p), x, y).flops == 3 * 2 * count * 7 * 5


SCORES = 2 * 16 * 16
LOWER = torch.ones(16, 16).tril()
VISIBLE = 17 / 32
"""Of a lower triangle of 16 x 16."""


def spelled_out(hide):
    return lambda q, mask: torch.softmax(hide(q @ q.transpose(-2, -1), mask), -1) @ q


def test_attention_counts_what_its_mask_leaves_visible():
    q = torch.randn(1, 2, 16, 8)
    full = cost(F.scaled_dot_product_attention, q, q, q)
    assert full.flops == 4 * SCORES * 8
    for options in (
        {"is_causal": True},
        {"attn_mask": LOWER.bool()},
        {"attn_mask": torch.log(LOWER)},
        {"attn_mask": (1 - LOWER) * torch.finfo(torch.float32).min},
    ):
        masked = cost(lambda a, given=options: F.scaled_dot_product_attention(a, a, a, **given), q)
        assert masked.flops == full.flops * VISIBLE


def test_causal_attention_of_fewer_queries_than_keys():
    q, k = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 16, 8)
    found = cost(lambda a, b: F.scaled_dot_product_attention(a, b, b, is_causal=True), q, k)
    assert found.flops == 4 * 2 * (1 + 2 + 3 + 4) * 8
    found = cost(lambda a, b: F.scaled_dot_product_attention(b, a, a, is_causal=True), q, k)
    assert found.flops == 4 * 2 * (1 + 2 + 3 + 13 * 4) * 8


def test_attention_of_nothing_is_no_work():
    q, k = torch.randn(2, 5, 16), torch.randn(2, 0, 16)
    assert cost(lambda a, b: F.scaled_dot_product_attention(a, b, b, is_causal=True), q, k).flops == 0


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_tensors_that_are_no_masks_are_seen_too(dtype):
    assert cost(lambda a: a.float() * 2, torch.randn(8, 8).to(dtype)).bytes == 8 * 8 * (1 + 4)


@pytest.mark.parametrize(
    ("hide", "mask"),
    [
        (lambda s, mask: s + mask, torch.log(LOWER)),
        (lambda s, mask: s.masked_fill(mask, -1e9), LOWER == 0),
        (lambda s, mask: torch.where(mask, s, torch.finfo(s.dtype).min), LOWER.bool()),
    ],
)
def test_spelled_out_attention_counts_what_its_mask_leaves_visible(hide, mask):
    q, nothing = torch.randn(1, 2, 16, 8), torch.zeros(16, 16)
    full = cost(spelled_out(lambda s, mask: s + mask), q, nothing)
    assert full.flops > 4 * SCORES * 8
    masked = cost(spelled_out(hide), q, mask)
    assert masked.flops == pytest.approx(full.flops * VISIBLE, rel=0.01)


def test_a_fused_chain_moves_only_its_borders():
    x = torch.randn(1024, 1024)
    found = cost(lambda a, b: F.gelu(a + 1) * 2 + b, x, x.clone())
    assert found.bytes == 3 * 4 * 1024 * 1024
    assert found.sol_s == pytest.approx(found.bytes / 1e10)
    assert found.bound == "memory"


def test_what_fits_the_cache_uses_the_caches_bandwidth():
    found = cost(lambda a: a + 1, torch.randn(200, 200))
    assert found.sol_s == pytest.approx(2 * 4 * 200 * 200 / 1e11)


def test_a_tiny_operator_is_bound_by_its_call():
    found = cost(lambda a: a + 1, torch.randn(4))
    assert found.bound == "overhead"
    assert found.floor_s == ROOFLINE.call_overhead_s


def test_a_broadcast_input_is_read_once():
    found = cost(lambda a, b: a + b.expand(512, 512), torch.randn(512, 512), torch.randn(512))
    assert found.bytes == 4 * (2 * 512 * 512 + 512)


def test_a_lookup_reads_the_rows_it_returns():
    found = cost(lambda i, t: F.embedding(i, t), torch.randint(0, 1000, (8,)), torch.randn(1000, 64))
    assert found.bytes == 2 * 4 * 8 * 64 + 8 * 8


def test_a_lookup_reads_no_more_than_the_table():
    found = cost(lambda i, t: F.embedding(i, t), torch.randint(0, 10, (500,)), torch.randn(10, 64))
    assert found.bytes == 8 * 500 + 4 * 64 * (10 + 500)


def test_a_bag_reads_the_rows_of_its_indices():
    indices, offsets, table = torch.randint(0, 1000, (24,)), torch.arange(0, 24, 3), torch.randn(1000, 64)
    found = cost(lambda i, t, o: F.embedding_bag(i, t, o, mode="sum"), indices, table, offsets)
    assert found.bytes == 8 * (24 + 8) + 4 * 64 * (24 + 8)


def test_what_views_leave_out_is_not_read():
    found = cost(lambda p: p[..., 0] - p[..., 2] / 2, torch.randn(2, 100, 85))
    assert found.bytes == 4 * 2 * 100 * (2 + 1)


def test_what_several_views_show_is_read_once():
    found = cost(lambda x: x[:, :4] * x[:, 2:6] + x[:, :4], torch.randn(100, 8))
    assert found.bytes == 4 * 100 * (6 + 4)
    found = cost(lambda x: F.silu(x[:, :4]) * x[:, 4:], torch.randn(100, 8))
    assert found.bytes == 4 * 100 * (8 + 4)


def test_overlapping_windows_are_read_once():
    found = cost(lambda x: x.unfold(1, 16, 1).mean(-1), torch.randn(4, 1000))
    assert found.bytes == 4 * 4 * (1000 + 985)


def test_each_result_of_an_operator_has_memory_of_its_own():
    (unit,) = capture_units(Function(lambda x: torch.add(*x.sort())).eval(), (torch.randn(64, 32),), {}).units
    _, region = partition(unit.graph_module.graph)
    found = cost_of(region, record(unit, {*region.inputs, *region.outputs}), DEVICE, ROOFLINE)
    assert found.bytes == 64 * 32 * (4 + 8 + 4)


PEAKS = ROOFLINE.model_copy(update={"peak_flops": {"float32": 1e11, "bfloat16": 8e11, "tf32": 4e11}})


def test_a_product_in_16_bits_has_their_peak_even_if_its_result_is_widened():
    x, w = torch.randn(256, 256).bfloat16(), torch.randn(256, 256).bfloat16()
    (unit,) = capture_units(Function(lambda a, b: F.linear(a, b).float()).eval(), (x, w), {}).units
    graph = unit.graph_module.graph
    (region,) = merges(partition(graph), {node: i for i, node in enumerate(graph.nodes)})
    found = cost_of(region, record(unit, {*region.inputs, *region.outputs}), DEVICE, PEAKS)
    assert found.dtype == "bfloat16"
    assert found.sol_s == pytest.approx(found.flops / 8e11)


def test_what_cudnn_computes_in_float32_has_the_peak_of_tf32():
    image, taps, x = torch.randn(1, 16, 32, 32), torch.randn(16, 16, 3, 3), torch.randn(8, 16)
    assert cost(F.conv2d, image, taps, roofline=PEAKS).dtype == "tf32"
    assert cost(F.conv2d, image.double(), taps.double(), roofline=PEAKS).dtype == "float64"
    assert cost(F.linear, x, torch.randn(4, 16), roofline=PEAKS).dtype == "float32"
    assert cost(F.conv2d, image, taps).dtype == "float32"


class Block(nn.Module):
    """Three regions: two products, and what lies between them."""

    def __init__(self):
        super().__init__()
        self.table, self.first, self.second = nn.Embedding(1000, 8), nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, words, more):
        hidden = torch.relu(self.first(self.table(words))).softmax(-1)
        return self.second(hidden)[:, -1], more[:, :2] + 1, words


def test_a_whole_model_reads_its_inputs_and_weights_once_and_writes_its_outputs_once():
    words, more = torch.zeros(5, 7, dtype=torch.int64), torch.randn(5, 6)
    (unit,) = capture_units(Block().eval(), (words, more), {}).units
    weights = 16 * 8 + 16 + 4 * 16 + 4
    # The table's rows, the words that only look them up, and what comes back unchanged do not count.
    assert least_bytes(unit.graph_module.graph) == 4 * (weights + 5 * 2 + 5 * 4 + 5 * 2)
