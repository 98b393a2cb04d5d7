"""docs/spec.md: every key of a spec, from the models' own docstrings.

``python -m tokenwatt_site.documents.reference FILE`` writes it.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenwatt_site.documents.schema import schema

_UNITS = {
    "_s": "s",
    "_ms": "ms",
    "_rps": "requests/s",
    "_hz": "Hz",
    "_pts": "percentage points",
    "_minutes": "min",
    "_tokens": "tokens",
    "_tbs_per_gpu": "TB/s",
}
_TOKENS = {"fixed", "median", "p90", "max"}
_HEAD = """\
# The spec

<!-- Made by `make docs` from the fields of tokenwatt_site/documents/spec.py: edit those. -->

A spec is a YAML file that says what to measure. `tokenwatt-site spec new --endpoint URL` writes one
for a server, `tokenwatt-site spec check FILE` checks one. An unknown key is an error that names the
nearest known one. *Read by* is the phase of a measurement that reads the key; keys that no phase
reads yet are listed [at the end](#not-read-yet).
"""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a spec, as the reference shows it."""

    section: str
    """Dotted path of the object that holds it; empty for the top level."""
    name: str
    type: str
    unit: str
    default: str
    phase: str
    since: str
    """Capability from which on the key is read; empty when it is read today."""
    meaning: str
    models: tuple[str, ...]
    """Names of the models of the objects that it holds; empty for a value."""

    @property
    def path(self) -> str:
        """Return the key's dotted path."""
        return f"{self.section}.{self.name}" if self.section else self.name


def keys() -> list[Key]:
    """Return every key, section by section in the order of the model."""
    spec = schema("spec")
    found: list[Key] = []
    _walk(spec, spec["$defs"], "", found)
    return found


def reference() -> str:
    """Return the text of docs/spec.md."""
    spec = schema("spec")
    found = keys()
    parts = [_HEAD]
    for section in dict.fromkeys(key.section for key in found):
        about = _about(spec, section)
        parts.append(f"## {section or 'Top level'}\n\n{about}\n\n{_table(found, section)}")
    later = [key for key in found if key.since]
    parts.append(
        "## Not read yet\n\nA spec may hold these keys and they are kept in the document; each is "
        "read once the tool can do what it stands for.\n\n"
        + "\n".join(f"- `{key.path}`: {key.since}" for key in later)
        + "\n"
    )
    return "\n".join(parts)


def _walk(node: dict[str, Any], defs: dict[str, Any], section: str, found: list[Key]) -> None:
    required = node.get("required", [])
    first = len(found)
    for name, field in node["properties"].items():
        kind = _kind(field, defs)
        default = "required" if name in required else _default(field)
        found.append(
            Key(
                section=section,
                name=name,
                type=kind,
                unit=_unit(name, kind),
                default=default,
                phase=field["phase"],
                since=field.get("since", ""),
                meaning=_meaning(field, defs),
                models=tuple(dict.fromkeys(_objects(field))),
            )
        )
    for key in found[first:]:
        if key.path != "hosts.power":  # the same object as power
            for model in key.models:
                _walk(defs[model], defs, key.path, found)


def _meaning(field: dict[str, Any], defs: dict[str, Any]) -> str:
    # pydantic leaves out a description that says the same as the object's own
    text: str = field.get("description") or defs[next(_objects(field))]["description"]
    return text


def _kind(field: dict[str, Any], defs: dict[str, Any]) -> str:
    kinds = list(dict.fromkeys(_kinds(field, defs)))
    # a number may be written with or without a point
    same = {kind for kind in kinds if kind.replace("integer", "number") in set(kinds) - {kind}}
    return " or ".join(kind for kind in kinds if kind not in same)


def _kinds(field: dict[str, Any], defs: dict[str, Any]) -> Iterator[str]:
    if "$ref" in field:
        target = defs[field["$ref"].rpartition("/")[2]]
        yield from ["object"] if "properties" in target else _kinds(target, defs)
    elif "anyOf" in field:
        for choice in field["anyOf"]:
            yield from _kinds(choice, defs)
    elif "enum" in field:
        yield ", ".join(f"`{value}`" for value in field["enum"])
    elif field.get("type") == "array":
        yield f"list of {_kind(field['items'], defs)}"
    else:
        yield _bounded(field)


def _bounded(field: dict[str, Any]) -> str:
    kind = {"boolean": "true or false", "string": "text"}.get(field["type"], str(field["type"]))
    bounds = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    shown = [f"{sign} {field[name]:,.10g}" for name, sign in bounds.items() if name in field]
    return " ".join([kind, ", ".join(shown)]).strip()


def _objects(field: dict[str, Any]) -> Iterator[str]:
    if "$ref" in field:
        yield field["$ref"].rpartition("/")[2]
    for choice in field.get("anyOf", []):
        yield from _objects(choice)
    if "items" in field:
        yield from _objects(field["items"])


def _unit(name: str, kind: str) -> str:
    if "number" not in kind and "integer" not in kind:
        return ""
    if name in _TOKENS:
        return "tokens"
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    if isinstance(value, dict) and value:
        return "see its keys"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _about(spec: dict[str, Any], section: str) -> str:
    node, texts = [spec], [spec["description"]]
    for name in filter(None, section.split(".")):
        field = next(each["properties"][name] for each in node if name in each["properties"])
        node = [spec["$defs"][ref] for ref in dict.fromkeys(_objects(field))]
        texts = [each["description"] for each in node]
    return " Or: ".join(texts).replace("``", "`")


def _table(found: list[Key], section: str) -> str:
    rows = ["| key | type | unit | default | read by | meaning |", "|---|---|---|---|---|---|"]
    rows += [
        f"| `{key.name}` | {key.type} | {key.unit} | {key.default} | "
        f"{f'*{key.since}*' if key.since else key.phase} | {_cell(key.meaning)} |"
        for key in found
        if key.section == section
    ]
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
