"""What the plan says of a unit's modules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from agentforge.stitch.graph.structure import described
from agentforge.stitch.runtime.code import plain_text


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


def scaled(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x * 2 if module.training else x


class Helped(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return scaled(self, x)


class Asked(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.part = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(x) if getattr(self.part, "training") else x  # noqa: B009


class Helper:
    def apply(self, module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return scaled(module, x)

    @staticmethod
    def scale(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return scaled(module, x)


HELPER = Helper()


class WithAnObject(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, helper: object) -> None:
        super().__init__()
        self.helper = helper

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.helper.apply(self, x)


class WithAClass(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Helper.scale(self, x)


class WithAGlobal(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return HELPER.apply(self, x)


class Mixed(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.first, self.inner = torch.nn.Conv2d(3, 8, 3), inner


@pytest.mark.parametrize(
    ("module", "modal"),
    [
        (torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.GELU(), torch.nn.LayerNorm(2)), False),
        (Mixed(torch.nn.GroupNorm(2, 8)), False),
        (Mixed(torch.nn.MaxPool2d(2)), False),
        (Model(), False),
        (Mixed(torch.nn.BatchNorm2d(8)), True),
        (Mixed(torch.nn.Dropout(0.1)), True),
        (Mixed(torch.nn.RReLU()), True),
        (torch.nn.MultiheadAttention(8, 2), True),
        (torch.nn.LSTM(2, 2), True),
        (torch.nn.TransformerEncoderLayer(8, 2, dropout=0.0), True),
        (torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2)), True),
        (torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(2, 2)), True),
        (Helped(), True),
        (Asked(), True),
        (WithAnObject(Helper()), True),
        (WithAnObject([Helper()]), True),
        (WithAnObject(partial(scaled)), True),
        (WithAnObject(Helper().apply), True),
        (WithAnObject(SimpleNamespace(apply=scaled)), True),
        (WithAClass(), True),
        (WithAGlobal(), True),
    ],
)
def test_modes_matter_if_code_may_read_them(module: torch.nn.Module, modal: bool) -> None:
    plan = described(module.eval())
    modes = [plan["training"], *(entry["training"] for entry in plan["modules"])]
    assert modes == [False if modal else None] * len(modes)


class Cut(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.config = {"drop_last": 1, "drop_first": 1, "init_range": 0.02}
        self.drop_cls = self.drop_unread = self.initial = True
        self.drop_rate = 0.1
        self.init_scale = 2.0

    @property
    def first(self) -> int:
        return int(self.drop_cls)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x[:, self.first :], self.drop_rate, self.training)


class CutFurther(Cut):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)[:, self.config["drop_first"] :] * self.init_scale


def test_what_a_forward_names_is_a_setting_even_if_it_sounds_like_training() -> None:
    for module, names in (
        (Cut(), ["drop_cls"]),
        (CutFurther(), ["config.drop_first", "drop_cls", "init_scale"]),
    ):
        settings = {".".join(place) for place, _ in described(module.eval())["settings"]}
        assert sorted(settings) == names


class Named(torch.nn.Module):  # type: ignore[misc]
    """Its forward reads what elsewhere says what a model is."""

    def __init__(self) -> None:
        super().__init__()
        self.config = Config()
        self.name, self.id, self.path, self.dtype = "relu", 2, "a/b", "float64"
        self.uid, self.device = "x", "cpu"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = getattr(torch, self.name)(x).to(self.device, getattr(torch, self.dtype))
        return x * (self.id + len(self.config.name_or_path)) if x.uid else x


class DroplessMixture(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.top_k = 2


def test_a_name_that_a_forward_reads_is_a_setting() -> None:
    settings = {".".join(place) for place, _ in described(Named().eval())["settings"]}
    assert settings == {"config.heads", "config.activation", "config.name_or_path", "name", "id", "dtype"}
    assert described(DroplessMixture().eval())["settings"] == [(["top_k"], "2")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.float16, "torch.float16"),
        (np.float64(0.5), "0.5"),
        (np.int32(3), "3"),
        (torch.nn.functional.max_pool2d, torch.nn.functional.max_pool2d.__name__),
        (np.True_, "True"),
        ((1, np.float32(0.5)), "(1, 0.5)"),
        (np.longdouble(0.5), ""),
        (np.ones(1), ""),
    ],
)
def test_values_of_torch_and_numpy_are_settings(value: object, text: str) -> None:
    assert plain_text(value) == text
