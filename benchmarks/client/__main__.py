"""Measures load generators against a server whose times are exact, one after the other, in rounds.

::

    python benchmarks/client run --envs ~/.cache/tokenwatt-peers --rounds 5
    python benchmarks/client table

``run`` installs each peer into an environment of its own under ``--envs`` (several GB, once), then
appends a line a run to results.jsonl. ``table`` makes docs/client.md's table of that file.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clients import CLIENTS, OUTPUT_TOKENS, Client, Load, make_tokenizer
from processes import Tree
from table import table

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
TTFT_MS, ITL_MS = 50.0, 20.0
_LONGEST_S = 240
_SERVER_PRIORITY, _CLIENT_PRIORITY = "20", "5"


def main() -> None:
    """Run, or print the table."""
    parser = argparse.ArgumentParser(prog="python benchmarks/client", description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--envs", type=Path, default=Path(".cache/peers"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=float, default=80.0, help="requests/s")
    parser.add_argument("--requests", type=int, default=640)
    parser.add_argument("--only", nargs="*", choices=list(CLIENTS), default=list(CLIENTS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.what == "table":
        print(table(asked.out), end="")
        return
    asked.envs = asked.envs.resolve()
    with tempfile.TemporaryDirectory() as folder:
        _rounds(asked, Path(folder))


def _rounds(asked: argparse.Namespace, folder: Path) -> None:
    """Run our client before each peer, so that every peer's run has one of ours beside it."""
    peers = [CLIENTS[name] for name in asked.only if CLIENTS[name].requirements]
    for peer in peers:
        _install(peer, asked.envs / peer.name)
    readers = [peer for peer in peers if peer.reads_tokenizer]
    tokenizer = folder / "tokenizer"
    if readers:
        make_tokenizer(asked.envs / readers[0].name, tokenizer)
    stub = folder / "stub"
    subprocess.run(["gcc", "-O2", "-o", str(stub), str(HERE / "stub.c")], check=True)  # noqa: S607
    for number in range(asked.rounds):
        for peer in peers or [None]:
            pair = f"{int(time.time())}-{number}"
            for client in filter(None, (CLIENTS["tokenwatt-site"], peer)):
                row = _measure(client, asked, (stub, tokenizer, folder)) | {"pair": pair}
                with asked.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)


def _install(client: Client, environment: Path) -> None:
    if (environment / "bin" / "pip").exists():
        return
    print(f"installing {client.name} into {environment}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    for arguments in client.requirements:
        pip = [str(environment / "bin" / "pip"), "install", "-q", *arguments.split()]
        subprocess.run(pip, check=True)
    if client.finish:
        subprocess.run([str(environment / "bin" / "python"), "-c", client.finish], check=True)


def _measure(
    client: Client, asked: argparse.Namespace, made: tuple[Path, Path, Path]
) -> dict[str, Any]:
    """Run one client against a server of its own, and return what both say."""
    stub, tokenizer, folder = made
    output = Path(tempfile.mkdtemp(dir=folder))
    times_us = [str(round(1000 * time_ms)) for time_ms in (TTFT_MS, ITL_MS)]
    server = subprocess.Popen(
        [*_pinned(_SERVER_PRIORITY, "0"), str(stub), *times_us], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None  # noqa: S101
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        load = Load(url, asked.rate, asked.requests, tokenizer, output)
        command = [
            *_pinned(_CLIENT_PRIORITY),
            *client.command(asked.envs / client.name / "bin", load),
        ]
        tree = Tree(command, _environment(folder, offline=client.offline), output / "log.txt")
        status = tree.wait(_LONGEST_S)
        with urllib.request.urlopen(f"{url}/log") as answer:  # noqa: S310 - our own server
            lines = answer.read().decode().splitlines()
    finally:
        server.kill()
        server.wait()
    log = [[int(word) for word in line.split()] for line in lines]
    row: dict[str, Any] = {
        "client": client.name, "requirements": client.requirements, "rate_rps": asked.rate,
        "requests": asked.requests, "status": status, "cores": os.cpu_count(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip
    try:
        row["said"] = asdict(client.said(load))
    except (LookupError, OSError, StopIteration, TypeError, ValueError) as error:
        row["said"] = None
        print(
            f"{client.name}: {error!r}\n{(output / 'log.txt').read_text(errors='replace')[-2000:]}"
        )
    row["seen"] = _seen(log, tree)
    shutil.rmtree(output)
    return row


def _pinned(priority: str, core: str | None = None) -> list[str]:
    """Return what keeps other work of the machine out of the figures, where it is allowed."""
    pin = ["taskset", "-c", core] if core else []
    if os.geteuid() == 0 and shutil.which("chrt"):
        return [*pin, "chrt", "-r", priority]
    return pin


def _environment(folder: Path, *, offline: bool) -> dict[str, str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "DO_NOT_TRACK": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONPATH": str(HERE.parents[1]),
        "TERM": "dumb",
        **({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"} if offline else {}),
    }


def _seen(log: list[list[int]], tree: Tree) -> dict[str, Any]:
    """Return what the server saw of the load, and what the client cost while it lasted."""
    whole = [line for line in log if line[4] == OUTPUT_TOKENS]
    if len(whole) < 2:  # noqa: PLR2004
        return {
            "requests": len(whole),
            "cpu_s": tree.cpu_s,
            "wall_s": tree.ended_s - tree.started_s,
        }
    reads = sorted(line[0] for line in whole)
    gaps = [(b - a) / 1e9 for a, b in itertools.pairwise(reads)]
    begin_s, end_s = reads[0] / 1e9, max(line[2] for line in whole) / 1e9
    ttft_ms = sorted((line[1] - line[0]) / 1e6 for line in whole)
    tpot_ms = sorted((line[2] - line[1]) / 1e6 / (line[4] - 1) for line in whole)
    events = sum(line[4] for line in whole)
    busy_s = tree.cpu_s_at(end_s) - tree.cpu_s_at(begin_s)
    return {
        "requests": len(whole),
        "events": events,
        "rate_rps": (len(reads) - 1) / ((reads[-1] - reads[0]) / 1e9),
        "gap_cv": statistics.stdev(gaps) / statistics.fmean(gaps),
        "ttft_p50_ms": _rank(ttft_ms, 0.5),
        "ttft_p99_ms": _rank(ttft_ms, 0.99),
        "tpot_p99_ms": _rank(tpot_ms, 0.99),
        "late_max_ms": max(line[3] for line in whole) / 1e6,
        "load_s": end_s - begin_s,
        "load_cpu_s": busy_s,
        "cpu_us_per_event": 1e6 * busy_s / events,
        "start_wall_s": begin_s - tree.started_s,
        "start_cpu_s": tree.cpu_s_at(begin_s),
        "rest_cpu_s": tree.cpu_s - tree.cpu_s_at(end_s),
        "cpu_s": tree.cpu_s,
        "wall_s": tree.ended_s - tree.started_s,
        "peak_mb": tree.peak_bytes / 1e6,
    }


def _rank(ordered: list[float], q: float) -> float:
    return ordered[min(len(ordered) - 1, max(0, -int(-q * len(ordered) // 1) - 1))]


if __name__ == "__main__":
    main()
