"""What makes a gate's verdict repeat: the same examples everywhere, and no test that finds another's modules.

`HYPOTHESIS_PROFILE=explore` draws new examples each time.
"""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", UNHURRIED, derandomize=True)
settings.register_profile("explore", UNHURRIED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

_SOLUTIONS = ("model_new", "reference_model", "agentforge_stitch", "agentforge_cpp", "agentforge_run")


@pytest.fixture(autouse=True)
def no_solution_is_imported() -> Iterator[None]:
    """Solutions all have a module `model_new`: the next test must not find the last one's."""
    yield
    for name in [m for m in sys.modules if m.partition(".")[0] in _SOLUTIONS]:
        del sys.modules[name]
