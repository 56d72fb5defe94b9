"""What is stored about a stream table: its definition, and the record in each of its commits.

Both are JSON in the Delta log of the stream table itself. Nothing is stored elsewhere.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from trickle.errors import StateError
from trickle.model.cost import Costs
from trickle.model.digests import first_difference
from trickle.model.stored import Stored
from trickle.model.table_options import NO_OPTIONS, TableOptions

Mode = Literal["auto", "differential", "full"]
RefreshMode = Literal["differential", "full", "no_data"]

DEFINITION_PROPERTY: Final = "trickle.definition"
TABLE_PROPERTY: Final = "trickle.table"
"""The id of the Delta table that the definition belongs to: a clone has the property, but a different id."""


class SourceVersion(Stored):
    """A source as a refresh saw it.

    Attributes:
        identity: The id of the table; a recreated table has a different one.
        digest: The digest of the commit that made the version. A table that was restored from a backup and written to has
            the same id, and other rows under the same version numbers. None if the log no longer had the commit, and in
            old records. Those of commits before it follow where these may become others (``model/digests.py``).
    """

    version: int
    identity: str
    digest: str | None = None

    def is_same(self, other: SourceVersion) -> bool:
        """Return whether both stand for the same rows, as far as is known."""
        is_same_version = (self.version, self.identity) == (other.version, other.identity)
        return is_same_version and first_difference(self.digest, other.digest) is None


class BaseVersion(Stored):
    """A version of a base table: one that stream tables read and that is none itself."""

    name: str
    version: int


class Definition(Stored):
    """A stream table's query and how to refresh it.

    Attributes:
        query: The SQL text; None for a DataFrame.
        plan: For a DataFrame, its serialised plan (base64), which only the version ``spark`` can read.
        schedule: When it is refreshed by the loop; None is by hand.
        settings: The session settings that change a query's meaning, as they were at creation.
        catalog: The current catalog at creation; names in the query resolve there.
        schema_name: The current schema at creation.
        spark: The Spark version the definition was made with.
        options: What its table is like, and how its refreshes are watched over.
        generation: Which of its state tables belong to this query; each query that replaced another has its own.
    """

    format: Literal[1] = 1
    query: str | None
    plan: str | None = None
    mode: Mode = "auto"
    schedule: str | None = None
    settings: dict[str, str] = Field(default_factory=dict)
    catalog: str
    schema_name: str
    spark: str
    options: TableOptions = NO_OPTIONS
    generation: int = 0


def read_definition(table: str, text: str) -> Definition:
    """Parse the definition in a table's property.

    Raises:
        StateError: ``BAD_DEFINITION``.
    """
    try:
        return Definition.model_validate_json(text)
    except ValueError as error:
        raise bad_definition(table, "cannot be read") from error


def bad_definition(table: str, what: str) -> StateError:
    """Build the error for a definition that was not written by this version of Trickle."""
    message = f"the definition of stream table '{table}' (its property {DEFINITION_PROPERTY}) {what}."
    hint = (
        "Was it altered, or written by a later version? Set the property back, or drop the table and create it again."
    )
    return StateError("BAD_DEFINITION", message, hint=hint)


class Took(Stored):
    """What a refresh did and took, up to its commit.

    Attributes:
        steps: The seconds of each step that had ended, in order.
        trigger: Who asked for it: ``creation``, ``manual`` or ``schedule``.
    """

    inserted: int
    deleted: int
    seconds: float
    trigger: str | None = None
    steps: dict[str, float] = Field(default_factory=dict)


class RefreshRecord(Stored):
    """The record in one commit of a stream table.

    Attributes:
        frontier: The version of each source, and of each state table, that the rows were computed from.
        base: The versions of base tables that the rows stand for, by the tables' ids: sources that are stream tables
            are followed down to what they read. None if these were at versions that do not belong together,
            or Spark recomputed the rows over whatever was the newest.
        without: The state tables that proved too big to keep.
        columns: The columns that the query reads of each source; None if they are too many to repeat in each commit.
        took: What the refresh did and took; None in old records.
        skipped: Which change a person passed over; the table does not equal its query until all rows are recomputed.
        costs: What earlier refreshes cost, and this one up to its commit.
    """

    format: Literal[1] = 1
    refresh_id: str
    mode: Literal["differential", "full"]
    reason: str | None = None
    frontier: dict[str, SourceVersion]
    base: dict[str, BaseVersion] | None = None
    fingerprint: str
    started: str
    without: tuple[str, ...] = ()
    columns: dict[str, tuple[str, ...]] | None = None
    took: Took | None = None
    skipped: str | None = None
    costs: Costs = Costs()
