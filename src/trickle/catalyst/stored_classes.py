"""The classes that a stored plan may be made of.

Java's serial form names classes, and reading it runs code of each. Whoever may set a property of a table could so run code in
the process that refreshes it. So a plan is read through a filter that knows what plans are made of, and refuses all else.
Expressions that call methods by name are refused too; ``stored_calls`` has another form for those of Spark's own functions.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

_CATALYST: Final = "org.apache.spark.sql.catalyst."
STORED_PLANS: Final = (
    "Aggregate",
    "ArrowEvalPython",
    "BROADCAST$",
    "BatchEvalPython",
    "Expand",
    "Filter",
    "Generate",
    "GlobalLimit",
    "HintInfo",
    "Join",
    "JoinHint",
    "LocalLimit",
    "LocalRelation",
    "NO_BROADCAST_HASH$",
    "Offset",
    "OneRowRelation",
    "PREFER_SHUFFLE_HASH$",
    "Project",
    "Range",
    "Repartition",
    "RepartitionByExpression",
    "SHUFFLE_HASH$",
    "SHUFFLE_MERGE$",
    "SHUFFLE_REPLICATE_NL$",
    "Sort",
    "Union",
    "UnionLoop",
    "UnionLoopRef",
    "Window",
)
_JAVA: Final = (
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.Character",
    "java.lang.Double",
    "java.lang.Enum",
    "java.lang.Float",
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Number",
    "java.lang.Object",
    "java.lang.Short",
    "java.lang.StackTraceElement",
    "java.lang.String",
    "java.lang.invoke.SerializedLambda",
    "java.math.*",
    "java.time.*",
    "java.util.ArrayList",
    "java.util.Arrays$ArrayList",
    "java.util.HashMap",
    "java.util.Locale",
    "java.util.Map$Entry",
    "java.util.UUID",
    "java.util.concurrent.atomic.AtomicReference",
)
_SCALA: Final = (
    "scala.Enumeration*",
    "scala.None$",
    "scala.Option",
    "scala.Some",
    "scala.Tuple*",
    "scala.collection.IterableFactory$ToFactory",
    "scala.collection.MapFactory$ToFactory",
    "scala.collection.SortedMapFactory$ToFactory",
    "scala.collection.generic.DefaultSerializationProxy",
    "scala.collection.generic.SerializeEnd$",
    "scala.collection.immutable.*",
    "scala.collection.mutable.ArrayBuffer*",
    "scala.collection.mutable.ListBuffer*",
    "scala.math.*",
    "scala.reflect.*",
    "scala.runtime.ModuleSerializationProxy",
)
_REFUSED: Final = (
    # These compile text, call a method by its name, read objects from bytes, or call a function that they hold.
    f"{_CATALYST}expressions.codegen.**",
    f"{_CATALYST}expressions.objects.**",
    f"{_CATALYST}expressions.ApplyFunctionExpression*",
    f"{_CATALYST}expressions.CallMethodViaReflection*",
    f"{_CATALYST}expressions.ScalaUDF*",
    f"{_CATALYST}expressions.TryReflect*",
    f"{_CATALYST}expressions.UserDefinedGenerator*",
    f"{_CATALYST}expressions.aggregate.V2Aggregator*",
    # These call a function that they hold when they are read.
    "scala.collection.immutable.LazyList*",
    "scala.collection.immutable.Stream*",
)
_ALLOWED: Final = (
    *(f"{_CATALYST}plans.logical.{name}" for name in STORED_PLANS),
    f"{_CATALYST}expressions.**",
    f"{_CATALYST}plans.*",
    f"{_CATALYST}plans.physical.HashPartitioning",
    f"{_CATALYST}InternalRow*",
    f"{_CATALYST}csv.*",
    f"{_CATALYST}json.*",
    f"{_CATALYST}optimizer.NormalizeNaNAndZero*",
    f"{_CATALYST}trees.*",
    f"{_CATALYST}types.*",
    f"{_CATALYST}util.*",
    f"{_CATALYST}xml.*",
    "org.apache.spark.QueryContextType",
    "org.apache.spark.api.python.PythonAccumulatorV2",
    "org.apache.spark.api.python.SimplePythonFunction",
    "org.apache.spark.sql.internal.types.*",
    "org.apache.spark.sql.types.*",
    "org.apache.spark.unsafe.types.*",
    "org.apache.spark.util.AccumulatorMetadata",
    "org.apache.spark.util.AccumulatorV2",
    "org.apache.spark.util.CollectionAccumulator",
    "org.apache.spark.util.collection.*",
    "org.apache.datasketches.hll.TgtHllType",
    *_JAVA,
    *_SCALA,
)

FILTER: Final = ";".join(("maxdepth=5000", *(f"!{p}" for p in _REFUSED), *_ALLOWED, "!*"))
"""For ``java.io.ObjectInputFilter``: the first pattern that a class matches decides."""

# A class is named after the mark of a class description, its length in two bytes before it.
_NAMED: Final = re.compile(rb"r(..)(?=[\[A-Za-z_])", re.DOTALL)
_CLASS: Final = re.compile(r"[A-Za-z_][\w$]*(\.[\w$]+)+")


def refused_classes(stored: bytes) -> list[str]:
    """Return the names of classes in Java's serial form that the filter refuses, for a message."""
    found = []
    for mark in _NAMED.finditer(stored):
        text = stored[mark.end() :][: int.from_bytes(mark[1], "big")].decode("latin-1")
        name = text.lstrip("[").removeprefix("L").rstrip(";") if text.startswith("[") else text
        if _CLASS.fullmatch(name) and not _passes(name) and name not in found:
            found.append(name)
    return found


def _passes(name: str) -> bool:
    return not any(_pattern(p).fullmatch(name) for p in _REFUSED) and any(_pattern(p).fullmatch(name) for p in _ALLOWED)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Read a pattern as Java does: ``**`` is any class below, ``p.*`` any class of a package, ``name*`` any that begins so."""
    if text.endswith(".*"):
        return re.compile(re.escape(text[:-1]) + r"[^.]+")
    return re.compile(re.escape(text.rstrip("*")) + (".*" if text.endswith("*") else ""))
