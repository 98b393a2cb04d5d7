"""docs/spec.md is made from the models, and no key of a spec stands there unread."""

import ast
from collections.abc import Iterator
from functools import cache
from typing import get_args

import pytest

from tests.support.shared import ROOT
from tokenwatt_site.documents import spec, spec_workload
from tokenwatt_site.documents.reference import Key, keys, reference

PACKAGE = ROOT / "tokenwatt_site"
KEYS = keys()
TEXT = reference()


def test_docs_spec_is_that_of_the_models() -> None:
    """Stale: run `make docs`."""
    assert (ROOT / "docs" / "spec.md").read_text(encoding="utf-8") == TEXT


def test_keys_of_the_seed_are_documented() -> None:
    known = {key.path for key in KEYS}
    assert {"engine.endpoint", "sweep.backoff", "workload.seed", "measurement.window_s"} <= known


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_key_is_explained(key: Key) -> None:
    assert key.meaning.endswith(".")
    assert f"| `{key.name}` |" in TEXT


@pytest.mark.parametrize("key", [key for key in KEYS if not key.since], ids=lambda key: key.path)
def test_key_is_read(key: Key) -> None:
    """Some module outside documents/ reads it; else it needs ``since`` in the model."""
    assert key.path in read_keys(), f"nothing reads {key.path}"


@pytest.mark.parametrize("key", [key for key in KEYS if key.since], ids=lambda key: key.path)
def test_key_of_a_later_capability_is_not_read_yet(key: Key) -> None:
    """Once something acts on it, ``since`` must go from the model.

    Pages show and checks judge documents that others measured with it.
    """
    assert key.path not in read_keys("publish/", "method/check")


@cache
def read_keys(*besides: str) -> frozenset[str]:
    """Return the dotted paths of the keys that the package reads outside of documents/."""
    found: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(("documents/", *besides)):
            found |= Reads(ast.parse(path.read_text(encoding="utf-8"))).found
    return frozenset(found)


@cache
def classes() -> dict[str, tuple[str, ...]]:
    """Return the sections of a spec that each model describes: SpecSweep -> ("sweep",)."""
    found: dict[str, list[str]] = {}
    for key in KEYS:
        for name in key.models:
            found.setdefault(name, []).append(key.path)
    return {"Spec": ("",)} | {name: tuple(sections) for name, sections in found.items()}


class Reads(ast.NodeVisitor):
    """Finds reads of spec keys in a module: ``….spec.sweep.growth``, or a name of a known section.

    A name belongs to a section where it is annotated with the section's model, was assigned from an
    expression of that section, or loops over one. A read that only decides on refusing is none.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.found: set[str] = set()
        self.names: dict[str, tuple[str, ...]] = {"spec": ("",)}
        for _ in range(2):  # once for the names, once more for what is read through them
            self.visit(tree)

    def visit_arg(self, node: ast.arg) -> None:
        if node.annotation is not None:
            self.learn(node.arg, tuple(annotated(node.annotation)))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.returns is not None:
            self.learn(f"{node.name}()", tuple(annotated(node.returns)))
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self.loop(node)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.loop(node)
        self.generic_visit(node)

    def loop(self, node: ast.For | ast.comprehension) -> None:
        """Learn the names of a loop; one that enumerates or zips belongs to what it goes over."""
        call = node.iter
        over = call.args if isinstance(call, ast.Call) and not self.sections(call) else [call]
        for name in ast.walk(node.target):
            if isinstance(name, ast.Name):
                self.learn(name.id, tuple(s for each in over for s in self.sections(each)))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.learn(node.target.id, tuple(annotated(node.annotation)))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            for name, value in pairs:
                if isinstance(name, ast.Name):
                    self.learn(name.id, self.sections(value))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        refuses = all(isinstance(statement, ast.Raise) for statement in node.body)
        for part in (*([] if refuses else [node.test]), *node.body, *node.orelse):
            self.visit(part)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.read(self.sections(node.value), node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "getattr":
            sections = self.sections(node.args[0])
            self.found |= {key.path for key in KEYS if key.section in sections}
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in annotated(node.cls):
            for attribute in node.kwd_attrs:
                self.read((name,), attribute)
        self.generic_visit(node)

    def learn(self, name: str, sections: tuple[str, ...]) -> None:
        if sections:
            self.names[name] = tuple(dict.fromkeys((*self.names.get(name, ()), *sections)))

    def read(self, sections: tuple[str, ...], attribute: str) -> None:
        self.found |= {f"{section}.{attribute}".lstrip(".") for section in sections}

    def sections(self, node: ast.expr) -> tuple[str, ...]:
        """Return the sections that an expression stands for."""
        match node:
            case ast.Name(id=name):
                return self.names.get(name, ())
            case ast.Call(func=ast.Name(id=name)):
                return self.names.get(f"{name}()", ())
            case ast.Attribute(attr="spec"):
                return ("",)
            case ast.Attribute(value=value, attr=name):
                inner = [f"{section}.{name}".lstrip(".") for section in self.sections(value)]
                return tuple(section for section in inner if section in known_sections())
            case _:
                parts = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
                within = isinstance(node, ast.Subscript | ast.BoolOp | ast.IfExp | ast.List)
                return tuple(s for part in parts for s in self.sections(part)) if within else ()


@cache
def known_sections() -> frozenset[str]:
    return frozenset(key.section for key in KEYS)


def annotated(node: ast.expr) -> Iterator[str]:
    """Yield the sections of every model that an annotation names."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute):
            name = part.id if isinstance(part, ast.Name) else part.attr
            alias = getattr(spec_workload, name, None) or getattr(spec, name, None)
            for model in get_args(alias) or (alias,):
                yield from classes().get(getattr(model, "__name__", ""), ())


def test_reads_are_found_however_they_are_written() -> None:
    module = ast.parse(
        "def f(spec: Spec, power: SpecPower, length: Length, other):\n"
        "    sweep = spec.sweep\n"
        "    print(sweep.growth, other.spec.slo.ttft_p99_ms, power.sampling_hz, length.fixed)\n"
        "    print(other.measurement.repeats)\n"
        "    if spec.hosts:\n"
        "        raise RefusedError('hosts')\n"
    )
    assert Reads(module).found & {key.path for key in KEYS} == {
        "sweep",
        "sweep.growth",
        "slo",
        "slo.ttft_p99_ms",
        "power.sampling_hz",
        "workload.input_tokens.fixed",
        "workload.output_tokens.fixed",
    }
