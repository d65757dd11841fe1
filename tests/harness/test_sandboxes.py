from __future__ import annotations

import pytest

from agentforge.harness import choose_sandbox, sandboxes
from agentforge.harness.sandbox_bubblewrap import Bubblewrap
from agentforge.harness.sandbox_namespaces import Namespaces
from agentforge.harness.sandbox_rlimits import Rlimits
from agentforge.schema import UsageError
from agentforge.testing.sandbox import SandboxContract


class TestRlimits(SandboxContract):
    isolates = False

    @pytest.fixture(scope="class")
    @classmethod
    def sandbox(cls):
        return Rlimits()


class TestNamespaces(SandboxContract):
    @pytest.fixture(scope="class")
    @classmethod
    def sandbox(cls):
        return Namespaces()


class TestBubblewrap(SandboxContract):
    @pytest.fixture(scope="class")
    @classmethod
    def sandbox(cls):
        return Bubblewrap()


def test_auto_takes_the_strongest_that_works():
    chosen = choose_sandbox("auto")
    works = [n for n in sandboxes.names() if sandboxes.create(n).available().ok]
    assert chosen.name == works[0]
    assert choose_sandbox("rlimits").name == "rlimits"
    with pytest.raises(UsageError):
        choose_sandbox("cardboard")
