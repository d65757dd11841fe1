"""What makes a gate's verdict repeat: the same examples everywhere, no test that finds another's modules, and
Ctrl-C that reaches what tests start.

`HYPOTHESIS_PROFILE=explore` draws new examples each time.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", UNHURRIED, derandomize=True)
settings.register_profile("explore", UNHURRIED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Jobs in the background of a shell are started so, and every process that they start inherits it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_PATIENCE = "AGENTFORGE_REFEREE__PATIENCE_S"
_SANITIZED = {"adversarial", "languages", "referee"}
"""Folders whose tests have the sanitizers of the referee."""
_SOLUTIONS = ("model_new", "reference_model", "agentforge_stitch", "agentforge_cpp", "agentforge_run")


def pytest_configure() -> None:
    """Commits wait for no disk: no test takes the machine's power away, and each would wait 4 ms."""
    from agentforge.store import _engine

    _engine.SYNCHRONOUS = "OFF"


@pytest.hookimpl(trylast=True)  # after `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules with slow tests first: what two workers begin last takes seconds, so neither waits long."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Beside another test no verdict waits for a quiet moment: the other one keeps the processors busy."""
    if item.get_closest_marker("timing"):
        os.environ.pop(_PATIENCE, None)
    else:
        os.environ[_PATIENCE] = "0"


@pytest.fixture
def latin_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a locale with ISO-8859-1: text without a named encoding is written in that one."""
    write = Path.write_text

    def write_text(path: Path, text: str, encoding: str | None = None, *options: Any, **named: Any) -> int:
        return write(path, text, encoding or "iso-8859-1", *options, **named)

    monkeypatch.setattr(Path, "write_text", write_text)


@pytest.fixture
def known_roofline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ceilings above any CPU's, not measured: on a busy machine that is tried again and again."""
    from tests.quick import ROOFLINE

    for part in ROOFLINE:
        monkeypatch.setattr(*part)


@pytest.fixture
def no_slow_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `tests/quick.py` leaves out, but for the measured ceilings."""
    from tests.quick import SLOW_PARTS

    for part in SLOW_PARTS:
        monkeypatch.setattr(*part)


@pytest.fixture(autouse=True)
def no_sanitizers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something else than the referee is tested, it builds C++ kernels once, not three times."""
    pipeline = sys.modules.get("agentforge.referee.pipeline")
    if pipeline is not None and _SANITIZED.isdisjoint(request.path.parts):
        monkeypatch.setattr(pipeline, "has_kernels", lambda _: False)


@pytest.fixture(autouse=True)
def no_lock_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests side by side do not wait for each other's timing: a right answer needs no quiet device."""
    locks = sys.modules.get("agentforge.referee.timing.device_lock")
    if locks is not None:
        monkeypatch.setattr(locks, "_MACHINE", "nowhere/agentforge-locks")


@pytest.fixture(autouse=True)
def no_solution_is_imported() -> Iterator[None]:
    """Solutions all have a module `model_new`: the next test must not find the last one's."""
    yield
    for name in [m for m in sys.modules if m.partition(".")[0] in _SOLUTIONS]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def flat_imports() -> Iterator[None]:
    """Scripts of benchmarks import each other flatly, as they do when they are run."""
    benchmarks = Path(__file__).resolve().parents[1] / "benchmarks"
    added = [str(benchmarks / "adversarial"), str(benchmarks)]
    sys.path[:0] = added
    yield
    for path in added:
        sys.path.remove(path)
