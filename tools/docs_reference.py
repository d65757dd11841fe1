"""Write the generated pages of the documentation, which git ignores.

    python -m tools.docs_reference    # docs/{changelog,contributing}.md, docs/reference/*.md but api.md

The texts are the commands' help and the fields' docstrings: the pages cannot disagree with the code.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import griffe
import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agentforge import schema
from agentforge.analysis import rows as analysis_rows
from agentforge.cli._answer_schema import answer_schema
from agentforge.cli._main import build
from agentforge.cli.answers import ANSWERS
from agentforge.config import Settings

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"

Row = tuple[str, ...]


def table(head: Row, rows: Sequence[Row]) -> Iterator[str]:
    """A Markdown table; nothing if it has no rows."""
    if not rows:
        return
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(_cell(cell) for cell in row) + " |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


# Command line


def cli_page() -> Iterator[str]:
    """Each command with its arguments and options, as `--help` has them."""
    yield "# Commands and options\n"
    yield "Generated from the program. [The command line](../cli.md) explains targets and exit codes.\n"
    yield from _command(typer.main.get_command(build()), "agentforge")


def _command(command: Any, path: str) -> Iterator[str]:
    if path != "agentforge":
        yield f"## `{path}`\n"
    yield inspect.cleandoc(command.help or "").replace("\f", "") + "\n"
    arguments: list[Row] = []
    options: list[Row] = []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            arguments.append((_code(parameter.metavar or parameter.name.upper()), parameter.help or ""))
        elif not parameter.hidden and parameter.name not in ("install_completion", "show_completion"):
            options.append((_names(parameter), parameter.help or "", _default(parameter)))
    yield from table(("argument", ""), arguments)
    yield from table(("option", "", "default"), options)
    for name in getattr(command, "commands", {}):
        yield from _command(command.commands[name], f"{path} {name}")


def _names(option: Any) -> str:
    names = ", ".join(map(_code, [*option.opts, *option.secondary_opts]))
    return names if option.is_flag else f"{names} {_code(option.metavar or '')}"


def _default(option: Any) -> str:
    value = option.default
    if option.is_flag or value is None or callable(value) or value in ("", [], ()):
        return ""
    return _code(str(value.value if hasattr(value, "value") else value))


# Settings and schema


def settings_page() -> Iterator[str]:
    """Each setting with type, limits, default and meaning."""
    yield "# Settings\n"
    yield (
        "Generated from `agentforge/config.py`. A value comes from `-c KEY.PATH=VALUE`, else from a variable "
        "(`AGENTFORGE_REFEREE__PROCESSES=5`), else from `.env`, else from `agentforge.toml` in the working "
        "folder, else from the default.\n"
    )
    yield from _settings(Settings, "")


def _settings(model: type[BaseModel], prefix: str, given: BaseModel | None = None) -> Iterator[str]:
    """The fields of `model`; `given` is the default instance if the model is a field itself."""
    described = _descriptions(model)
    rows: list[Row] = []
    nested: list[tuple[str, type[BaseModel], BaseModel | None]] = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            nested.append((name, kind, field.default if isinstance(field.default, kind) else None))
        else:
            set_there = given is not None and name in given.model_fields_set
            default = _code(str(getattr(given, name))) if set_there else _field_default(field)
            rows.append((_code(prefix + name), _type(field), default, described.get(name, "")))
    if prefix:
        yield f"## `{prefix.rstrip('.')}`\n"
        yield inspect.cleandoc(model.__doc__ or "") + "\n"
    yield from table(("key", "type", "default", "meaning"), rows)
    for name, kind, default_of_field in nested:
        yield from _settings(kind, f"{prefix}{name}.", default_of_field)


def _descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Docstrings of the fields: pydantic's own if the model asks for them, else read from the source."""
    found = {name: field.description for name, field in model.model_fields.items() if field.description}
    for base in model.__mro__:
        if base.__module__.partition(".")[0] != "agentforge":
            continue
        for name, member in _source(base).items():
            if member.is_attribute and member.docstring:
                found.setdefault(name, member.docstring.value)
    return found


def _source(kind: type) -> dict[str, Any]:
    """Members of a class as its source has them, with the docstrings of its attributes."""
    path = Path(inspect.getfile(kind))
    module = griffe.visit(kind.__module__, filepath=path, code=path.read_text(encoding="utf-8"))
    return dict(module.members[kind.__name__].members)


def _type(field: FieldInfo) -> str:
    limits = []
    for item in field.metadata:
        for attribute, sign in (("gt", "> "), ("ge", "at least "), ("lt", "< "), ("le", "at most ")):
            if getattr(item, attribute, None) is not None:
                limits.append(f"{sign}{getattr(item, attribute)}")
    return ", ".join([_code(_name(field.annotation)), *limits])


def _name(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if kind is type(None):
        return "None"
    if origin is None:
        return getattr(kind, "__name__", str(kind))
    arguments = [_name(a) for a in get_args(kind) if a is not Ellipsis]
    name = getattr(origin, "__name__", str(origin))
    if name in ("Union", "UnionType"):
        return " or ".join(arguments)
    if name == "Annotated":
        return _name(get_args(kind)[0])
    return f"{name}[{', '.join(arguments)}]"


def _field_default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "of this machine" if field.default_factory not in (dict, list, tuple) else ""
    if field.default is PydanticUndefined:
        return "required"
    value = field.default
    if isinstance(value, BaseModel) or value in ("", (), {}, []):
        return ""
    return _code(value.value if isinstance(value, StrEnum) else str(value))


def schema_page() -> Iterator[str]:
    """Each record of `agentforge.schema` with its fields, and each enumeration with its members."""
    yield "# Schema\n"
    yield (
        "Generated from `agentforge/schema`. Every record is a frozen pydantic model that refuses unknown "
        "fields; `Model.model_json_schema()` is its JSON schema. [The glossary](../glossary.md) introduces "
        "the nouns.\n"
    )
    public = [getattr(schema, name) for name in sorted(schema.__all__)]
    records = [o for o in public if isinstance(o, type) and issubclass(o, BaseModel) and o.model_fields]
    for record in records:
        yield f"## `{record.__name__}`\n"
        yield from _record(record, "field")
    for enumeration in (o for o in public if isinstance(o, type) and issubclass(o, StrEnum)):
        yield f"## `{enumeration.__name__}`\n"
        yield inspect.cleandoc(enumeration.__doc__ or "") + "\n"
        docs = {name: member.docstring for name, member in _source(enumeration).items()}
        values: list[Row] = [
            (_code(m.value), docs[m.name].value if docs[m.name] else "") for m in enumeration
        ]
        yield from table(("value", "meaning"), values)


def _record(record: type[BaseModel], called: str) -> Iterator[str]:
    """A record's docstring and a table of its fields."""
    yield inspect.cleandoc(record.__doc__ or "") + "\n"
    described = _descriptions(record)
    rows = [
        (_code(name), _type(field), _field_default(field), described.get(name, ""))
        for name, field in record.model_fields.items()
    ]
    yield from table((called, "type", "default", "meaning"), rows)


def tables_page() -> Iterator[str]:
    """Each function of `agentforge.analysis` that gives a table, with its columns."""
    yield "# Tables\n"
    yield "Generated from `agentforge/analysis/rows.py`. [Notebooks](../notebook.md) has the functions.\n"
    for row in vars(analysis_rows).values():
        if isinstance(row, type) and row.__name__.endswith("Row"):
            yield f"## `{row.__name__.removesuffix('Row').lower()}s`\n"
            yield from _record(row, "column")


def events_page() -> Iterator[str]:
    """Each kind of event of a run: when it happens, and its fields beyond those of `Event`."""
    yield "# Events\n"
    yield (
        "Generated from `agentforge/schema/events`. Every event also has `kind`, `seq`, `run` and `time`; "
        "[the schema](schema.md) describes the fields.\n"
    )
    rows = []
    for event in schema.EVENTS:
        fields = ", ".join(
            _code(name) for name in event.model_fields if name not in schema.Event.model_fields
        )
        when = (event.__doc__ or "").strip().removesuffix(".")
        rows.append((_code(event.model_fields["kind"].default), when, fields))
    yield from table(("kind", "when", "fields"), rows)


def json_page() -> Iterator[str]:
    """Each command's `--json` answer with its JSON schema."""
    yield "# JSON answers\n"
    yield (
        "Generated from `agentforge/cli/answers.py`; `agentforge schema COMMAND` prints the same. "
        "Infinities and NaN are strings.\n"
    )
    for command, model in ANSWERS.items():
        yield f"## `{command}`\n"
        yield inspect.cleandoc(model.__doc__ or "") + "\n"
        yield f"```json\n{json.dumps(answer_schema(command), indent=1)}\n```\n"


def repository_page(name: str) -> str:
    """A Markdown file of the repository's root, with links that work within the site."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
    return re.sub(r"\[([^]]+)\]\((?!https?:|#|[\w/-]+\.md)[^)]*\)", r"\1", text)


def main() -> int:
    """Write all pages."""
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        (ROOT / "docs" / name.lower()).write_text(repository_page(name), encoding="utf-8")
    FOLDER.mkdir(parents=True, exist_ok=True)
    pages = (cli_page, settings_page, schema_page, events_page, tables_page, json_page)
    for page in pages:
        name = page.__name__.removesuffix("_page")
        path = FOLDER / f"{name}.md"
        path.write_text("\n".join(page()) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
