"""Checks of the publisher's words against the figures."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tokenwatt_site.documents.run import Config, Run
from tokenwatt_site.method.checks.rule import Found, NotApplicable, Spot, Subject
from tokenwatt_site.method.derived import spec_of

QUICK = r"quick[ -]mode|not for publishing"
_NUMBER = r"(?P<number>\d[\d,]*(?:\.\d+)?)"
_ROUGHLY = re.compile(r"(?:about|around|roughly|nearly|~|≈)\s*$", re.IGNORECASE)
_LATER = r"(?=(?:[^.]|\.\d)*?\b(?:tokens per second|tokens/s|tok/s))"
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_MONTH = "|".join(_MONTHS)
_DATE = re.compile(
    rf"\b(?P<iso>\d{{4}}-\d\d-\d\d)\b|\b(?P<m>{_MONTH}) (?P<d>\d\d?), (?P<y>\d{{4}})\b"
    rf"|\b(?P<d2>\d\d?) (?P<m2>{_MONTH}) (?P<y2>\d{{4}})\b"
)
_PROVIDERS = {
    "aws": "AWS", "azure": "Azure", "coreweave": "CoreWeave", "crusoe": "Crusoe",
    "gcp": "Google Cloud", "hetzner": "Hetzner", "hyperstack": "Hyperstack", "lambda": "Lambda",
    "nebius": "Nebius", "ovh": "OVH", "paperspace": "Paperspace", "runpod": "RunPod",
    "scaleway": "Scaleway", "vastai": "Vast.ai", "vultr": "Vultr",
}  # fmt: skip


def quick_published(subject: Subject) -> Found:
    """Find a measurement that calls itself quick and is published as a full one."""
    if subject.run.status == "published" and (subject.run.quick or subject.says(QUICK)):
        text = "published, but the document itself says that it is a quick measurement"
        return [Spot("/status", text)]
    return []


@dataclass(frozen=True, slots=True)
class _Claim:
    """A number that the summary states, and what the document has for it."""

    said: re.Match[str]
    name: str
    values: list[float]


def summary_number(subject: Subject) -> Found:
    """Find numbers of the summary that the document's figures contradict."""
    claims = list(_claims(subject.run))
    known = [claim for claim in claims if claim.values]
    if claims and not known:
        return NotApplicable("the figures that the summary states")
    spots: list[Spot] = []
    for claim in known:
        if not any(_written_as(claim.said, value) for value in claim.values):
            have = " or ".join(f"{value:,.10g}" for value in dict.fromkeys(claim.values))
            text = (
                f"the summary says {' '.join(claim.said[0].split())!r}, and {claim.name} is {have}"
            )
            spots.append(Spot("/summary", text))
    return spots


def _claims(run: Run) -> Iterator[_Claim]:
    for pattern, name in _PATTERNS:
        for said in re.finditer(pattern, run.summary, re.IGNORECASE):
            values = [_value(run, config, name, said) for config in run.configs]
            yield _Claim(said, name, [value for value in values if value is not None])


_PATTERNS = (
    (rf"{_NUMBER}\s*(?:requests/s|requests per second)\b", "rate_rps"),
    (rf"{_NUMBER}\s+output\b{_LATER}", "goodput_tok_s"),
    (rf"{_NUMBER}\s+input\b{_LATER}", "input_tok_s"),
    (rf"{_NUMBER}\s*%\s+(?:on|accuracy)\b", "accuracy.score"),
    (rf"{_NUMBER}\s+repeats\b", "runs"),
    (rf"{_NUMBER}-(?P<unit>minute|second) windows\b", "window_s"),
    (rf"\bTTFT\s*(?:≤|<=|<)\s*{_NUMBER}\s*(?P<unit>ms|s)\b", "slo.ttft_p99_ms"),
    (rf"\bTPOT\s*(?:≤|<=|<)\s*{_NUMBER}\s*(?P<unit>ms|s)\b", "slo.tpot_p99_ms"),
)


def _value(run: Run, config: Config, name: str, said: re.Match[str]) -> float | None:
    """Return the document's value in the unit that the summary uses."""
    if name in {"rate_rps", "goodput_tok_s", "input_tok_s"}:
        value: float | None = getattr(config, name)
        return value
    if name == "accuracy.score":
        return config.accuracy.score if config.accuracy else None
    if name == "runs":
        return run.runs
    if name == "window_s":
        minutes = said["unit"].lower() == "minute"
        return spec_of(run, config).measurement.window_s / (60 if minutes else 1)
    limit_ms = run.slo.ttft_p99_ms if name == "slo.ttft_p99_ms" else run.slo.tpot_p99_ms
    return limit_ms / (1000 if said["unit"].lower() == "s" else 1)


def _written_as(said: re.Match[str], value: float) -> bool:
    """Tell whether a value, rounded to the digits that are written, is the number.

    After "about", zeros at the end of a whole number are rounded digits.
    """
    text = said["number"].replace(",", "")
    places = len(text.partition(".")[2])
    if not places and _ROUGHLY.search(said.string[: said.start("number")]):
        places = len(text.rstrip("0")) - len(text)
    return abs(float(text) - value) <= 0.5 * 10.0**-places * (1 + 1e-9)


def dates(subject: Subject) -> Found:
    """Find dates out of order, and dates in the text that the document doesn't know."""
    run = subject.run
    started, finished = (stamp and stamp[:10] for stamp in (run.started, run.finished))
    spots: list[Spot] = []
    order = [
        ("/started", run.started), ("/finished", run.finished),
        ("/published", run.published), ("", subject.today),
    ]  # fmt: skip
    known = [(pointer, date) for pointer, date in order if date is not None]
    for (pointer, early), (_, late) in pairwise(known):
        if early[: len(late)] > late[: len(early)]:
            spots.append(Spot(pointer, f"{early} is after {late}"))
    if run.published or started:
        spots += _unknown_dates(run, started or "", finished or started or "")
    return spots


def _unknown_dates(run: Run, started: str, finished: str) -> Iterator[Spot]:
    for pointer, text in (("/title", run.title), ("/summary", run.summary)):
        for said in _DATE.finditer(text):
            day = said["iso"] or _iso(
                *(said["y"], said["m"], said["d"]), *(said["y2"], said["m2"], said["d2"])
            )
            if day != run.published and not started <= day <= finished:
                yield Spot(pointer, f"{said[0]} is neither when it was measured nor published")


def _iso(*parts: str) -> str:
    year, month, day = [part for part in parts if part]
    return f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}"


def provider_mismatch(subject: Subject) -> Found:
    """Find a spec named after one provider, measured at another."""
    named, host = _providers(subject.run.spec.name), _providers(subject.run.hardware.host)
    if named and host and named.isdisjoint(host):
        text = (
            f"the spec is named after {', '.join(sorted(named))}, and the host is"
            f" {', '.join(sorted(host))}'s"
        )
        return [Spot("/spec/name", text)]
    return []


def _providers(text: str) -> set[str]:
    words = re.findall(r"[a-z]+", text.lower().replace("vast.ai", "vastai"))
    return {_PROVIDERS[word] for word in words if word in _PROVIDERS}
