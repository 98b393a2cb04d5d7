"""What pydantic found, in the reader's terms: the place in the file and one sentence a place."""

import difflib
import types
import typing
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from tokenwatt_site.documents.jsonfile import is_array, is_object

Path = tuple[str | int, ...]

# A branch of a union: where it stands, and pydantic's name for it.
Tag = tuple[Path, str | int]

# How badly a branch of a union fits: a wrong kind of value fits least, then other keys.
_COST = {
    **dict.fromkeys(["model_type", "list_type", "dict_type", "none_required"], 100),
    **dict.fromkeys(["extra_forbidden", "missing"], 10),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the path of keys and indices, and a sentence."""

    path: Path
    text: str

    @property
    def pointer(self) -> str:
        """The JSON pointer (RFC 6901) of the place."""
        return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in self.path)

    @property
    def dotted(self) -> str:
        """The place as a.b[0].c; the top is ``(top)``."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}"
        return text.lstrip(".") or "(top)"


def faults(error: ValidationError, data: Any, model: type[BaseModel]) -> list[Fault]:
    """Return one fault a place, the alternatives of a union told once, with suggestions.

    Args:
        error: what pydantic raised for ``data``.
        data: the parsed file.
        model: the model that was asked for; its fields feed the suggestions.
    """
    walked = [
        (item, *_walk(item, data)) for item in error.errors(include_url=False, include_input=False)
    ]
    worse = _worse_branches([(item["type"], tags) for item, _, tags in walked])
    places: dict[Path, list[str]] = {}
    for item, path, tags in walked:
        if worse.isdisjoint(tags):
            places.setdefault(path, []).append(_sentence(item, path, model))
    return [Fault(path, " or ".join(dict.fromkeys(texts))) for path, texts in places.items()]


def _walk(item: Any, data: Any) -> tuple[Path, list[Tag]]:
    """Return the real path of an error, and the union branches that pydantic was in on the way."""
    path: list[str | int] = []
    tags: list[Tag] = []
    here = data
    loc = item["loc"]
    for number, part in enumerate(loc):
        if _holds(here, part):
            path.append(part)
            here = here[part]
        elif number == len(loc) - 1 and item["type"] == "missing":
            path.append(part)
        else:
            tags.append((tuple(path), part))
    return tuple(path), tags


def _holds(here: Any, part: str | int) -> bool:
    if is_array(here):
        return isinstance(part, int) and part < len(here)
    return is_object(here) and part in here


def _worse_branches(errors: list[tuple[str, list[Tag]]]) -> set[Tag]:
    """Return the branches of each union that fit the data worse than another one does."""
    cost: dict[Tag, int] = {}
    for kind, tags in errors:
        for tag in tags:
            cost[tag] = cost.get(tag, 0) + _COST.get(kind, 1)
    best: dict[Path, int] = {}
    for (path, _), value in cost.items():
        best[path] = min(value, best.get(path, value))
    return {tag for tag, value in cost.items() if value > best[tag[0]]}


def _sentence(item: Any, path: Path, model: type[BaseModel]) -> str:
    if item["type"] == "extra_forbidden":
        return "unknown key" + _suggestion(path, model)
    if item["type"] == "missing":
        return "this key is required"
    text: str = item["msg"].replace("Input should", "should").replace(" instance of ", " ")
    return text[0].lower() + text[1:]


def _suggestion(path: Path, model: type[BaseModel]) -> str:
    wrong = str(path[-1])
    siblings = {name for each in _models_at(path[:-1], model) for name in each.model_fields}
    near = difflib.get_close_matches(wrong, sorted(siblings), n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    elsewhere = {dotted.rsplit(".", 1)[-1]: dotted for dotted in _all_keys(model)}
    near = difflib.get_close_matches(wrong, sorted(elsewhere), n=1, cutoff=0.75)
    return (
        f"; did you mean {elsewhere[near[0]]!r}?"
        if near
        else f"; known here: {', '.join(sorted(siblings))}"
    )


def submodels(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation may hold, through unions, lists and Annotated."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    origin = typing.get_origin(annotation)
    if origin in {typing.Union, types.UnionType, list, dict, typing.Annotated}:
        return [each for part in typing.get_args(annotation) for each in submodels(part)]
    return []


def _models_at(path: Path, model: type[BaseModel]) -> list[type[BaseModel]]:
    models = [model]
    for part in path:
        if isinstance(part, int):
            continue
        models = [
            each
            for parent in models
            if part in parent.model_fields
            for each in submodels(parent.model_fields[part].annotation)
        ]
    return models


def _all_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for name, info in model.model_fields.items():
        keys.append(prefix + name)
        for each in submodels(info.annotation):
            keys += _all_keys(each, f"{prefix}{name}.")
    return keys
