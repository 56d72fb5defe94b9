"""The statements about stream tables, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from trickle.model.definition import Mode
    from trickle.model.schedule import Schedule

Policy = Literal["auto", "incremental", "incremental strict", "full"]
"""How a table is refreshed. ``incremental`` is ``auto`` for a query that can be maintained, ``incremental strict`` never
recomputes."""

_MODES: Final[dict[str | None, Mode]] = {"incremental strict": "differential", "full": "full"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a column list.

    Attributes:
        type: Its type as SQL; None for the one that the query gives.
    """

    name: str
    type: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Clauses:
    """What a statement says of a stream table besides its query; None is what it does not say."""

    schedule: Schedule | None = None
    policy: Policy | None = None
    partitioned_by: tuple[str, ...] | None = None
    cluster_by: tuple[str, ...] | None = None
    comment: str | None = None
    properties: tuple[tuple[str, str], ...] | None = None
    location: str | None = None

    @property
    def mode(self) -> Mode | None:
        """The mode that the policy stands for."""
        return None if self.policy is None else _MODES.get(self.policy, "auto")


NO_CLAUSES: Final = Clauses()


@dataclass(frozen=True, slots=True)
class CreateStreamTable:
    """``CREATE [OR REPLACE] STREAM TABLE [IF NOT EXISTS] n [(columns)] [clauses] AS query``.

    Attributes:
        name: The name, odd parts in backticks.
        query: The text after ``AS``.
        query_start: Where that begins in the text of the statement.
    """

    name: str
    query: str
    columns: tuple[Column, ...] = ()
    clauses: Clauses = NO_CLAUSES
    or_replace: bool = False
    if_not_exists: bool = False
    query_start: int = field(default=0, compare=False)

    @property
    def must_be_incremental(self) -> bool:
        """True if a query that cannot be maintained is to be refused."""
        return self.clauses.policy in ("incremental", "incremental strict")


@dataclass(frozen=True, slots=True)
class RefreshStreamTable:
    """``REFRESH STREAM TABLE n [FULL]``."""

    name: str
    full: bool = False


@dataclass(frozen=True, slots=True)
class SuspendStreamTable:
    """``ALTER STREAM TABLE n SUSPEND``."""

    name: str


@dataclass(frozen=True, slots=True)
class ResumeStreamTable:
    """``ALTER STREAM TABLE n RESUME [APPLY | FULL | SKIP]``.

    Attributes:
        how: What is to be done first with the change that a fuse holds back.
    """

    name: str
    how: Literal["apply", "full", "skip"] | None = None


@dataclass(frozen=True, slots=True)
class SetClauses:
    """``ALTER STREAM TABLE n SET clauses``."""

    name: str
    clauses: Clauses


@dataclass(frozen=True, slots=True)
class DropSchedule:
    """``ALTER STREAM TABLE n DROP SCHEDULE``."""

    name: str


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """``ALTER STREAM TABLE n UNSET TBLPROPERTIES (keys)``."""

    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplaceQuery:
    """``ALTER STREAM TABLE n AS query``."""

    name: str
    query: str
    query_start: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class RenameStreamTable:
    """``ALTER STREAM TABLE n RENAME TO m``."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class DropStreamTable:
    """``DROP STREAM TABLE [IF EXISTS] n [CASCADE]``."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class ShowStreamTables:
    """``SHOW STREAM TABLES [IN schema] [LIKE pattern]``."""

    schema: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowRefreshHistory:
    """``SHOW REFRESH HISTORY [FOR n] [LIMIT k]``."""

    name: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeStreamTable:
    """``DESCRIBE [EXTENDED] STREAM TABLE n``."""

    name: str
    extended: bool = False


@dataclass(frozen=True, slots=True)
class ExplainCreate:
    """``EXPLAIN CREATE STREAM TABLE …``: whether it can be maintained; nothing is made."""

    create: CreateStreamTable


@dataclass(frozen=True, slots=True)
class ExplainStreamTable:
    """``EXPLAIN STREAM TABLE n``."""

    name: str


Statement = (
    CreateStreamTable
    | RefreshStreamTable
    | SuspendStreamTable
    | ResumeStreamTable
    | SetClauses
    | DropSchedule
    | UnsetProperties
    | ReplaceQuery
    | RenameStreamTable
    | DropStreamTable
    | ShowStreamTables
    | ShowRefreshHistory
    | DescribeStreamTable
    | ExplainCreate
    | ExplainStreamTable
)
