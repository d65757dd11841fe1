"""Playbook cards: Markdown files whose YAML front matter has the fields of `Strategy` or `Advice`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml
from pydantic import ValidationError

from agentforge.schema import Advice, CardKind, Strategy, UsageError, first_fault

Card = Strategy | Advice

_FENCE = "---"
_RESERVED = frozenset({"body", "records", "lessons", "claimed", "expected"})
"""Fields that a card's front matter does not set."""
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def languages_of_cards(languages: Iterable[str]) -> frozenset[str]:
    """Languages whose cards help to write in these: kernels of CuPy are CUDA C++."""
    own = frozenset(languages)
    return own | {"cuda"} if "cupy" in own else own


def parse_card(text: str, where: str) -> Card:
    """Parse a card. The text below the front matter is its `body`; without `kind` it is a technique.

    Raises:
        UsageError: no front matter, invalid YAML, or an invalid field.
    """
    lines = text.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != _FENCE:
        raise UsageError(f"playbook card {where}: its first line must be {_FENCE}, then YAML front matter")
    end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() == _FENCE), None)
    if end is None:
        raise UsageError(f"playbook card {where}: its front matter does not end with a line {_FENCE}")
    try:
        fields = _front_matter("\n".join(lines[1:end]))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).replace("\n", " ")
        raise UsageError(f"playbook card {where}: its front matter is no YAML ({reason})") from error
    if not isinstance(fields, dict):
        raise UsageError(f"playbook card {where}: its front matter must map field names to values")
    reserved = _RESERVED & fields.keys()
    if reserved:
        raise UsageError(f"playbook card {where}: take out the field {min(reserved)!r}: it is not the card's")
    technique = fields.get("kind", CardKind.TECHNIQUE) == CardKind.TECHNIQUE
    noun = Strategy if technique else Advice
    own = {name: value for name, value in fields.items() if name != "kind" or not technique}
    try:
        return noun.model_validate({**own, "body": "\n".join(lines[end + 1 :]).strip()})
    except ValidationError as error:
        field, message = first_fault(error)
        raise UsageError(f"playbook card {where}: field {field!r}: {message}") from error


def _front_matter(text: str) -> object:
    """Front matter as YAML, which by itself would take the last of two equal names."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        for part in (node, *(value for _, value in _pairs(node))):
            names = [key.value for key, _ in _pairs(part)]
            if twice := next((name for name in names if names.count(name) > 1), ""):
                raise ValueError(f"{twice!r} is there twice")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _pairs(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def card_files(folder: Path) -> Iterator[Path]:
    """The card files `*.md` of a folder and its subfolders, except `README.md`, in alphabetical order."""
    return (path for path in sorted(folder.rglob("*.md")) if path.name.lower() != "readme.md")


def read_card(path: Path) -> Card:
    """Read one card.

    Raises:
        UsageError: it is invalid or unreadable.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"playbook card {path} cannot be read as UTF-8 text: {error}") from error
    return parse_card(text, str(path))


def kind_of(card: Card) -> CardKind:
    """The card's kind."""
    return card.kind if isinstance(card, Advice) else CardKind.TECHNIQUE


def load_folder(folder: Path) -> dict[str, Card]:
    """All cards of a folder and its subfolders by identifier; empty if the folder does not exist.

    Raises:
        UsageError: a card is invalid, or two have the same identifier.
    """
    cards: dict[str, Card] = {}
    for path in card_files(folder):
        card = read_card(path)
        if card.id in cards:
            raise UsageError(f"playbook card {path}: another card of this folder has its id {card.id!r}")
        cards[card.id] = card
    return cards
