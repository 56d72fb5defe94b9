"""What is known of types is said in one table, and in which layouts Arrow and polars have them in one module."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from trickle.model.types import NOT_STORED, TYPES

ROOT = Path(__file__).parents[2] / "src" / "trickle"
SAID = {
    "model/types.py",  # of Spark's types
    "tables/arrow/types.py",  # of those of Arrow and polars that stand for them
}
EXCEPT = {
    "tables/arrow/local.py": "turns Python values into those of nested types of Arrow: asks for their shape alone",
}

NAMES = {*TYPES, *(facts.json for facts in TYPES.values()), "decimal", "array", *NOT_STORED} - {"time"}
_NAME = re.compile(r"(decimal|array|map|struct|char|varchar)[(<].*")
_CLASS = re.compile(r"(?!Data|Struct|Array|Map)[A-Z]\w+Type\$?|Decimal|Date|Datetime|String|Boolean|U?Int\d+|Float\d+")
_SHAPES = {"is_nested"}
_OF_OTHERS = {"kind", "Kind", "TermKind"}
"""Tokens and terms of states have kinds of their own."""


def names_a_type(node: ast.AST) -> bool:
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return any(map(names_a_type, node.elts))
    if isinstance(node, ast.BinOp):
        return names_a_type(node.left) or names_a_type(node.right)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value in NAMES or bool(_NAME.fullmatch(node.value) or re.fullmatch(r"[A-Z]\w+Type\$?", node.value))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id in ("pl", "pa") and bool(_CLASS.fullmatch(node.attr))
    return isinstance(node, ast.Name) and node.id.endswith("Type") and bool(_CLASS.fullmatch(node.id))


def is_of_others(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _OF_OTHERS


def asks(node: ast.AST) -> bool:
    """Tell whether a piece of code tells types apart by their names, by their classes, or by asking Arrow or polars."""
    match node:
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            return any(map(names_a_type, sides)) and not any(map(is_of_others, sides))
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith"), args=[what, *_]):
            return names_a_type(what)
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, what]):
            return names_a_type(what)
        case ast.Attribute(value=ast.Attribute(attr="types"), attr=attr) if attr.startswith("is_"):
            return True
        case ast.Attribute(value=ast.Attribute(attr="dtype") | ast.Name(id="dtype"), attr=attr):
            return attr.startswith("is_") and attr not in _SHAPES
        case ast.MatchClass(cls=cls, kwd_patterns=within):
            return names_a_type(cls) or any(isinstance(p, ast.MatchValue) and names_a_type(p.value) for p in within)
        case ast.match_case(pattern=ast.MatchValue(value=value)):
            return names_a_type(value)
        case ast.Dict(keys=keys):
            return sum(key is not None and names_a_type(key) for key in keys) > 1
        case ast.Set(elts=elements) | ast.Tuple(elts=elements) | ast.List(elts=elements):
            return sum(map(names_a_type, elements)) > 1
    return False


def places(code: str) -> list[int]:
    return sorted({getattr(node, "lineno", 0) for node in ast.walk(ast.parse(code)) if asks(node)})


@pytest.mark.parametrize(
    "code",
    [
        'column.type == "double"',
        '"double" in column.type',
        'type_ in ("float", "double")',
        'type_.startswith("decimal(")',
        'jvm.name(type_) == "LongType$"',
        "pa.types.is_decimal(type_)",
        "column.dtype.is_integer()",
        "dtype == pl.Date",
        "isinstance(dtype, pl.Decimal)",
        "isinstance(kind, DoubleType | FloatType)",
        'match expr:\n    case Cast(_, Column(type="double")): pass',
        "match kind:\n    case MapType() | VariantType(): pass",
        'match type_:\n    case "boolean": pass',
        'WIDTHS = {"int": 4, "bigint": 8}',
        '_FLOATS = frozenset({"float", "double"})',
    ],
)
def test_a_question_about_a_type_is_seen(code):
    assert places(code)


@pytest.mark.parametrize(
    "code",
    [
        'new_column("n", "bigint")',
        'jvm.singleton("org.apache.spark.sql.types.LongType")',
        'token.kind == "string"',
        "isinstance(schema, StructType)",
        'StructField("__file", StringType())',
        "facts_of(column.type) is BIGINT",
        "pl.col(name).cast(pl.Int64)",
    ],
)
def test_other_code_is_not(code):
    assert not places(code)


def test_types_are_told_apart_in_one_place_alone():
    found = {
        str(file.relative_to(ROOT)): lines
        for file in sorted(ROOT.rglob("*.py"))
        if "testing" not in file.parts and (lines := places(file.read_text(encoding="utf-8")))
    }

    assert {file: lines for file, lines in found.items() if file not in {*SAID, *EXCEPT}} == {}
    assert set(found) >= set(EXCEPT), "no exception is needed any more"
