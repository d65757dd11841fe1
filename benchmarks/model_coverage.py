"""Profile, and optionally optimize, many kinds of models, each in a process of its own with a time limit.

    python benchmarks/model_coverage.py                  # profile; needs extra hf, uses diffusers if there
    python benchmarks/model_coverage.py --optimize 0.5   # also optimize, with half a minute of search each
    python tools/coverage_table.py                       # write the results into docs/models.md

Packages are imported once. Each profile is a forked process that does what `agentforge profile` does, without
its child processes; `optimize` is the command itself, one model after the other, in a home of its own.
Results are written after each case, so that the same command continues after an interruption; `--again`
repeats cases.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "problems")]

from _provenance import provenance  # noqa: E402
from model_configurations import DIFFUSERS, TRANSFORMERS  # noqa: E402

from agentforge.config import SearchSettings, load_settings  # noqa: E402
from agentforge.devices import detect, measure_roofline  # noqa: E402
from agentforge.frontends import _load, load_target  # noqa: E402
from agentforge.isolation.child_process import ChildFailure  # noqa: E402
from agentforge.profiling import profile as profiling  # noqa: E402
from agentforge.schema import AgentForgeError  # noqa: E402

FORK = multiprocessing.get_context("fork")

RESULTS = HERE / "results" / "model_coverage.json"
STITCHING_S = SearchSettings().least_stitching_s
"""Seconds that `optimize` may take after its search, unless the search is longer."""
INTERNALS = (
    "Traceback",
    "torch._",
    "torch.fx",
    "torch.classes",
    "While executing",
    "num_users",
    "tlparse",
    "torch.ops",
    "aten.",
    "CannotExtract",
    "0x",
    "SymNode",
)
"""Words of torch's internals that no message may show."""
MODULE = """import torch
from ordinary_modules import {name} as Model

def get_inputs():
    return Model.inputs()

def get_init_inputs():
    return []
"""
DIFFUSION = """import torch
from diffusers import {name}

class Model({name}):
    def __init__(self):
        super().__init__({arguments})

def get_inputs():
    return {inputs}

def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Case:
    """One model and the files that describe it."""

    name: str
    family: str
    files: dict[str, str]
    spec: str
    """Target, relative to the folder of the files."""


def cases() -> Iterator[Case]:
    """All cases that can run with the installed packages."""
    for family, found in TRANSFORMERS.items():
        for name, config in found.items():
            text = json.dumps({**config, "architectures": [name]})
            yield Case(name, family, {f"{name}.json": text}, f"hf:{name}.json")
    if find_spec("diffusers"):
        for name, (arguments, inputs) in DIFFUSERS.items():
            text = DIFFUSION.format(name=name, arguments=arguments, inputs=inputs)
            yield Case(name, "diffusion", {f"{name}.py": text}, f"{name}.py")
    shared = (HERE / "problems" / "ordinary_modules.py").read_text()
    for name, value in vars(importlib.import_module("ordinary_modules")).items():
        if inspect.isclass(value) and hasattr(value, "inputs"):
            files = {"ordinary_modules.py": shared, f"{name}.py": MODULE.format(name=name)}
            yield Case(name, "ordinary module", files, f"{name}.py")


def in_fork(task: Callable[[], dict[str, Any]], limit_s: float) -> dict[str, Any]:
    """What `task` returns in a forked process, or `{"error": ...}`; the process ends at the time limit."""
    started = time.perf_counter()
    receiver, sender = FORK.Pipe(duplex=False)

    def run() -> None:
        os.setsid()
        try:
            answer = task()
        except AgentForgeError as error:
            outcome = "failed" if isinstance(error.__cause__, ChildFailure) else "refused"
            answer = {"outcome": outcome, "error": str(error)}
        except BaseException as error:
            answer = {"outcome": "failed", "error": f"{type(error).__name__}: {error}"[:500]}
        sender.send(answer)

    process = FORK.Process(target=run)
    process.start()
    sender.close()
    answer: dict[str, Any] = {"outcome": "failed", "error": f"it did not end within {limit_s:g} s"}
    if receiver.poll(limit_s):
        try:
            answer = receiver.recv()
        except EOFError:
            answer = {"outcome": "failed", "error": "its process died"}
    process.kill()
    process.join()
    return {"seconds": round(time.perf_counter() - started, 1), **answer}


def profiled(case: Case, folder: Path, device: Any, roofline: Any) -> dict[str, Any]:
    """What `agentforge profile` finds, in a few fields. Runs in a process of its own."""
    os.chdir(folder)
    silence = os.open(os.devnull, os.O_WRONLY)  # models and torch's profiler print
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    target = load_target(case.spec)
    answer = profiling.profile_target(target, device, roofline).model_dump(mode="json")
    sites = answer["call_sites"]
    rows = {s["name"] for b in answer["bottlenecks"] for s in b["call_sites"]}
    return {
        "outcome": "in parts" if any(s["unit"] or not s["nodes"] for s in sites) else "works",
        "total_s": answer["total_s"],
        "attributed": round(answer["attributed"], 3),
        "bottlenecks": len(answer["bottlenecks"]),
        "without_row": round(sum(s["time_s"] for s in sites if s["name"] not in rows) / answer["total_s"], 3),
        "notes": answer["notes"],
    }


def here(task: str, payload: Mapping[str, Any], **_: Any) -> Any:
    """In place of `run_child`: the same function in this process, which is one of its own already.

    Raises:
        ChildFailure: it raises; the caller makes the user's sentence of it.
    """
    module, function = task.split(":")
    try:
        return getattr(importlib.import_module(module), function)(payload, lambda text: None)
    except AgentForgeError:
        raise
    except Exception as error:
        name, text = type(error).__name__, str(error)
        raise ChildFailure("raised", f"{name}: {text}", error_type=name, detail=text) from error


def optimized(case: Case, folder: Path, minutes: float, limit_s: float, home: Path) -> dict[str, Any]:
    """The outcome of `agentforge optimize` in a few fields.

    Args:
        limit_s: seconds for all but the search and its proof.
        home: folder of the database and the caches; the folders of its runs are removed.
    """
    command = [
        sys.executable,
        "-m",
        "agentforge.cli",
        "optimize",
        case.spec,
        "--minutes",
        str(minutes),
        "--json",
    ]
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "AGENTFORGE_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    limit_s += 75 * minutes + max(STITCHING_S, 60 * minutes)
    try:
        text, _ = process.communicate(timeout=limit_s)
        answer = json.loads(text or '{"error": "it printed nothing"}')
    except subprocess.TimeoutExpired:
        answer = {"error": f"it did not end within {limit_s:g} s"}
    finally:
        end(process)
        shutil.rmtree(home / "runs", ignore_errors=True)
    seconds = round(time.perf_counter() - started, 1)
    found = {"minutes": minutes, "exit_code": process.returncode, "seconds": seconds}
    if "error" in answer:
        return {**found, "outcome": "failed", "error": str(answer["error"])[:500]}
    return {**found, **ended(answer)}


def end(process: subprocess.Popen[str]) -> None:
    """End a command with all that it started; it has ten seconds to clean up."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=10)


def ended(report: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a run's report that are kept."""
    performance = (report["end_to_end"] or {}).get("performance") or {}
    kept = {name: report[name] for name in ("headline", "mode", "proven", "attempts", "stopped", "moves")}
    return {"outcome": "ended", **kept, "speedup": performance.get("speedup", {})}


def internals(record: Mapping[str, Any]) -> list[str]:
    """Words of torch's internals in a record's messages."""
    sentences = [record.get("error", ""), record.get("headline", ""), *record.get("notes", ())]
    return sorted({word for word in INTERNALS for sentence in sentences if word in sentence})


def measured(found: dict[str, Any]) -> dict[str, Any]:
    """A result with what makes it readable later: words of torch's internals, its time, code and machine."""
    kept = ("date", "command", "commit", "device", "architecture", "threads")
    when = {name: value for name, value in provenance().items() if name in kept}
    return {**found, "internals": internals(found), "measured": when}


def one(case: Case, record: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """The record of a case with what it lacks, which runs in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="coverage-") as name:
        folder = Path(name)
        for file, text in case.files.items():
            (folder / file).write_text(text)
        now = {"name": case.name, "family": case.family, **record}
        if "profile" not in now or (options.again and not options.optimize):
            now["profile"] = measured(
                in_fork(lambda: profiled(case, folder, *options.machine), options.limit)
            )
        if options.optimize and "attributed" in now["profile"]:
            now["optimize"] = measured(optimized(case, folder, options.optimize, options.limit, options.home))
        return now


def lacks(record: Mapping[str, Any], options: argparse.Namespace) -> bool:
    """Whether a case has still to run."""
    if options.again or "profile" not in record:
        return True
    return bool(options.optimize) and "attributed" in record["profile"] and "optimize" not in record


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write the results whole or not at all."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({"provenance": provenance(), "cases": [*records]}, indent=1) + "\n")
    beside.replace(path)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only these cases")
    parser.add_argument("--optimize", type=float, default=0.0, metavar="MINUTES")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="of a profile")
    parser.add_argument("--jobs", type=int, default=1, help="profiles side by side")
    parser.add_argument("--again", action="store_true", help="run cases again that have a result")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    everything = {(c.family, c.name): c for c in cases()}
    if options.optimize < 0 or options.limit <= 0 or options.jobs < 1:
        parser.error("--optimize, --limit and --jobs are positive numbers")
    if options.optimize and options.jobs > 1:
        parser.error("two measurements at once disturb each other: --optimize takes no --jobs")
    if unknown := set(options.names) - {c.name for c in everything.values()}:
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    old = json.loads(options.out.read_text())["cases"] if options.out.exists() else []
    records = {(r["family"], r["name"]): r for r in old}
    wanted = [
        (case, records.get(key, {}))
        for key, case in everything.items()
        if (not options.names or case.name in options.names) and lacks(records.get(key, {}), options)
    ]
    device = detect("cpu")
    options.machine = device, measure_roofline(device, load_settings([]).cache)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # then the command under way is ended too
    for module in ("transformers", "agentforge.profiling.worker"):
        importlib.import_module(module)  # once, before processes are forked
    for caller in (_load, profiling):
        setattr(caller, "run_child", here)  # noqa: B010 - the name is imported there, not exported
    started = time.monotonic()
    # A case whose package is not installed here keeps its place.
    order = [*records, *(key for key in everything if key not in records)]
    with (
        tempfile.TemporaryDirectory(prefix="coverage-home-") as home,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        options.home = Path(home)
        every = pool.map if options.jobs > 1 else map  # without threads, Ctrl-C ends the command under way
        for number, record in enumerate(every(lambda pair: one(pair[0], pair[1], options), wanted), 1):
            records[record["family"], record["name"]] = record
            write(options.out, [records[key] for key in order if key in records])
            left_s = (time.monotonic() - started) / number * (len(wanted) - number)
            print(f"{number} of {len(wanted)}; {said(record)}; about {left_s / 60:.0f} min left", flush=True)


def said(record: Mapping[str, Any]) -> str:
    """A case's newest result on one line."""
    found = record.get("optimize") or record["profile"]
    return f"{record['name']}: {found['outcome']} {found.get('error') or found.get('headline', '')}".rstrip()


if __name__ == "__main__":
    main()
