"""A whole stream table without storage: the same compile-and-run path over tables in memory.

lab = Lab(spark, {"orders": ("id INT, amount INT", [(1, 10)])})
lab.define("SELECT sum(amount) AS total FROM orders")
lab.sources["orders"].commit(inserts=[(2, 5)])
lab.refresh().mode      # 'differential'
lab.differences()       # ([], [])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trickle.catalyst.frontend import Frontend
from trickle.catalyst.jvm import Jvm
from trickle.errors import DefinitionError
from trickle.model.options import DEFAULT, Options, with_disabled
from trickle.refresh.checks import check_columns
from trickle.refresh.prepare import Prepared, prepare
from trickle.refresh.record import read_record
from trickle.refresh.run import Refresh
from trickle.refresh.tables import RefreshTables
from trickle.refresh.verify import whole_rows
from trickle.tables.arrow.local import row_key
from trickle.testing.memory import MemorySource, MemoryStateTables, MemoryTarget, nullable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trickle.model.definition import Mode
    from trickle.model.report import RefreshReport

Row = Sequence[Any]


class Lab:
    """Sources in memory, registered as temporary views, and one stream table over them."""

    def __init__(
        self,
        spark: SparkSession,
        tables: Mapping[str, tuple[str, Iterable[Row]]],
        *,
        disable: Collection[str] = (),
        options: Options = DEFAULT,
    ) -> None:
        """Make the sources: for each name a schema (DDL) and rows."""
        self.spark = spark
        self.options = with_disabled(options, disable)
        self.disable = self.options.disable
        self._jvm = Jvm(spark, self.options)
        self._frontend = Frontend(self._jvm)
        self.sources: dict[str, MemorySource] = {}
        self._by_stub: dict[int, MemorySource] = {}
        for name, (schema, rows) in tables.items():
            source = MemorySource(spark, name, schema, rows, driver_io="driver_io" not in self.disable)
            # An empty RDD is opaque to the optimiser, which would fold the rows of a local relation into the plan.
            stub = spark.createDataFrame(spark.sparkContext.emptyRDD(), source.schema)
            stub.createOrReplaceTempView(name)
            self.sources[name] = source
            self._by_stub[int(stub._jdf.queryExecution().analyzed().rdd().id())] = source
        self.prepared: Prepared | None = None
        self.target: MemoryTarget | None = None

    def define(self, query: str | DataFrame, *, mode: Mode = "differential") -> Prepared:
        """Compile a query and fill the stream table."""
        session = self._frontend.session(
            self._frontend.settings(), self.spark.catalog.currentCatalog(), self.spark.catalog.currentDatabase()
        )
        front = self._frontend
        analysed = front.analyse_sql(session, query) if isinstance(query, str) else front.analyse_frame(query)
        check_columns(analysed)
        self.prepared = prepare(self._jvm, self._frontend, session, analysed, self._source_of_leaf, self.disable)
        self.mode: Mode = mode
        like = self._jvm.frame(analysed).toDF(*self.prepared.names)
        self.target = MemoryTarget(self.spark, "lab", nullable(like))
        self.state_tables = MemoryStateTables(self.spark)
        self.refresh()
        return self.prepared

    def refresh(self) -> RefreshReport:
        """Refresh the stream table."""
        prepared, target = self._defined()
        tables = RefreshTables(prepared, target, self.mode, self.state_tables, self.options)
        return Refresh(self._jvm, tables).run().report

    def differences(self) -> tuple[list[Any], list[Any]]:
        """Return the rows that are missing and the rows too many, against a recompute; both empty if all is well."""
        prepared, target = self._defined()
        record = read_record(target.name, target.state())
        if record is None:
            message = "the stream table has no record"
            raise AssertionError(message)
        frame = whole_rows(self._jvm, prepared, record.frontier)
        expected = Counter(row_key(tuple(r)) for r in frame.collect())
        actual = Counter(row_key(r) for r in target.rows())
        return list((expected - actual).elements()), list((actual - expected).elements())

    def _defined(self) -> tuple[Prepared, MemoryTarget]:
        if self.prepared is None or self.target is None:
            message = "define() comes first"
            raise AssertionError(message)
        return self.prepared, self.target

    def _source_of_leaf(self, leaf: Any) -> MemorySource | None:
        kind = self._jvm.name(leaf)
        if kind == "LogicalRDD":
            return self._by_stub[int(leaf.rdd().id())]
        if kind in ("LocalRelation", "OneRowRelation", "Range"):
            return None
        raise DefinitionError("UNSUPPORTED_SOURCE", f"a lab holds no {kind}.")
