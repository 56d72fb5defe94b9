"""One titled case: a defining query over fixture tables, and what is known about maintaining it."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from .tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from .rounds import Round


class Way(NamedTuple):
    """How a construct is maintained, and what that costs; one sentence each, for the support page."""

    how: str
    cost: str


@dataclass(frozen=True)
class Case:
    """One construct, with everything needed to run and to document it.

    Attributes:
        title: Names the construct; unique in the corpus.
        query: The defining query; for a case with ``define``, the same in words of SQL or "".
        tables: The fixture tables it reads, the outer one first.
        how: One sentence: how it is maintained.
        cost: What is rescanned when.
        limits: What does not hold, if anything.
        rounds: Rounds written by hand; None means the generated ones.
        refused: Code of the reason why the query cannot be maintained by its changes.
        setup: SQL statements run first, when the fixture tables exist.
        register: Called with the session first, to register functions that SQL cannot define.
        define: Gives the defining DataFrame, for a case that is not SQL text.
        args: Named parameters of the query.
        approximate: Floating point results are compared to a relative tolerance.
        fixed_order: Plain Spark may answer differently for the same rows in another physical order; the engine
            fixes a total order, so the maintained table is compared with the engine's own full result.
        constant: The result does not change over the rounds, on purpose.
    """

    title: str
    query: str
    tables: tuple[str, ...]
    how: str = ""
    cost: str = ""
    limits: str = ""
    rounds: tuple[Round, ...] | None = None
    refused: str | None = None
    setup: tuple[str, ...] = ()
    register: Callable[[SparkSession], None] | None = None
    define: Callable[[SparkSession], DataFrame] | None = None
    args: Mapping[str, Any] | None = None
    approximate: bool = False
    fixed_order: bool = False
    constant: bool = False


def tables_in(*texts: str) -> tuple[str, ...]:
    """Return the fixture tables that SQL texts name, in the order of their first mention."""
    words = re.findall(r"[a-z_]+", " ".join(texts).lower())
    return tuple(dict.fromkeys(word for word in words if word in TABLES))


def case(title: str, query: str, way: Way, **more: Any) -> Case:
    """Build a case whose tables are read off its query and set-up."""
    query = inspect.cleandoc(query)
    tables = more.pop("tables", None) or tables_in(query, *more.get("setup", ()))
    return Case(title=title, query=query, tables=tables, how=way.how, cost=way.cost, **more)
