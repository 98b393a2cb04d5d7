"""The two doors: a spec from YAML, a run document from JSON. Whatever passes is valid."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tokenwatt_site.documents import jsonfile, yamlfile
from tokenwatt_site.documents.faults import Fault, faults
from tokenwatt_site.documents.run import Run
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import DocumentError, UsageError

_SHOWN = 20


def load_spec(path: Path) -> Spec:
    """Read a spec file.

    Raises:
        UsageError: the file can't be read or isn't a spec; the message names file, line and field.
    """
    file = yamlfile.load(path)

    def place(fault: Fault) -> str:
        return f"{path}:{file.line(fault.path)}: {fault.dotted}: {fault.text}"

    return parse_spec(file.data, place)


def parse_spec(data: Any, place: Callable[[Fault], str] | None = None) -> Spec:
    """Validate a parsed spec; ``place`` turns a fault into its line of the message.

    Raises:
        UsageError: with one line a fault.
    """
    try:
        return Spec.model_validate(data)
    except ValidationError as error:
        found = faults(error, data, Spec)
    lines = [(place or _plain)(fault) for fault in found[:_SHOWN]]
    raise UsageError("\n".join(lines), "docs/spec.md explains every key; `spec new` writes a spec")


def load_run(path: Path) -> tuple[Run, bytes]:
    """Read a run document; return it with its bytes as they are.

    Raises:
        DocumentError: the file can't be read or isn't a run document.
    """
    raw = jsonfile.read_bytes(path)
    return parse_run(jsonfile.loads(raw, str(path)), str(path)), raw


def parse_run(data: Any, name: str) -> Run:
    """Validate a parsed run document.

    Raises:
        DocumentError: with one line a fault: file, JSON pointer, sentence.
    """
    found = run_faults(data)
    if isinstance(found, Run):
        return found
    lines = [f"{name}: {fault.pointer or '/'}: {fault.text}" for fault in found[:_SHOWN]]
    raise DocumentError(
        "\n".join(lines), "mend these places; schemas/run.schema.json is the contract"
    )


def run_faults(data: Any) -> Run | list[Fault]:
    """Return the document, or what keeps it from being one."""
    try:
        return Run.model_validate(data)
    except ValidationError as error:
        return faults(error, data, Run)


def dump(model: Run | Spec) -> dict[str, Any]:
    """Return the keys that were set, as JSON types: a document read and dumped keeps every key."""
    return model.model_dump(mode="json", exclude_unset=True)


def _plain(fault: Fault) -> str:
    return f"{fault.dotted}: {fault.text}"
