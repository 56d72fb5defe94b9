"""The registry of codes has those that the code uses, and no others: read from its syntax trees."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from trickle import errors
from trickle.cli.app import _USAGE_CODES
from trickle.errors import DefinitionError, NotDifferentiableError, TrickleError
from trickle.model.codes import ERRORS, OBSTACLES, REASONS, WARNINGS

SOURCES = Path(errors.__file__).parent
CLASSES = {
    name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, TrickleError)
}
REASON_CODES = {*REASONS, *WARNINGS, *OBSTACLES}
ALL = REASON_CODES.union(*ERRORS.values())
# A code that comes with another error or reason, with a function's argument, or from Spark.
PASSED_ON = re.compile(r".*\.code$|^code$|^_java_code\(|^None if error is None")
_CODE = re.compile(r"[A-Z]+(_[A-Z]+)+")
_PLACES = {"Reason": 0, "obstacle": 0, "Warned": 1}


@cache
def trees() -> list[ast.Module]:
    paths = [path for path in SOURCES.rglob("*.py") if "testing" not in path.parts and path.name != "codes.py"]
    return [ast.parse(path.read_text(encoding="utf-8")) for path in paths]


@cache
def constants() -> dict[str, str]:
    """The texts that modules give names to."""
    return {
        node.target.id: node.value.value
        for tree in trees()
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def given() -> Iterator[tuple[str, ast.expr]]:
    """Each code that is given to an error, a reason or a function which takes one, with the name of that."""
    for tree in trees():
        functions = {node.name: _place(node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(tree):
            match node:
                case ast.ClassDef() if node.name not in CLASSES:
                    yield from _given_to_bases(node)
                case ast.FunctionDef():
                    yield from _defaults(node)
                case ast.Tuple(elts=[ast.Constant(value=str(code)), ast.Constant(value=str(text))]):
                    yield from [("", node.elts[0])] if _CODE.fullmatch(code) and " " in text else []
                case ast.Call():
                    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                    place = _PLACES.get(name, 0 if name in CLASSES else functions.get(name))
                    yield from [(name, node.args[place])] if place is not None and node.args else []
                    yield from ((name, word.value) for word in node.keywords if word.arg == "code")


def _defaults(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if argument.arg == "code" and default is not None:
            yield function.name, default


def _place(function: ast.FunctionDef) -> int | None:
    names = [argument.arg for argument in function.args.args if argument.arg != "self"]
    return names.index("code") if "code" in names and function.name != "__init__" else None


def _given_to_bases(of: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for base in (base.id for base in of.bases if isinstance(base, ast.Name) and base.id in CLASSES):
        calls = (node for node in ast.walk(of) if isinstance(node, ast.Call))
        yield from ((base, call.args[0]) for call in calls if ast.unparse(call.func) == "super().__init__")


def read(code: ast.expr) -> str | None:
    """The code that an expression stands for, None if it is passed on."""
    match code:
        case ast.Constant():
            return code.value
        case ast.BoolOp(values=[_, other]):  # Spark's own, or ours
            return read(other)
        case ast.Call(args=[inner]) if ast.unparse(code.func) == "str":
            return read(inner)
    text = ast.unparse(code)
    return None if PASSED_ON.match(text) else constants().get(text.rpartition(".")[2], f"cannot read {text}")


def registered(name: str) -> set[str]:
    """The codes that what has this name may be given."""
    kind = CLASSES.get(name)
    if kind is None:
        return REASON_CODES | set(ERRORS["DefinitionError"]) if name == "Reason" else ALL
    section = "DefinitionError" if issubclass(kind, DefinitionError) else name
    codes = set(ERRORS[section]) | {code for code, said in REASONS.items() if section in said.raised}
    return codes | set(OBSTACLES) if issubclass(kind, NotDifferentiableError) else codes


def test_every_code_that_is_given_is_registered():
    found = [(name, read(code)) for name, code in given()]

    assert len(found) > 100
    assert not [(name, code) for name, code in found if code is not None and code not in registered(name)]
    assert not _USAGE_CODES - ALL


def test_every_registered_code_is_given():
    found = {read(code) for _, code in given()}

    assert not ALL - found
