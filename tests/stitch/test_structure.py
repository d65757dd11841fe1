"""What the plan says of a unit's modules."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from agentforge.stitch.graph.structure import described


@dataclass
class Config:
    heads: int = 8
    activation: str = "gelu"
    dropout: float = 0.1
    name_or_path: str = "somewhere"
    _commit: str = "abc"


class Layer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self._scale = 0.5
        self.activation = torch.relu
        self.calls = 0
        self.seen = 0
        self.sizes = (1, [2.0, None])
        self.table = torch.ones(2)
        self.dropout = config.dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.note(len(x))
        return self.activation(x) * self._scale

    def note(self, seen: int) -> None:
        self.seen = seen


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        config = Config()
        self.config = config
        self.layer = Layer(config)


def test_settings_are_what_a_forward_may_have_read_and_no_state() -> None:
    plan = described(Model().eval())
    settings = {".".join(place): text for place, text in plan["settings"]}
    assert settings == {"config.heads": "8", "config.activation": "'gelu'"}
    (layer,) = plan["modules"]
    assert {place[0]: text for place, text in layer["settings"]} == {
        "_scale": "0.5",
        "activation": "relu",
        "sizes": "(1, (2.0, None))",
    }


def test_in_training_dropout_is_a_setting() -> None:
    settings = {".".join(place): text for place, text in described(Model())["settings"]}
    assert settings["config.dropout"] == "0.1"
    assert (["p"], "0.5") in described(torch.nn.Dropout())["settings"]
    assert not described(torch.nn.Dropout().eval())["settings"]


def test_parts_say_what_is_none() -> None:
    module = torch.nn.Linear(2, 2, bias=False)
    module.register_module("adapter", None)
    module.register_buffer("mask", None)
    module.register_buffer("table", torch.ones(2))
    assert described(module)["parts"] == {
        "_modules": {"adapter": False},
        "_parameters": {"weight": True, "bias": False},
        "_buffers": {"mask": False},
    }
