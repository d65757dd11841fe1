"""A live module for a range of shapes, from the API to calls of other shapes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import agentforge
from agentforge.config import Settings
from agentforge.schema import UsageError


class Net(torch.nn.Module):
    """A norm and a pointwise chain."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of `[batch, seq, 256]`."""
        y = self.norm(x)
        return torch.sin(y) * torch.cos(y) + torch.tanh(y) * torch.sigmoid(y) + y


@pytest.mark.slow
def test_a_live_module_is_right_inside_and_outside_of_the_range(settings: Settings, tmp_path: Path) -> None:
    model = Net().eval()
    result = agentforge.optimize(
        model,
        (torch.randn(2, 16, 256),),
        shapes="batch=1..8,seq=16..64",
        settings=settings,
        attempts=0,  # tests/stitch/test_shapes.py has kernels for a range
        out=tmp_path / "fast",
        progress=False,
    )
    assert result.finished
    with torch.inference_mode():
        for shape in [(1, 16), (1, 33), (3, 37), (8, 64), (9, 64), (2, 3)]:
            x = torch.randn(*shape, 256)
            torch.testing.assert_close(result.model(x), model(x), rtol=1e-4, atol=1e-5)


def test_bad_ranges_are_refused_before_any_work(settings: Settings) -> None:
    x = torch.randn(2, 16, 256)
    with pytest.raises(UsageError, match="does not know rows"):
        agentforge.profile(Net().eval(), (x,), shapes="rows=1..4", settings=settings)
    with pytest.raises(UsageError, match="leave out shapes"):
        agentforge.profile(Net().eval(), shapes="batch=1..4", generate="prompt=2,new=2", settings=settings)
