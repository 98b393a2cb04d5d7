"""The cases as data, for whoever points another client at them."""

from dataclasses import asdict
from typing import Any

from tokenwatt_site.load.api import dialect
from tokenwatt_site.load.conformance.case import Case, Truth
from tokenwatt_site.load.conformance.cases import rows
from tokenwatt_site.load.conformance.writer import PROMPT_TOKENS


def listing() -> dict[str, Any]:
    """Return every row: how to ask for it, and what is so. Times in milliseconds."""
    return {"cases": [_row(case, api) for case, api in rows()]}


def row_id(case: Case, api: str) -> str:
    """Return the name of a row, as results use it.

    >>> from tokenwatt_site.load.conformance.cases import CASES
    >>> row_id(CASES[0], "chat")
    'chat/plain'
    """
    return f"{api}/{case.name}"


def _row(case: Case, api: str) -> dict[str, Any]:
    spoken = dialect(api)
    body = {spoken.LENGTH: case.asked, "stream": True, "ignore_eos": True, **spoken.ASK_USAGE}
    return {
        "id": row_id(case, api),
        "about": case.about,
        "base_url": f"/{case.name}/v1",
        "path": f"/{case.name}/v1{spoken.PATH}",
        "model": case.name,
        "body": body | dict(case.extra),
        "truth": _truth(case.truth),
    }


def _truth(truth: Truth) -> dict[str, Any]:
    told: dict[str, Any] = {"outcome": truth.outcome, "prompt_tokens": PROMPT_TOKENS}
    for name, value in asdict(truth).items():
        if name.endswith("_s"):
            told[f"{name[:-2]}_ms"] = None if value is None else round(1000 * value, 6)
        else:
            told[name] = value
    return told
