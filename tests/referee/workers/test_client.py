"""The client distinguishes a dead process from one that names a false address."""

from __future__ import annotations

from unittest import mock

import pytest

from agentforge.referee.timing.exclusive_run import ExclusiveRun
from agentforge.referee.workers.client import WorkerClient
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.memory.process_memory import NotAllowed, Unreadable
from agentforge.referee.workers.protocol import Message
from agentforge.schema import EvaluationStatus


def party_of(exit_code: int | None) -> WorkerClient:
    told = {"wait.return_value": exit_code, "log_tail.return_value": "", "others.return_value": []}
    worker = mock.Mock(pid=0, **told)
    return WorkerClient("candidate", worker, ExclusiveRun(), call_timeout_s=1.0, memory_bytes=1 << 20)


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
    client = party_of(exit_code)
    with pytest.raises(WorkerFailure) as told:
        client._reading(mock.Mock(side_effect=Unreadable))
    assert told.value.status is status
    client.worker.kill.assert_called()  # type: ignore[attr-defined]


def trusted() -> WorkerClient:
    worker = mock.Mock(pid=0, **{"others.return_value": []})
    return WorkerClient("eager", worker, ExclusiveRun(), call_timeout_s=1.0)


def test_a_machine_that_forbids_reading_is_remembered() -> None:
    client = trusted()
    assert client._reading(mock.Mock(side_effect=NotAllowed)) is None
    assert not client.readable


def test_a_solution_may_not_forbid_it_afterwards() -> None:
    client = party_of(None)
    assert client.readable
    with pytest.raises(WorkerFailure, match="forbids the referee to read") as told:
        client._reading(mock.Mock(side_effect=NotAllowed))
    assert told.value.status is EvaluationStatus.CHEATING


@pytest.mark.parametrize(
    ("claim", "leaves"), [([0, 2], {0, 2}), ([], set()), (True, set()), (None, set()), ([True, "1"], set())]
)
def test_which_outputs_are_views_as_a_worker_claims(claim: object, leaves: set[int]) -> None:
    client = party_of(None)
    client.readable = False
    with mock.patch.object(client, "_put", return_value={"aliases": claim}):
        assert client.aliases(0) == leaves
    assert client.of_files() == set()


def test_only_untrusted_workers_are_stopped_after_each_answer() -> None:
    assert party_of(None).pauses
    assert not trusted().pauses


@pytest.mark.parametrize(("code", "killed"), [("device_lost", True), ("exception", False)])
def test_a_worker_that_lost_its_device_ends(code: str, killed: bool) -> None:
    reply = Message({"id": "1", "error": {"code": code, "type": "RuntimeError", "message": "no"}})
    for client in (trusted(), party_of(None)):
        with pytest.raises(WorkerFailure):
            client._checked(reply, "1")
        assert client.worker.kill.called == killed  # type: ignore[attr-defined]


def test_the_failure_of_a_trusted_worker_has_its_name() -> None:
    reply = Message({"id": "1", "error": {"code": "exception", "type": "ValueError", "message": "no"}})
    for client, name in ((trusted(), "eager"), (party_of(139), "")):
        client.worker.wait.return_value = 139  # type: ignore[attr-defined]
        client.worker.log_tail.return_value = ""  # type: ignore[attr-defined]
        assert client._died().worker == name
        late = client._failed(EvaluationStatus.TIMEOUT, "no answer")
        assert (late.worker, late.starved) == (name, True), "the system does not say"
        assert not client._failed(EvaluationStatus.CRASHED, "died").starved
        with pytest.raises(WorkerFailure, match="no") as told:
            client._checked(reply, "1")
        assert told.value.worker == name
        with pytest.raises(WorkerFailure, match="larger") as told:
            client._locate({"leaves": []})  # it has no memory for outputs
        assert told.value.worker == name
