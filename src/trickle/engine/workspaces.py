"""Sessions with the settings that definitions were made with: a query means what it meant at its creation.

Spark reads settings when it parses, when it builds an expression, when it plans, and some only when it runs (the policies for
dates that cannot be parsed, and for equal keys of a map). So a stream table is compiled and refreshed in the user's session as
long as that has the settings of the definition, and otherwise in a copy of it that has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trickle.catalyst.frontend import Frontend
from trickle.catalyst.jvm import Jvm
from trickle.engine.compiler import Compiler
from trickle.model.cache import Cache
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.catalog import Catalog
from trickle.tables.storage.schemes import limit_disk_cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trickle.model.options import Options

_COPIES: Final = 4
"""Copies of the session that are kept, each with tables of its own; to make one anew costs a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A session, with the catalog and the compiler that are bound to it."""

    jvm: Jvm
    catalog: Catalog
    compiler: Compiler

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let Catalyst read the session's settings, in this thread."""
        python: Any = type(self.jvm.spark)
        before = getattr(python, "_activeSession", None)
        try:
            with self.jvm.active(self.jvm.spark._jsparkSession):
                yield
        finally:
            python._activeSession = before  # ``createDataFrame`` changes it


class Workspaces:
    """The user's session, and copies of it with other settings."""

    def __init__(self, spark: SparkSession, options: Options, *, stored_plans: bool) -> None:
        """Start with the user's session."""
        self._options, self._stored_plans = options, stored_plans
        limit_disk_cache(options.disk_cache_bytes)
        self._columns = None if "column_cache" in options.disable else ColumnCache(options)
        self.own = self._make(spark)
        self._mark = 0
        self._settings: Mapping[str, str] = {}
        self._copies: Cache[tuple[int, tuple[tuple[str, str], ...]], Workspace] = Cache("sessions", _COPIES)

    def of(self, settings: Mapping[str, str]) -> Workspace:
        """Return the workspace in which a definition's settings hold now."""
        # One number for all settings of the user's session: to ask for each takes as long as to look at a log.
        mark = self.own.jvm.settings_mark()
        if mark != self._mark:
            self.own.jvm.forget_settings()
            self._settings, self._mark = self.own.compiler.frontend.settings(), mark
        if all(self._settings.get(name) == value for name, value in settings.items()):
            return self.own
        return self._copies.get((mark, tuple(sorted(settings.items()))), lambda: self._copy(settings))

    def _copy(self, settings: Mapping[str, str]) -> Workspace:
        user: Any = self.own.jvm.spark
        session = user._jsparkSession.cloneSession()
        for name, value in settings.items():
            session.conf().set(name, value)
        from pyspark.sql.session import _monkey_patch_RDD

        copy = type(user)(user._sc, session)
        _monkey_patch_RDD(user)  # else ``rdd.toDF`` of the user would use the copy
        return self._make(copy)

    def _make(self, spark: SparkSession) -> Workspace:
        jvm, catalog = Jvm(spark, self._options), Catalog(spark, self._columns, self._options)
        return Workspace(jvm, catalog, Compiler(jvm, Frontend(jvm), catalog, self._stored_plans))
