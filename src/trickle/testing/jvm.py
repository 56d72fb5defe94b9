"""Settings of a JVM that lives for minutes, and of a session for tables of ten rows, as those of tests are."""

from __future__ import annotations

from typing import Final

#: Most code runs a few times only. What is compiled is kept: the default for this level is a fifth of what Spark fills.
#: Where each run has one core, collecting beside the work only takes from it.
QUICK_START: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"

SMALL_TABLES: Final = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}
"""To compile a stage, and to look at each before the next is planned, takes longer than to run it over ten rows."""

INTERPRETED: Final = {**SMALL_TABLES, "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Nor are expressions compiled then, for thousands of queries."""
