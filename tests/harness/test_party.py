"""A process that is gone is told from one that lies about where its answer lies."""

from __future__ import annotations

from unittest import mock

import pytest

from agentforge.harness.party import Floor, Party, PartyFailure
from agentforge.harness.remote import NotAllowed, Unreadable
from agentforge.schema import EvaluationStatus


def party_of(exit_code: int | None) -> Party:
    worker = mock.Mock(pid=0, **{"wait.return_value": exit_code, "log_tail.return_value": ""})
    return Party("candidate", worker, Floor(), call_timeout_s=1.0, memory_bytes=1 << 20)


@pytest.mark.parametrize(
    ("exit_code", "status"),
    [
        (None, EvaluationStatus.CHEATING),
        (139, EvaluationStatus.CRASHED),
        (137, EvaluationStatus.OUT_OF_MEMORY),
        (0, EvaluationStatus.CRASHED),
    ],
)
def test_memory_that_cannot_be_read(exit_code: int | None, status: EvaluationStatus) -> None:
    party = party_of(exit_code)
    with pytest.raises(PartyFailure) as told:
        party._reading(mock.Mock(side_effect=Unreadable))
    assert told.value.status is status
    party.worker.kill.assert_called()  # type: ignore[attr-defined]


def test_a_machine_that_forbids_reading_is_remembered() -> None:
    party = party_of(None)
    assert party._reading(mock.Mock(side_effect=NotAllowed)) is None
    assert not party.readable


def test_only_untrusted_workers_are_stopped_after_each_answer() -> None:
    assert party_of(None).pauses
    assert not Party("eager", mock.Mock(), Floor(), call_timeout_s=1.0).pauses
