"""YAML 1.2 with the line of every key, safe for strangers' files."""

from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from tokenwatt_site.errors import UsageError

MAX_BYTES = 1024 * 1024
MAX_NODES = 50_000
MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class YamlFile:
    """Parsed YAML: plain data, and the tree that knows the lines."""

    data: Any
    root: Any
    """ruamel's node of the whole file; its types are loose, so it travels as Any."""

    def line(self, path: tuple[str | int, ...]) -> int:
        """Return the line, from 1, of the place that a path names, or of its nearest parent."""
        node, line = self.root, 1
        for part in path:
            found = _child(node, part)
            if found is None:
                break
            line, node = found
        return line


def load(path: Path) -> YamlFile:
    """Read a YAML file.

    Raises:
        UsageError: unreadable, not UTF-8, not YAML, duplicate keys, or made to be huge.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror or error}", "check the path and its rights"
        ) from None
    return loads(raw, str(path))


def loads(raw: bytes, name: str) -> YamlFile:
    """Parse YAML bytes; see ``load``."""
    if len(raw) > MAX_BYTES:
        raise UsageError(
            f"{name}: {len(raw)} bytes is more than a YAML file of ours may have",
            f"at most {MAX_BYTES}",
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name}: not UTF-8 at byte {error.start}", "save the file as UTF-8"
        ) from None
    try:
        root = _yaml().compose(StringIO(text))
        if root is not None and _size(root, 0) > MAX_NODES:
            raise UsageError(
                f"{name}: more than {MAX_NODES} values once its aliases are followed",
                "write it out, smaller",
            )
        data = _yaml().load(StringIO(text))
    except MarkedYAMLError as error:
        marked: Any = error
        mark = marked.problem_mark or marked.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UsageError(
            f"{name}{where}: not YAML: {marked.problem or error}", "mend the line"
        ) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{name}: not YAML: {error or type(error).__name__}", "mend the file"
        ) from None
    return YamlFile(data, root)


def dumps(data: Any) -> str:
    """Return plain data as YAML in the order of its keys, one key a line."""
    yaml = _yaml()
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.allow_unicode = True
    yaml.width = 4096
    out = StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def _yaml() -> Any:
    return YAML(typ="safe", pure=True)


def _child(node: Any, part: str | int) -> tuple[int, Any] | None:
    if node is None:
        return None
    if node.id == "mapping":
        for key, value in node.value:
            if key.value == part:
                return key.start_mark.line + 1, value
    elif node.id == "sequence" and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark.line + 1, node.value[part]
    return None


def _size(node: Any, depth: int) -> int:
    """Count the values with aliases followed; stops early once past the bound."""
    if depth > MAX_DEPTH:
        return MAX_NODES + 1
    children: list[Any] = []
    if node.id == "mapping":
        children = [each for pair in node.value for each in pair]
    elif node.id == "sequence":
        children = node.value
    total = 1
    for child in children:
        total += _size(child, depth + 1)
        if total > MAX_NODES:
            break
    return total
