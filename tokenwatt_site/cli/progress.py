"""How a measurement is shown while it runs: a live line, plain lines, or JSON lines."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from tokenwatt_site.cli.terminal import printable, say

Tell = Callable[[dict[str, Any]], None]

_LIVE_S = 0.5
_PLAIN_S = 10.0


def teller(*, as_json: bool) -> Tell:
    """Return the way to show events: JSON if asked, live on a terminal, else plain lines."""
    if as_json:
        return _json
    return _Lines(live=sys.stderr.isatty())


def _json(event: dict[str, Any]) -> None:
    click.echo(json.dumps(event, allow_nan=False))


class _Lines:
    """Lines on standard error; on a terminal the last one is rewritten."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._last_s = 0.0
        self._dirty = False

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] == "tick":
            self._tick(event)
            return
        line = _line(event)
        if line:
            self._clear()
            say(line, err=True)

    def _tick(self, event: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._last_s < (_LIVE_S if self._live else _PLAIN_S):
            return
        self._last_s = now
        if self._live:
            click.echo("\r\x1b[2K" + printable(tick_line(event)), nl=False, err=True)
            self._dirty = True
        else:
            click.echo(tick_line(event), err=True)

    def _clear(self) -> None:
        if self._dirty:
            click.echo("\r\x1b[2K", nl=False, err=True)
            self._dirty = False


def tick_line(event: dict[str, Any]) -> str:
    """Return one line of where a window stands."""
    parts = [
        f"{event['phase']:>8} {event['rate_rps']:.3g} requests/s",
        f"{event['in_flight']:>4} in flight",
        f"TTFT p99 {_ms(event['ttft_p99_ms'], '–')}",
        f"TPOT p99 {_ms(event['tpot_p99_ms'], '–')}",
    ]
    if event.get("watts") is not None:
        parts.append(f"{event['watts']:,.0f} W")
    parts.append(f"{event['left_s']:.0f} s left in this window")
    return " · ".join(parts)


def _line(event: dict[str, Any]) -> str:
    kind = event["event"]
    if kind == "note":
        return f"{event['about']}: {event['text']}"
    if kind == "window":
        verdict = "within the limits" if event["passed"] else "outside"
        if event.get("aborted"):
            verdict = "given up: too many misses"
        if not event["valid"]:
            verdict = f"invalid ({', '.join(event['reasons'])})"
        energy = (
            f" · {event['j_per_output_token']:.4g} J/token"
            if event["j_per_output_token"] is not None
            else ""
        )
        return (
            f"window {event['index']:>2} {event['phase']:<7} "
            f"{event['rate_rps']:>8.4g} requests/s · "
            f"TTFT p99 {_ms(event['ttft_p99_ms'])} · TPOT p99 {_ms(event['tpot_p99_ms'])} · "
            f"{event['goodput_tok_s']:,.0f} tok/s{energy} · {verdict}"
        )
    return ""


def _ms(value: float | None, unknown: str = "no bound") -> str:
    if value is None:
        return unknown
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"  # noqa: PLR2004 - digits for people
