"""Checks of every string of a document: what must not leave the publisher's house."""

import re
from collections.abc import Callable, Iterator

from tokenwatt_site.method.checks.rule import Found, Spot, Subject, walk
from tokenwatt_site.method.secrecy import SECRET

_SHOWN = 60
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_PATH = re.compile(r"(?<![\w.-])/(?:root|home|Users)/\S*|\b[cC]:\\\S*")
_ADDRESS = re.compile(
    rf"(?<![\w.])(?:10\.{_OCTET}|172\.(?:1[6-9]|2\d|3[01])|192\.168)\.{_OCTET}\.{_OCTET}(?!\.?\w)"
    r"|\b[\w-]+\.(?:local|internal)\b(?![-\w]|\.\w)"
)
# not the host part of user:password@host, which SECRET finds
_EMAIL = re.compile(r"(?:\bmailto:|(?<![:/\w.+-]))[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")

_LITERAL = {"stop", "kernels", "reproduce", "endpoint", "url", "command", "extra_body", "query"}
_DANGLING = tuple(",;:-– ")
_RESOLVED = re.compile(
    r"/(?:title|summary|(?:hardware|software|model|workload|power)/\w+"
    r"|configs/\d+/(?:label|engine)|reproduce)"
)


def private_path(subject: Subject) -> Found:
    """Find paths of the publisher's own machine."""
    return _matches(subject, _PATH, lambda hit: f"a path of the publisher's machine: {hit}")


def private_address(subject: Subject) -> Found:
    """Find addresses that mean something inside one network only."""
    return _matches(subject, _ADDRESS, lambda hit: f"an address of a private network: {hit}")


def secret(subject: Subject) -> Found:
    """Find keys, tokens and passwords; what was found isn't repeated."""
    return _matches(subject, SECRET, lambda _: "what looks like a key, token or password")


def email(subject: Subject) -> Found:
    """Find e-mail addresses."""
    return _matches(subject, _EMAIL, lambda hit: f"an e-mail address: {hit}")


def dangling_text(subject: Subject) -> Found:
    """Find texts that end as if something had been cut off."""
    return [
        Spot(pointer, f"the text ends with {text[-1]!r}, as if something were missing")
        for pointer, text in _strings(subject)
        if text.endswith(_DANGLING) and _LITERAL.isdisjoint(pointer.split("/"))
    ]


def empty_text(subject: Subject) -> Found:
    """Find texts for readers that say nothing."""
    return [
        Spot(pointer, "the text is empty")
        for pointer, text in _strings(subject)
        if _RESOLVED.fullmatch(pointer) and not text.strip()
    ]


def _strings(subject: Subject) -> Iterator[tuple[str, str]]:
    return ((p, value) for p, value in walk(subject.data) if isinstance(value, str))


def _matches(subject: Subject, pattern: re.Pattern[str], say: Callable[[str], str]) -> Found:
    found = ((pointer, pattern.search(text)) for pointer, text in _strings(subject))
    return [Spot(p, f"the text holds {say(_clip(hit[0]))}") for p, hit in found if hit]


def _clip(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
