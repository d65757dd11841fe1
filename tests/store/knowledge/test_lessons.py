"""Lessons by strategy."""

from __future__ import annotations

from datetime import timedelta

from agentforge.store import Store
from agentforge.store.tables import LessonRow
from tests.store import nouns
from tests.store.conftest import postgres_server, postgres_url, sqlite_url, store, url

from .test_scope import lesson

__all__ = ["postgres_server", "postgres_url", "sqlite_url", "store", "url"]


def test_claimed_lessons_are_read_only_if_they_are_asked_for(store: Store) -> None:
    old, new = (lesson(f'the file said "claimed":true {n}', "run", timedelta(n)) for n in range(2))
    store.save_lesson(old)
    store.save_lesson(new)
    store.save_lesson(lesson("a claim", "run", timedelta()).model_copy(update={"claimed": True}))
    assert {one.text for one in store.lessons()["fuse"]} == {old.text, new.text, "a claim"}
    with store._db.write() as session:
        body = '{"id":"claim","claimed":true}'
        session.add(LessonRow(id="claim", strategy="fuse", op_type="norm", time=nouns.NOW, body=body))
    assert store.lessons("norm", claims=False) == {"fuse": (new, old)}
