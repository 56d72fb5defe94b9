"""Inputs: one object between the plans of a refresh and its tables."""

from __future__ import annotations

import traceback
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from trickle.algebra.expr import Col, Column, KeyPair
from trickle.algebra.plan import InnerJoin, Scan
from trickle.compute.evaluation import Evaluation
from trickle.compute.inputs import Inputs
from trickle.compute.leaves import Leaves
from trickle.compute.rows import Rows
from trickle.compute.spark import SparkExecution
from trickle.model.definition import SourceVersion
from trickle.model.options import DEFAULT

ORDERS = Scan("orders", (Column(1, "id", "bigint"), Column(2, "customer", "bigint")), "change")
CUSTOMERS = Scan("customers", (Column(3, "id", "bigint"), Column(4, "city", "string")), "new")
MAX_FRAMES = 3


class FileError(Exception):
    """Raised where a file would be opened."""


class Source:
    """A table that no look-up gets back from."""

    def find(self, *_: object) -> pa.Table:
        raise FileError


def test_a_key_look_up_is_few_frames_from_the_walk_to_the_table():
    jvm: Any = SimpleNamespace(spark=None)
    change: Any = pa.table({"id": [1], "customer": [7], "__weight": [1]})
    at = {name: SourceVersion(version=1, identity=name) for name in ("orders", "customers")}
    inputs = Inputs({"customers": Source()}, at, at, changes={"orders": Rows(lambda: None, 1, change)})
    evaluation = Evaluation(SparkExecution(jvm), Leaves(jvm, inputs, DEFAULT, looks_up=True), in_driver=True)
    join = InnerJoin(ORDERS, CUSTOMERS, (KeyPair(Col(ORDERS.base[1]), Col(CUSTOMERS.base[0])),))

    with pytest.raises(FileError) as raised:
        evaluation.rows(join)

    frames = [frame.name for frame in traceback.extract_tb(raised.tb)]
    last_of_walk = max(place for place, name in enumerate(frames) if name in ("visit", "_join"))
    assert frames[last_of_walk + 1 :] == ["read_scan", "lookup", "find"]
    assert len(frames) - 1 - last_of_walk <= MAX_FRAMES
