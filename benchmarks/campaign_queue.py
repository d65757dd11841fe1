"""Measure the queue of campaigns on one PostgreSQL: many workers, short items, nothing lost or done twice.

    python benchmarks/campaign_queue.py                       # 64 workers, 10,000 items of 50 ms
    python benchmarks/campaign_queue.py --workers 16 --items 2000 --item-ms 200 --out FILE

Starts a PostgreSQL of its own, with its default durability. Workers are threads of several processes; an item
is a sleep, because the subject is the queue and not the machine. Each worker takes and ends items as
`agentforge campaign work` does: short ones several at a time. All are connected before they begin together. A
worker is busy while it sleeps; its share is over the time from the first item taken to the last one ended.
The processor time of an item, of its worker and of the server, says how many items a second some cores can do
at most; `load_before` says whether other programs used them. Writes benchmarks/results/campaign_queue.json;
the exit code is 1 if an item was lost or done twice, or if the queue refused the end of one.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from _provenance import provenance  # noqa: E402
from _published import refuse_part  # noqa: E402

from agentforge.campaigns.claims import Claims  # noqa: E402
from agentforge.schema import Arm, Budget, Campaign, SuiteProblem  # noqa: E402
from agentforge.store import Store  # noqa: E402

RESULTS = HERE / "results" / "campaign_queue.json"
NAME = "queue"
LEASE_S = 60.0


@contextmanager
def postgres() -> Iterator[str]:
    """URL of a database on a fresh server.

    Raises:
        SystemExit: no server is installed.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise SystemExit("no PostgreSQL server is installed: apt-get install postgresql")
    programs = found[-1].parent
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = None if os.geteuid() else "postgres" if "postgres" in names else "nobody"
    folder = Path(tempfile.mkdtemp(prefix="af-pg-"))
    if user:
        shutil.chown(folder, user)

    def call(*command: str) -> None:
        subprocess.run(command, check=True, user=user, cwd=folder, capture_output=True, timeout=120)

    data, control = str(folder / "data"), str(programs / "pg_ctl")
    try:
        call(str(programs / "initdb"), "-D", data, "-A", "trust", "-U", "forge", "-E", "UTF8")
        options = f"-k {folder} -c listen_addresses='' -c max_connections=200"
        call(control, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        yield f"postgresql+psycopg://forge@/postgres?host={folder}"
    finally:
        subprocess.run(
            [control, "-D", data, "-w", "-m", "immediate", "stop"], user=user, cwd=folder, check=False,
            capture_output=True,
        )  # fmt: skip
        shutil.rmtree(folder, ignore_errors=True)


def server_pid(url: str) -> int:
    """Identifier of the server's first process."""
    return int((Path(url.partition("host=")[2]) / "data" / "postmaster.pid").read_text().split()[0])


def fill(store: Store, items: int) -> None:
    """A campaign with that number of items."""
    campaign = Campaign(
        name=NAME,
        suite="folder:/none",
        problems=items,
        problems_hash="none",
        arms=(Arm(name="sleep", agent="playbook"),),
        budget=Budget(),
        limit_s=60,
        version="benchmark",
        created=datetime.now(UTC),
    )
    store.create_campaign(campaign, [SuiteProblem(id=f"{n}", target="none.py") for n in range(items)])


def work(url: str, number: int, threads: int, item_s: float) -> None:
    """One process of workers: prints the spans of time in which each one was busy, and the items it ended."""
    stores = [Store(url) for _ in range(threads)]
    spans: list[list[tuple[float, float]]] = [[] for _ in stores]
    ended: list[list[int]] = [[] for _ in stores]
    accepted = [0 for _ in stores]
    gate = threading.Barrier(threads + 1)

    def one(index: int) -> None:
        store = stores[index]
        store.exchange_items((), "none", "host:0", LEASE_S, 2)  # connects, and builds the statements
        claims = Claims(store, NAME, f"host{number}:{index}", LEASE_S)
        gate.wait()
        while (item := claims.take()) is not None:
            begun = time.time()
            time.sleep(item_s)
            spans[index].append((begun, time.time()))
            claims.done(item)
            ended[index].append(item.id)
        accepted[index] = claims.accepted

    workers = [threading.Thread(target=one, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    while gate.n_waiting < threads:
        time.sleep(0.01)
    print("ready", flush=True)
    sys.stdin.readline()
    began_s = time.process_time()
    gate.wait()
    for worker in workers:
        worker.join()
    cpu_s = time.process_time() - began_s
    print(json.dumps({"spans": spans, "ended": ended, "accepted": accepted, "cpu_s": cpu_s}))


def measure(workers: int, items: int, item_s: float, processes: int) -> dict[str, Any]:
    """Figures of one campaign."""
    per, load = workers // processes, round(os.getloadavg()[0], 1)
    with postgres() as url, Store(url) as store:
        fill(store, items)
        script = [sys.executable, str(HERE / "campaign_queue.py"), "--item-ms", str(item_s * 1e3)]
        script += ["--workers", str(per), "--child", url]
        server = psutil.Process(server_pid(url))
        children = [
            subprocess.Popen([*script, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for number in range(processes)
        ]
        for child in children:
            assert child.stdout
            child.stdout.readline()  # its workers are connected
        before = server.cpu_times()
        for child in children:
            assert child.stdin
            child.stdin.write("go\n")
            child.stdin.flush()
        answers = [json.loads(child.communicate()[0]) for child in children]
        time.sleep(1)  # the server's processes for their connections end
        after = server.cpu_times()
        states = store.campaign_progress(NAME).states
        tries = Counter(found.item for found in store.campaign_tries(NAME))
    spans = [span for answer in answers for own in answer["spans"] for span in own]
    client_s = sum(answer["cpu_s"] for answer in answers)
    server_s = sum(after[:4]) - sum(before[:4])  # with its children: one for each connection that was closed
    ended = Counter(item for answer in answers for own in answer["ended"] for item in own)
    refused = ended.total() - sum(sum(answer["accepted"]) for answer in answers)
    wall_s = max(end for _, end in spans) - min(begin for begin, _ in spans)
    busy_s = sum(end - begin for begin, end in spans)
    return {
        "workers": workers,
        "processes": processes,
        "items": items,
        "item_ms": item_s * 1e3,
        "lost": items - sum(count for state, count in states.items() if state.value == "done"),
        "twice": sum(count > 1 for count in ended.values()) + sum(count > 1 for count in tries.values()),
        "refused": refused,
        "wall_s": round(wall_s, 2),
        "items_per_s": round(items / wall_s, 1),
        "busy": round(busy_s / (wall_s * workers), 4),
        "load_before": load,
        "overhead_ms_per_item": round((wall_s * workers - busy_s) / items * 1e3, 2),
        "worker_cpu_ms_per_item": round(client_s / items * 1e3, 3),
        "server_cpu_ms_per_item": round(server_s / items * 1e3, 3),
    }


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--item-ms", type=float, default=50.0)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--child", nargs=2, metavar=("URL", "NUMBER"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if not options.child:
        refuse_part(parser, options, "out")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    if options.child:
        work(options.child[0], int(options.child[1]), options.workers, options.item_ms / 1e3)
        return 0
    found = measure(options.workers, options.items, options.item_ms / 1e3, options.processes)
    body = {"provenance": provenance(), "result": found}
    options.out.write_text(json.dumps(body, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    return 1 if found["lost"] or found["twice"] or found["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
