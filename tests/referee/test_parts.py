"""Small parts of the referee: output descriptions, variants, taken-out kernels, the filter, turn shapes."""

from __future__ import annotations

import tempfile

import pytest
import torch

from agentforge.isolation import seccomp
from agentforge.referee.inputs.layouts import SAME_SIZES, became_one, changes
from agentforge.referee.timing.timer import turn_shape
from agentforge.referee.workers.failures import UnusableOutput
from agentforge.referee.workers.protocol import ProtocolViolation
from agentforge.referee.workers.pytree import describe, flatten, parse_leaves, pick
from agentforge.schema import HarnessError
from agentforge.testing.language import make_solution

from .judging import quick_referee


def test_outputs_are_taken_apart_and_described():
    leaves = flatten({"b": [None], "a": (torch.ones(2, 3), 1.5, 7)})
    assert [x.path for x in leaves] == ["out['a'][0]", "float(out['a'][1])", "out['a'][2]", "out['b'][0]"]
    specs = parse_leaves({"leaves": describe(leaves)}, 1 << 12)
    assert specs[0].layout is not None
    assert specs[0].layout.shape == (2, 3)
    assert specs[1].layout is not None and specs[1].dtype is torch.float64
    assert specs[2].value == 7
    with pytest.raises(UnusableOutput):
        flatten({1, 2})


def test_ranges_are_picked_whatever_the_strides():
    x = torch.arange(24.0).reshape(2, 3, 4)
    leaves = flatten([x.permute(2, 0, 1), x.half()[:, 1], 15, torch.ones(())])
    got = pick(leaves, [(0, 3, 5), (1, 2, 4), (0, 20, 4), (2, 0, 1), (3, 0, 1), (9, 0, 1), (0, 21, 4)])
    flat = [leaf.value.reshape(-1) for leaf in leaves[:2]]
    assert torch.equal(got[0], flat[0][3:8]) and torch.equal(got[2], flat[0][20:])
    assert torch.equal(got[1], flat[1][2:6]) and got[1].dtype == torch.float16
    assert got[4].tolist() == [1.0]
    assert [len(got[n]) for n in (3, 5, 6)] == [0, 0, 0]  # a scalar, no such output, beyond its end


@pytest.mark.parametrize(
    "leaves",
    [
        None,
        [["out"]],
        [["out", [-1], "float32"]],
        [["out", [2.0], "float32"]],
        [["out", [1], "object"]],
        [["out", [1 << 40], "float32"]],
        [["out", [1] * 64, "float32"]],
        [["out", {"value": []}]],
        [[3, [1], "float32"]],
        [["out", [True], "float32"]],
        [["out", [0, 1 << 62, 1 << 62], "float32"]],
        [["out", [1], ["float32"]]],
        [["out", [256], "float32"]] * 5,
    ],
)
def test_false_descriptions_are_violations(leaves):
    with pytest.raises(ProtocolViolation):
        parse_leaves({"leaves": leaves}, 4096)


def test_which_variants_fit():
    assert {"1023 rows", "1 rows", "1021 columns", "padded rows"} <= changes([torch.ones(1024, 1024)]).keys()
    square = changes([torch.ones(64, 64), torch.ones(64)])
    assert not any("rows" in name and name[0].isdigit() for name in square)
    assert "15 rows" in changes([torch.ones(16, 64), torch.ones(64)])
    assert changes([torch.ones(5)]).keys() - SAME_SIZES.keys() == {"4 columns", "3 columns", "1 columns"}


def test_sizes_thatbecame_one_may_be_broadcast():
    x, weight = torch.ones(6, 4), torch.ones(4)
    assert became_one([x, weight], [x[:, :1], weight[:1]]) == {4}
    assert became_one([x], [x[:1]]) == {6}
    assert became_one([x[:1]], [x[:1]]) == frozenset()


def test_the_filter_is_well_formed():
    for machine in ("x86_64", "aarch64"):
        code = seccomp.program(machine)
        assert len(code) % 8 == 0
        assert code[-8:-4] == b"\x06\x00\x00\x00"
    with pytest.raises(KeyError):
        seccomp.program("pdp11")


def test_short_calls_have_more_company():
    assert turn_shape(1e-4, 0).calls > turn_shape(1e-2, 0).calls > turn_shape(1.0, 0).timed
    assert turn_shape(1.0, 1 << 27).timed == 3


def test_a_folder_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    referee = quick_referee(tmp_path / "cache")
    with monkeypatch.context() as nowhere:
        nowhere.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
        for use in (referee.__enter__, lambda: referee.build(make_solution("python", {"model_new.py": ""}))):
            with pytest.raises(HarnessError, match=r"cannot start .*TMPDIR"):
                use()
        referee._restart()  # does not raise: the evaluation that failed has a verdict
        assert referee._folder is None
    with referee:
        assert referee._folder is not None
