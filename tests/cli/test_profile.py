"""The table of `agentforge profile`."""

from __future__ import annotations

import pytest

from agentforge.cli.commands.profile import show
from tests.loop.scripted import bottleneck, profile


@pytest.mark.parametrize(("number", "said"), [(41, "29 more take 2.9% of the time together"), (12, "")])
def test_what_takes_next_to_no_time_is_added_up(
    number: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    large = [bottleneck(f"large{n}", time_s=2.0, share=0.09) for n in range(10)]
    small = [bottleneck(f"small{n}", time_s=0.2, sol_s=0.2, share=0.001) for n in range(number - 10)]
    show(profile(*large, *small))
    shown = capsys.readouterr().out
    assert "large9" in shown
    assert "small1" in shown
    assert "small2" not in shown
    assert said in shown
