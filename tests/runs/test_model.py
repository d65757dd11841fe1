"""A run of a whole model knows what an earlier run could not load."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.config import Settings
from agentforge.devices import detect
from agentforge.frontends import FrontendOptions
from agentforge.runs import ModelStart
from agentforge.schema import MemoryShortageError
from tests.frontends.test_kernelbench import write


def test_a_model_that_does_not_fit_is_loaded_twice(tmp_path: Path) -> None:
    spec, settings = write(tmp_path, "return self.fc(x).new_zeros(1 << 44)"), Settings(home=tmp_path / "home")
    for known in (False, False, True):
        with pytest.raises(MemoryShortageError, match="needs more memory than the") as caught:
            ModelStart(spec, FrontendOptions()).load(settings, detect("cpu"))
        assert ("known since" in str(caught.value)) is known
    (file,) = (settings.cache / "failures").iterdir()
    assert f"delete cache/failures/{file.name} in AGENTFORGE_HOME" in str(caught.value)
