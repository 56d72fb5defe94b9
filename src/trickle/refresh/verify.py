"""An exact comparison of a stream table with its query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from trickle.compute.evaluation import evaluate_by_spark
from trickle.compute.inputs import Inputs
from trickle.model.names import quote
from trickle.model.nearness import is_near
from trickle.model.options import DEFAULT, Options
from trickle.model.report import VerifyReport
from trickle.refresh.audit import broken_keys
from trickle.refresh.record import read_record
from trickle.refresh.sample import Sample, choose_sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trickle.catalyst.jvm import Jvm
    from trickle.model.definition import RefreshRecord, SourceVersion
    from trickle.refresh.prepare import Prepared
    from trickle.tables.contract import TargetTable

_SAMPLE = 5


def verify_table(
    jvm: Jvm,
    prepared: Prepared,
    target: TargetTable,
    as_spark: Callable[[], DataFrame] | None = None,
    options: Options = DEFAULT,
    *,
    sampled: bool = False,
) -> VerifyReport:
    """Compare contents with a recompute at the recorded frontier, rows and multiplicities.

    Where the sources still stand at the frontier and the query has one answer, the recompute is Spark's own run of the
    query (``as_spark``), which shares nothing with the engine; else it is the engine's plan over the recorded versions.

    Sums of floating-point numbers depend on the order they are added in; rows that differ only there, by no more than a
    part in a billion, count as equal. The keys declared of the sources are audited too.

    ``sampled`` compares a part of the keys if there are many rows, and audits no declared keys.
    """
    # Others may refresh the table and write to its sources meanwhile: both sides are those of this record.
    state = target.state()
    record = read_record(target.name, state)
    if record is None:
        return VerifyReport(target.name, ok=False, rows=0, missing=0, extra=0)
    actual = target.frame(state.version)
    sample = None
    if sampled:
        sample = choose_sample(prepared, actual, target.count(state.version), options.verify_sample_rows)
    broken = () if sample is not None else tuple(broken_keys(prepared.sources, record.frontier))
    compared = partial(_compared, target.name, actual=actual, options=options, sample=sample)
    report = None
    if as_spark is not None and prepared.has_one_answer and _is_newest(prepared, record):
        report = compared(as_spark().toDF(*prepared.names))
    if report is None or not _is_newest(prepared, record):
        # Spark reads the versions there are when it runs the query: those of this record, unless others came meanwhile.
        report = compared(whole_rows(jvm, prepared, record.frontier).toDF(*prepared.names))
    part = 1 if sample is None else sample.part
    return replace(report, ok=report.ok and not broken, broken_keys=broken, part=part)


def _compared(
    name: str, expected: DataFrame, actual: DataFrame, options: Options, sample: Sample | None
) -> VerifyReport:
    """Compare rows, with multiplicities."""
    from pyspark.sql import functions as F

    if sample is not None:
        expected, actual = sample.of(expected), sample.of(actual)
    # By place: a query may call its columns as it likes.
    columns = [f"c{place}" for place in range(len(expected.columns))]
    actual = actual.select(*(quote(name) for name in expected.columns))
    both = (
        expected.toDF(*columns)
        .withColumn("__weight", F.lit(1))
        .union(actual.toDF(*columns).withColumn("__weight", F.lit(-1)))
    )
    counted = both.groupBy(*columns).agg(
        F.sum("__weight").alias("__weight"), F.sum(F.when(F.col("__weight") < 0, 1).otherwise(0)).alias("__rows")
    )
    totals = counted.agg(
        F.sum("__rows"), F.sum(F.greatest("__weight", F.lit(0))), F.sum(F.greatest(-F.col("__weight"), F.lit(0)))
    ).first()
    rows, missing, extra = (int(v or 0) for v in (totals or (0, 0, 0)))
    if not missing and not extra:
        return VerifyReport(name, ok=True, rows=rows, missing=0, extra=0)
    return _differences(name, counted, rows, missing, extra, options.verify_rows)


def _is_newest(prepared: Prepared, record: RefreshRecord) -> bool:
    return all(source.head() == record.frontier[name].version for name, source in prepared.sources.items())


def _differences(name: str, counted: DataFrame, rows: int, missing: int, extra: int, max_rows: int) -> VerifyReport:
    different = counted.where("__weight <> 0").drop("__rows").limit(max_rows).collect()
    lacking: Counter[tuple[object, ...]] = Counter()
    surplus: Counter[tuple[object, ...]] = Counter()
    for row in different:
        *values, weight = tuple(row)
        (lacking if weight > 0 else surplus)[_frozen(values)] += abs(weight)
    if missing + extra <= max_rows:
        for want in list(lacking):
            for have in list(surplus):
                if is_near(want, have):
                    common = min(lacking[want], surplus[have])
                    lacking[want] -= common
                    surplus[have] -= common
        lacking, surplus = +lacking, +surplus
        missing, extra = lacking.total(), surplus.total()
    return VerifyReport(
        name,
        ok=not missing and not extra,
        rows=rows,
        missing=missing,
        extra=extra,
        missing_sample=tuple(list(lacking.elements())[:_SAMPLE]),
        extra_sample=tuple(list(surplus.elements())[:_SAMPLE]),
    )


def _frozen(value: object) -> tuple[object, ...]:
    def freeze(v: object) -> object:
        return (
            tuple(freeze(x) for x in v) if isinstance(v, list | tuple) else bytes(v) if isinstance(v, bytearray) else v
        )

    return tuple(freeze(v) for v in value)  # type: ignore[attr-defined]


def whole_rows(jvm: Jvm, prepared: Prepared, at: Mapping[str, SourceVersion]) -> DataFrame:
    """Return the query's rows at a frontier, from the sources alone."""
    if prepared.obstacles:
        return jvm.frame(prepared.analysed)
    inputs = Inputs(prepared.sources, at, at)
    return evaluate_by_spark(jvm, inputs).frame(prepared.program.whole)
