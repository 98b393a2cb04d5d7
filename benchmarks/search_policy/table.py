"""The table of the trials: how often each search broke the promise, by how much it fell short."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.search_policy import truths
from benchmarks.search_policy.cases import CASES
from benchmarks.search_policy.policies import NAMES
from benchmarks.search_policy.trials import lines
from tokenwatt_site.method.statistics import wilson

HERE = Path(__file__).parent
TABLE = HERE / "TABLE.md"
PAGE = HERE.parents[1] / "content" / "pages" / "method.md"
PAGE_SEARCHES = "| Search | Promise broken in | Reported ÷ true limit | Server minutes |"
PAGE_SERVERS = (
    "| Server | Adaptive: promise broken in | Reported ÷ true | Minutes"
    " | Ladder: promise broken in | Reported ÷ true | Minutes |"
)
PAGE_CASE, PAGE_POLICIES = "cal", ("standard", "ladder")
_HEAD = (
    "| server | search | n | breaks the promise [95 %] | reported ÷ true | no answer"
    " | server min, median / p90 | estimate ÷ true before / after confirming |"
)


@dataclass(frozen=True, slots=True)
class Row:
    """All trials of one policy on one case."""

    case: str
    policy: str
    n: int
    broken: int
    """Trials that report a rate above the true limit."""
    ratios: Sequence[float]
    """Reported over true rate, of those that report one."""
    minutes: Sequence[float]
    """Ascending."""
    estimates: Mapping[str, Sequence[float]]
    """Estimate over true rate, before and after the confirm windows, where a policy has one."""

    @property
    def answered(self) -> int:
        """Trials that report a rate."""
        return len(self.ratios)

    @property
    def broken_text(self) -> str:
        """Count, share and interval."""
        if not self.answered:
            return "–"
        low, high = wilson(self.broken, self.answered)
        share = f"{100 * self.broken / self.answered:.1f} %"
        return f"{self.broken}/{self.answered} = {share} [{100 * low:.1f}, {100 * high:.1f}]"

    @property
    def minutes_text(self) -> str:
        """Median and 90th percentile."""
        middle, high = (self.minutes[math.ceil(q * self.n) - 1] for q in (0.5, 0.9))
        return f"{middle:.1f} / {high:.1f}"


def rows(trials: Iterable[Mapping[str, Any]], known: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Return the rows in the order of cases and policies."""
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for trial in trials:
        grouped[trial["case"], trial["policy"]].append(trial)
    keys = [(case, policy) for case in CASES for policy in NAMES]
    return [
        _row(key, sorted(grouped[key], key=lambda trial: trial["seed"]), known[key[0]]["rps"])
        for key in keys
        if key in grouped and key[0] in known
    ]


def _row(key: tuple[str, str], trials: Sequence[Mapping[str, Any]], true_rps: float) -> Row:
    ratios = [trial["rps"] / true_rps for trial in trials if trial["rps"] is not None]
    estimates = {
        name: [trial[name] / true_rps for trial in trials if trial.get(name) is not None]
        for name in ("before", "after")
    }
    return Row(
        *key,
        n=len(trials),
        broken=sum(ratio > 1 for ratio in ratios),
        ratios=ratios,
        minutes=sorted(trial["min"] for trial in trials),
        estimates=estimates,
    )


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Return mean and standard deviation."""
    if not values:
        return "–"
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.{digits}f}"
    square = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return f"{mean:.{digits}f} ± {math.sqrt(square):.{digits}f}"


def full(found: Sequence[Row], known: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the whole table, and that of the true limits, in Markdown."""
    text = [_HEAD, "|---|---|--:|---|---|--:|---|---|"]
    for row in found:
        before, after = (spread(row.estimates[name]) for name in ("before", "after"))
        both = "–" if before == after == "–" else f"{before} / {after}"
        text.append(
            f"| {row.case} | {NAMES[row.policy]} | {row.n} | {row.broken_text} |"
            f" {spread(row.ratios)} | {row.n - row.answered} | {row.minutes_text} | {both} |"
        )
    text += ["", "| server | is | true limit, requests/s [95 %] | slope | bound by |"]
    text.append("|---|---|---|--:|---|")
    for case, truth in known.items():
        interval = f"{truth['rps']:.3f} [{truth['lo_rps']:.3f}, {truth['hi_rps']:.3f}]"
        bound = truth["bound_by"].upper()
        text.append(f"| {case} | {CASES[case].about} | {interval} | {truth['slope']} | {bound} |")
    return "\n".join(text) + "\n"


def page(found: Sequence[Row]) -> list[list[str]]:
    """Return the method page's tables: every search on one server, two searches on every server."""
    cells = {(row.case, row.policy): _page_cells(row) for row in found}
    searches = [PAGE_SEARCHES, "|---|--:|--:|--:|"]
    for policy, text in NAMES.items():
        if cell := cells.get((PAGE_CASE, policy)):
            searches.append(f"| {text} | {cell} |")
    servers = [PAGE_SERVERS, "|---|--:|--:|--:|--:|--:|--:|"]
    for name, case in CASES.items():
        both = [cells.get((name, policy), "– | – | –") for policy in PAGE_POLICIES]
        servers.append(f"| {case.about} | {both[0]} | {both[1]} |")
    return [searches, servers]


def _page_cells(row: Row) -> str:
    if not row.answered:
        return f"no answer in {row.n} | – | –"
    low, high = (100 * end for end in wilson(row.broken, row.answered))
    share = f"{100 * row.broken / row.answered:.1f} % ({low:.1f}–{high:.1f} %) of {row.answered}"
    return f"{share} | {spread(row.ratios, 2)} | {row.minutes[math.ceil(row.n / 2) - 1]:.0f}"


def with_table(text: str, table: Sequence[str]) -> str:
    """Return a page with one of its tables, known by its head, replaced."""
    old = text.splitlines()
    if table[0] not in old:
        return text
    begin = end = old.index(table[0])
    while end < len(old) and old[end].startswith("|"):
        end += 1
    return "\n".join([*old[:begin], *table, *old[end:]]) + "\n"


def texts() -> dict[Path, str]:
    """Return the files that are made from the results, as they should be."""
    known = truths.load()
    found = rows(lines(), known)
    text = PAGE.read_text(encoding="utf-8")
    for each in page(found):
        text = with_table(text, each)
    return {TABLE: full(found, known), PAGE: text}
