"""Writes a spec as YAML with a comment for every key, made from the fields' docstrings."""

import json
from typing import Any

from pydantic import BaseModel

from tokenwatt_site.documents.faults import submodels
from tokenwatt_site.documents.jsonfile import is_object
from tokenwatt_site.documents.spec import Spec

WIDTH = 96


def commented(values: dict[str, Any], header: str) -> str:
    """Return a spec file.

    Args:
        values: keys and values of a spec, in the order to write them; plain data.
        header: the comment at the top, lines without ``#``.
    """
    lines = [f"# {line}".rstrip() for line in header.splitlines()]
    for name, value in values.items():
        info = Spec.model_fields[name]
        sections = submodels(info.annotation)
        lines += ["", *_comment(info.description, 0)]
        if is_object(value) and sections:
            lines += [f"{name}:", *_section(sections[0], value, 1)]
        else:
            lines.append(f"{name}: {scalar(value)}")
    return "\n".join(lines) + "\n"


def _section(model: type[BaseModel], values: dict[str, Any], depth: int) -> list[str]:
    pad = "  " * depth
    lines: list[str] = []
    for name, value in values.items():
        info = model.model_fields[name]
        sections = submodels(info.annotation)
        lines += _comment(info.description, depth)
        known = set(sections[0].model_fields) if sections else set[str]()
        if is_object(value) and value and set(value) <= known:
            lines += [f"{pad}{name}:", *_section(sections[0], value, depth + 1)]
        else:
            lines.append(f"{pad}{name}: {scalar(value)}")
    return lines


def scalar(value: Any) -> str:
    """Return a value as JSON, which is YAML too."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _comment(text: str | None, depth: int) -> list[str]:
    """Wrap a docstring into comment lines."""
    pad = "  " * depth + "# "
    lines: list[str] = []
    line = pad
    for word in (text or "").split():
        if len(line) + len(word) >= WIDTH and line != pad:
            lines.append(line.rstrip())
            line = pad
        line += word + " "
    return [*lines, line.rstrip()] if text else []
