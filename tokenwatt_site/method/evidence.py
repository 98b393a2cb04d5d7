"""Raw observations as rows of the evidence files, and back.

Times of a row are whole microseconds from the window's start (``t0``). Figures are computed from
traces that went through a row, so that a reader of the evidence computes the very same figures.
No prompt and no answer text is kept.
"""

from array import array
from typing import Any

from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.method.trace import RequestTrace


def request_row(trace: RequestTrace, window: int, t0_s: float) -> dict[str, Any]:
    """Return the row of one request; stamps are delta-coded in ``dt_us``, the first from t0."""
    stamps: list[int] = []
    before = 0
    for t_s in trace.events_s:
        now = _us(t_s, t0_s)
        stamps.append(now - before)
        before = now
    row: dict[str, Any] = {
        "w": window,
        "i": trace.index,
        "sched_us": _us(trace.t_sched_s, t0_s),
        "send_us": None if trace.t_send_s is None else _us(trace.t_send_s, t0_s),
        "end_us": None if trace.t_end_s is None else _us(trace.t_end_s, t0_s),
        "dt_us": stamps,
        "in": trace.input_tokens,
        "out": trace.output_tokens,
        "n": trace.n_output,
        "source": trace.n_source,
        "prompt": trace.n_prompt,
        "cached": trace.n_cached,
        "status": trace.status,
        "finish": trace.finish,
        "done": trace.done,
        "outcome": trace.outcome,
        "reason": trace.reason,
    }
    if trace.event_tokens is not None:
        row["tokens"] = list(trace.event_tokens)
    if trace.n_planned:
        row["planned"] = trace.n_planned
    if trace.n_first != 1:
        row["n_first"] = trace.n_first
    if trace.t_answer_s is not None:
        row["answer_us"] = _us(trace.t_answer_s, t0_s)
    if trace.coalesced:
        row["coalesced"] = True
    if trace.injected:
        row["inj"] = True
    return row


def power_file(number: int) -> str:
    """Return the name of the file with a meter's readings, by its place in the spec from 0."""
    return "power.jsonl.gz" if number == 0 else f"power-{number + 1}.jsonl.gz"


def trace_of(row: dict[str, Any], t0_s: float = 0.0) -> RequestTrace:
    """Return the trace of a row; ``request_row`` of it gives the same row."""
    stamps = array("d")
    now = 0
    for delta in row["dt_us"]:
        now += delta
        stamps.append(t0_s + now / 1e6)
    return RequestTrace(
        index=row["i"],
        t_sched_s=t0_s + row["sched_us"] / 1e6,
        input_tokens=row["in"],
        output_tokens=row["out"],
        injected=row.get("inj", False),
        n_planned=row.get("planned", 0),
        t_send_s=None if row["send_us"] is None else t0_s + row["send_us"] / 1e6,
        events_s=stamps,
        event_tokens=row.get("tokens"),
        n_output=row["n"],
        n_source=row["source"],
        n_first=row.get("n_first", 1),
        n_prompt=row["prompt"],
        n_cached=row["cached"],
        status=row["status"],
        finish=row["finish"],
        done=row["done"],
        t_answer_s=None if "answer_us" not in row else t0_s + row["answer_us"] / 1e6,
        coalesced=row.get("coalesced", False),
        outcome=row["outcome"],
        reason=row["reason"],
        t_end_s=None if row["end_us"] is None else t0_s + row["end_us"] / 1e6,
    )


def power_row(sample: PowerSample, window: int, t0_s: float) -> dict[str, Any]:
    """Return the row of one power sample; what the meter didn't give is left out."""
    row: dict[str, Any] = {"w": window, "t_us": _us(sample.t_s, t0_s), "device": sample.device}
    for key in ("power_w", "energy_j", "limit_w", "clock_mhz", "temperature_c", "error"):
        value = getattr(sample, key)
        if value is not None:
            row[key] = value
    if sample.throttle is not None:
        row["throttle"] = list(sample.throttle)
    if sample.throttle_ns:
        row["throttle_ns"] = sample.throttle_ns
    return row


def sample_of(row: dict[str, Any], t0_s: float = 0.0) -> PowerSample:
    """Return the sample of a row; ``power_row`` of it gives the same row."""
    return PowerSample(
        t_s=t0_s + row["t_us"] / 1e6,
        device=row["device"],
        power_w=row.get("power_w"),
        energy_j=row.get("energy_j"),
        throttle=tuple(row["throttle"]) if "throttle" in row else None,
        throttle_ns=row.get("throttle_ns", {}),
        limit_w=row.get("limit_w"),
        clock_mhz=row.get("clock_mhz"),
        temperature_c=row.get("temperature_c"),
        error=row.get("error"),
    )


def _us(t_s: float, t0_s: float) -> int:
    return round((t_s - t0_s) * 1e6)
