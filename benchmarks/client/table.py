"""Makes the table of the clients from the results file."""

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

OURS = "tokenwatt-site"
_COLUMNS = (
    "client",
    "rate, requests/s: asked → got",
    "gap CV",
    "CPU µs a token event",
    "TTFT error p50 / p99 ms",
    "TPOT error p99 ms",
    "CPU s to start / after",
    "peak MB",
    "CPU a token event, ours ÷ its",
)


def table(results: Path) -> str:
    """Return the Markdown table: medians over the runs, ratios as medians over the pairs."""
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    by_rate: dict[float, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_rate[row["rate_rps"]].append(row)
    return "\n".join(_section(rate, found) for rate, found in sorted(by_rate.items()))


def _section(rate_rps: float, rows: list[dict[str, Any]]) -> str:
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        runs[row["client"]].append(row)
    lines = [
        f"At {rate_rps:g} requests/s, {128 * rate_rps:,.0f} token events/s:",
        "",
        "| " + " | ".join(_COLUMNS) + " |",
        "|" + "---|" * len(_COLUMNS),
    ]
    ratios = _ratios(rows)
    order = sorted(runs, key=lambda name: (name != OURS, name))
    lines += [_line(client, runs[client], ratios.get(client, [])) for client in order]
    return "\n".join([*lines, ""])


def _line(client: str, rows: list[dict[str, Any]], ratios: list[float]) -> str:
    worked = [row for row in rows if "events" in row["seen"]]
    count = f"n = {len(worked)}" if len(worked) == len(rows) else f"{len(worked)} of {len(rows)}"
    if not worked:
        return f"| {client} ({count}) |" + " – |" * (len(_COLUMNS) - 1)
    seen = [row["seen"] for row in worked]
    version = rows[0]["requirements"][-1].rpartition("==")[2] if rows[0]["requirements"] else ""
    cells = [
        f"{client} {version} ({count})",
        f"{rows[0]['rate_rps']:g} → {_median(seen, 'rate_rps'):.1f}",
        f"{_median(seen, 'gap_cv'):.2f}",
        f"{_median(seen, 'cpu_us_per_event'):.1f}",
        f"{_error(worked, 'ttft_p50_ms')} / {_error(worked, 'ttft_p99_ms')}",
        _error(worked, "tpot_p99_ms"),
        f"{_median(seen, 'start_cpu_s'):.1f} / {_median(seen, 'rest_cpu_s'):.1f}",
        f"{_median(seen, 'peak_mb'):,.0f}",
        _spread(ratios) if ratios else "–",
    ]
    return "| " + " | ".join(cells) + " |"


def _median(seen: list[dict[str, Any]], key: str) -> float:
    return statistics.median(found[key] for found in seen)


def _error(rows: list[dict[str, Any]], key: str) -> str:
    """Return the median of what the client says less what the server knows."""
    found = [
        row["said"][key] - row["seen"][key]
        for row in rows
        if row["said"] and row["said"][key] is not None
    ]
    return f"{statistics.median(found):+.2f}" if found else "–"


def _ratios(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Return our CPU time a token event over the peer's, of each pair."""
    pairs: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if "cpu_us_per_event" in row["seen"]:
            pairs[row["pair"]][row["client"]] = row["seen"]["cpu_us_per_event"]
    found: dict[str, list[float]] = defaultdict(list)
    for pair in pairs.values():
        for client, cost in pair.items():
            if client != OURS and OURS in pair:
                found[client].append(pair[OURS] / cost)
    return found


def _spread(values: list[float]) -> str:
    middle = statistics.median(values)
    return f"{middle:.2f} ({min(values):.2f} – {max(values):.2f})"
