"""Contract of a frontend: inherit `FrontendContract`, say how to make a specification."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path

import pytest

from agentforge.devices import DeviceSpec
from agentforge.frontends import Frontend, FrontendOptions
from agentforge.problems.failures import KnownFailures
from agentforge.problems.kernelbench import load_problem
from agentforge.schema import AgentForgeError, TargetError


def _as_a_run_gives_them(options: FrontendOptions, folder: Path) -> FrontendOptions:
    """With what cannot be sent to another process."""
    device = DeviceSpec(kind="cpu", name="test", architecture="test")
    return replace(options, failures=KnownFailures(folder / "cache", device), progress=lambda line: None)


class FrontendContract(ABC):
    """What every frontend must do. Subclass as `class TestMine(FrontendContract)`."""

    @abstractmethod
    def make(self) -> Frontend:
        """A frontend."""

    @abstractmethod
    def good(self, folder: Path) -> tuple[str, FrontendOptions]:
        """Write a small usable model below `folder`; its specification and options."""

    @abstractmethod
    def missing(self, folder: Path) -> str:
        """A specification in this frontend's form of a file that does not exist."""

    def test_accepts_its_own_form_without_opening_a_file(self, tmp_path: Path) -> None:
        assert self.make().accepts(self.missing(tmp_path))

    def test_a_target_is_a_whole_model_in_the_convention(self, tmp_path: Path) -> None:
        spec, options = self.good(tmp_path)
        target = self.make().load(spec, _as_a_run_gives_them(options, tmp_path))
        assert target.origin == spec
        assert target.definition.op_type == "model"
        assert target.workloads[0].source == "reference"
        problem = load_problem(target.definition)
        args, kwargs = problem.inputs(0)
        problem.build(0)(*args, **kwargs)
        again = self.make().load(spec, options)
        assert again.definition.hash == target.definition.hash

    def test_a_missing_file_is_one_clear_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(TargetError, match="does not exist") as caught:
            self.make().load(self.missing(tmp_path), FrontendOptions())
        assert "\n" not in str(caught.value)

    def test_a_device_that_is_not_there(self, tmp_path: Path) -> None:
        spec, options = self.good(tmp_path)
        absent = FrontendOptions(**{**vars(options), "device": "cuda:63"})
        with pytest.raises(AgentForgeError, match="cuda:63"):
            self.make().load(spec, absent)
