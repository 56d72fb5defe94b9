"""Settings of a JVM that lives for minutes, as those of tests do."""

from __future__ import annotations

from typing import Final

#: Most code runs a few times only. What is compiled is kept: the default for this level is a fifth of what Spark fills.
#: Where each run has one core, collecting beside the work only takes from it.
QUICK_START: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
