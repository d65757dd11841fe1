"""What every noun shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.schema import UsageError, expanded


def test_a_path_of_an_unknown_user_is_a_usage_error() -> None:
    assert expanded("~/models/a.py") == Path.home() / "models" / "a.py"
    with pytest.raises(UsageError, match=r"~no-such-user/a\.py is nowhere, because there is no such user"):
        expanded("~no-such-user/a.py")
