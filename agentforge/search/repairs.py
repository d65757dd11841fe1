"""Repairs come first under every policy: a failure that its judge can repair is not given up unseen."""

from __future__ import annotations

from collections.abc import Mapping

from ._base import Node, Tree


def newest_repairable(tree: Tree, most: int) -> Node | None:
    """The newest judged failure that asks for a repair and got none, after fewer than `most` repairs."""
    waiting = [n for n in tree.nodes if n.verdict == "repair" and n.finished and not n.children]
    if not waiting:
        return None
    by_id = {node.id: node for node in tree.nodes}
    return next((n for n in reversed(waiting) if _failures(n, by_id, most) <= most), None)


def without_repairs(tree: Tree) -> list[Node]:
    """The attempts that repair none, in order."""
    failed = {node.id for node in tree.nodes if node.finished and not node.passed}
    return [node for node in tree.nodes if node.parent not in failed]


def _failures(node: Node, by_id: Mapping[str, Node], most: int) -> int:
    """Failures in a row that end with this one, counted up to one more than `most`."""
    failures, cursor = 0, by_id.get(node.id)
    while cursor is not None and cursor.verdict == "repair" and failures <= most:
        failures += 1
        cursor = by_id.get(cursor.parent or "")
    return failures
