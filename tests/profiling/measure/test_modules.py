from __future__ import annotations

import time

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from agentforge.profiling.measure.modules import WallClock, self_times

from ..graph.test_capture import Scripted


def test_the_time_of_a_scripted_module_is_its_parents():
    model, x = Scripted().eval(), torch.randn(2, 4)
    found = self_times(model, lambda: model(x), ["norm"], 2, WallClock())
    assert list(found) == [""] and found[""] > 0


def test_without_kernel_times_a_module_is_timed_on_an_idle_device():
    idle: list[str] = []

    class Launches(nn.Module):
        def forward(self, x):
            idle.append("launch")
            return x

    model = Launches()
    self_times(model, lambda: model(torch.ones(1)), [], 1, WallClock(lambda: idle.append("idle")))
    assert idle == ["idle", "launch", "idle"] * 2


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.head(pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0])


def test_the_times_of_modules_add_up_to_the_forward_that_they_were_taken_from():
    model, x, lengths = Packed().eval(), torch.randn(8, 64, 8), torch.randint(1, 65, (8,))
    taken: list[float] = []

    def forward():
        started = time.perf_counter()
        model(x, lengths)
        taken.append(time.perf_counter() - started)

    found = self_times(model, forward, [], 1, WallClock())
    assert set(found) == {"", "rnn", "head"}
    assert sum(found.values()) == pytest.approx(taken[-1], rel=0.05)
    assert set(self_times(model, forward, ["rnn"], 1, WallClock())) == {"", "head"}


def test_a_module_that_raises_and_is_called_again_is_timed_once():
    class Tries(nn.Module):
        def __init__(self):
            super().__init__()
            self.strict = nn.Linear(4, 4)

        def forward(self, x):
            try:
                return self.strict(x[:, :3])
            except RuntimeError:
                return self.strict(x)

    model, x = Tries().eval(), torch.randn(2, 4)
    found = self_times(model, lambda: model(x), [], 2, WallClock())
    assert set(found) == {"", "strict"} and min(found.values()) > 0
