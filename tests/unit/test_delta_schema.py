"""Which changes of a column's type a stream table follows."""

from __future__ import annotations

from typing import Any

import pytest

from trickle.tables.delta.schema import widened


def struct(**fields: Any) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {
                "name": name,
                "type": kind,
                "nullable": True,
                "metadata": {"delta.columnMapping.physicalName": f"col-{name}"},
            }
            for name, kind in fields.items()
        ],
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("byte", "long"),
        ("integer", "double"),
        ("float", "double"),
        ("date", "timestamp_ntz"),
        ("decimal(10,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(14,4)"),
        ("integer", "decimal(10,0)"),
        ("string", "string"),
    ],
)
def test_wider_types_are_followed_at_any_depth(before: str, after: str) -> None:
    array = {"type": "array", "elementType": struct(x=before), "containsNull": True}

    found = widened(struct(a=before, b=array), struct(a=after, b={**array, "elementType": struct(x=after)}))

    assert found == struct(a=after, b={**array, "elementType": struct(x=after)})
    assert found["fields"][0]["metadata"] == {"delta.columnMapping.physicalName": "col-a"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("long", "integer"),
        ("long", "double"),
        ("double", "float"),
        ("integer", "string"),
        ("decimal(12,2)", "decimal(10,2)"),
        ("decimal(10,2)", "decimal(10,4)"),
        ("long", "decimal(10,0)"),
        ("date", "timestamp"),
        ("integer", struct(x="integer")),
    ],
)
def test_other_types_and_names_are_not(before: Any, after: Any) -> None:
    assert widened(struct(a=before), struct(a=after)) is None
    assert widened(struct(a="integer"), struct(b="integer")) is None
    assert widened(struct(a="integer"), struct(a="integer", b="integer")) is None
