"""`kb lint`: each fault is found, and the shipped cards have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.agents.playbook.card_faults import card_faults
from agentforge.knowledge import lint
from agentforge.resources import resource
from agentforge.schema import UsageError

KNOWN = {
    "languages": ("cpp", "cuda", "triton", "python"),
    "devices": ("cpu", "cuda"),
    "metrics": ("bandwidth_share",),
}
FIELDS = {
    "id": "wide-stores",
    "kind": "avoid",
    "title": "Wide stores",
    "summary": "They gain nothing here.",
    "source": "A paper, 2020",
}


def card(folder: Path, body: str = "Because of the cache.", **changes: str) -> Path:
    fields = {**FIELDS, **changes}
    front = "".join(f"{name}: {value}\n" for name, value in fields.items())
    path = folder / f"{fields['id']}.md"
    path.write_text(f"---\n{front}---\n{body}\n")
    return path


def test_a_good_card_has_no_fault(tmp_path: Path) -> None:
    assert lint(card(tmp_path), **KNOWN) == ((), 1)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("source", {"source": "my own experience"}),
        ("op_types", {"op_types": "[normalisation]"}),
        ("languages", {"languages": "[fortran]"}),
        ("devices", {"devices": "[tpu]"}),
        ("architectures", {"architectures": "[sm_9]"}),
        ("signals", {"signals": "[bandwith_share]"}),
        ("signals", {"kind": "symptom"}),
        ("signals.0", {"signals": "['bandwidth_share > 3 or so']"}),
        ("architectures", {"kind": "hardware"}),
        ("summary", {"summary": "word " * 61}),
        ("summary", {"summary": "You can simply leave it."}),
        ("body", {"body": "A sentence of words " + "and words " * 40}),
        ("id", {"id": "Wide_Stores"}),
        ("kind", {"kind": "opinion"}),
        ("colour", {"colour": "red"}),
    ],
)
def test_a_fault_names_file_and_field(tmp_path: Path, field: str, changes: dict[str, str]) -> None:
    path = card(tmp_path, **changes)
    faults, _ = lint(tmp_path, **KNOWN)
    assert (str(path), field) in {(fault.file, fault.field) for fault in faults}


def test_ranges_of_metrics_and_reason_codes_are_signals(tmp_path: Path) -> None:
    signals = "[bandwidth_share < 0.5, spilled_bytes >= 1, noisy_control, incorrect_numerical]"
    assert lint(card(tmp_path, kind="symptom", signals=signals), **KNOWN)[0] == ()


TECHNIQUE = """\
---
id: my-rows
title: Rows
summary: It helps.
source: A paper, 2020
template: {template}
parameters: {parameters}
---
"""


@pytest.mark.parametrize(
    ("field", "template", "parameters"),
    [
        ("template", "cpp/progam.cpp.j2", "{tile: [8]}"),
        ("template", "kernels/triton/softmx", "{}"),
        ("parameters.tiles", "cpp/program.cpp.j2", "{tiles: [8]}"),
        ("parameters.nontemporal", "cpp/program.cpp.j2", "{nontemporal: [auto, off]}"),
        ("parameters.tile", "cpp/program.cpp.j2", "{tile: [1024, 0]}"),
        ("parameters.block", "kernels/triton/matmul", "{block: [64]}"),
        ("", "kernels/triton/matmul", "{block_m: [64]}"),
        ("", "cpp/program.cpp.j2", '{nontemporal: [auto, "off"]}'),
        ("", '""', "{anything: [1]}"),
    ],
)
def test_what_the_playbook_cannot_carry_out_is_a_fault(
    tmp_path: Path, field: str, template: str, parameters: str
) -> None:
    (tmp_path / "my-rows.md").write_text(TECHNIQUE.format(template=template, parameters=parameters))
    faults, _ = lint(tmp_path, **KNOWN, technique=card_faults)
    assert [fault.field for fault in faults] == [field][: bool(field)]


def test_equal_identifiers_and_equal_texts_are_faults_across_folders(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    card(tmp_path)
    card(tmp_path / "more")
    faults, cards = lint(tmp_path, **KNOWN)
    assert cards == 2
    assert [fault.field for fault in faults] == ["id", "body"]


def test_a_folder_without_cards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no card"):
        lint(tmp_path, **KNOWN)


def test_the_shipped_cards_are_in_order() -> None:
    from agentforge.profiling import classify
    from agentforge.profiling.nsight.metrics import WANTED

    own = {value for name, value in vars(classify).items() if name.isupper() and isinstance(value, str)}
    known = {**KNOWN, "metrics": {*WANTED, *own}}
    faults, _ = lint(resource("knowledge_base", "playbook"), **known, technique=card_faults)
    assert faults == ()


def test_files_that_cards_rest_on_exist() -> None:
    import re

    root = Path(__file__).resolve().parents[2]
    for path in resource("knowledge_base", "playbook").rglob("*.md"):
        for name in re.findall(r"(?<![\w/.])(?:benchmarks|docs|examples)/[\w/]+\.\w+", path.read_text()):
            assert (root / name).exists(), (path, name)
