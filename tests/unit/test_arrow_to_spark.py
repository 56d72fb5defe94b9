"""Arrow reaches Spark through one function, in a layout that Spark reads."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from trickle.tables.arrow.spark import in_plain_layout

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
THE_ONE = ROOT / "src/trickle/tables/arrow/spark.py"


DOORS = {
    "createDataFrame",
    "_create_from_arrow_table",
    "readArrowStreamFromFile",
    "toDataFrame",
    "ArrowStreamSerializer",
}
"""The ways by which rows that are not Spark's come into a DataFrame."""


def _calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DOORS:
            yield node


def _is_harmless(call: ast.Call) -> bool:
    """Tell whether a call makes rows of Python values or of an RDD, or is Delta's own method of this name."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr != "createDataFrame":
        return False
    of, what = ast.unparse(call.func.value), call.args[0]
    return of == "self.log" or isinstance(what, ast.List) or ast.unparse(what).endswith(".emptyRDD()")


def test_arrow_is_handed_to_spark_in_one_place() -> None:
    files = [
        path
        for folder in ("src", "bench", "examples", "scripts", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    elsewhere = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in files
        if path != THE_ONE
        for call in _calls(path)
        if not _is_harmless(call)
    ]

    assert len(list(_calls(THE_ONE))) == 3
    assert not elsewhere, "use trickle.tables.arrow.spark.arrow_frame: Spark loses rows of some Arrow tables"


def test_any_layout_becomes_plain_and_one_piece() -> None:
    texts = pa.chunked_array([["a", None], [], ["b"]], pa.string())
    table = pa.table(
        {
            "view": texts.cast(pa.string_view()),
            "large": texts.cast(pa.large_string()),
            "coded": texts.dictionary_encode(),
            "binary": texts.cast(pa.binary()).cast(pa.large_binary()),
            "nested": pa.chunked_array(
                [[{"s": ["x"]}, None], [], [{"s": []}]], pa.struct({"s": pa.list_(pa.string())})
            ),
        }
    )

    plain = in_plain_layout(table)

    assert [column.num_chunks for column in plain.columns] == [1] * 5
    assert [str(type_) for type_ in plain.schema.types[:4]] == ["string", "string", "string", "binary"]
    assert plain.to_pydict() == table.to_pydict()
