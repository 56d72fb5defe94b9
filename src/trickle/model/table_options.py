"""The options of one stream table: what its table is like, and how its refreshes are watched over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from trickle.errors import DefinitionError
from trickle.model.schedule import read_duration, write_duration
from trickle.model.stored import Stored

_OWN_PROPERTIES = "trickle."


class TableOptionWords(TypedDict, total=False):
    """The options as the verbs take them; see ``TableOptions``."""

    comment: str | None
    column_comments: Mapping[str, str]
    partition_by: str | Sequence[str]
    cluster_by: str | Sequence[str]
    properties: Mapping[str, str]
    location: str | None
    tags: Mapping[str, str]
    owner: str | None
    timeout: str | None
    max_change_rows: int | None
    max_change_ratio: float | None
    verify_every: str | None
    suspend_after: int


def _as_list(given: Any) -> Any:
    return (given,) if isinstance(given, str) else given


def _duration(text: str) -> str:
    try:
        return write_duration(read_duration(text))
    except DefinitionError as error:
        raise ValueError(f"{text!r} is not a duration such as 30s or 1h30m") from error


def _foreign(properties: dict[str, str]) -> dict[str, str]:
    if own := [key for key in properties if key.startswith(_OWN_PROPERTIES)]:
        raise ValueError(f"{own[0]} is set by Trickle itself")
    return properties


Columns = Annotated[tuple[str, ...], BeforeValidator(_as_list)]
Duration = Annotated[str, AfterValidator(_duration)]


class TableOptions(Stored):
    """The options of a stream table; all survive refreshes.

    Attributes:
        comment: The comment of the table.
        column_comments: The comments of its columns, by their names; of those that it has.
        partition_by: The columns that its files are partitioned by.
        cluster_by: The columns that its files are clustered by.
        properties: Further properties of its Delta table.
        location: Where it is stored; None for the place that the catalog chooses.
        tags: Words of the user's own, by name.
        owner: Who is responsible for it.
        timeout: The longest time that a refresh may take.
        max_change_rows: A refresh that would insert and delete more rows waits for a person.
        max_change_ratio: The same, as a share of the stored rows.
        verify_every: How often the loop compares it with a recompute.
        suspend_after: After so many failures in a row the loop leaves it to a person.
    """

    comment: str | None = None
    column_comments: dict[str, str] = Field(default_factory=dict)
    partition_by: Columns = ()
    cluster_by: Columns = ()
    properties: Annotated[dict[str, str], AfterValidator(_foreign)] = Field(default_factory=dict)
    location: str | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    owner: str | None = None
    timeout: Duration | None = None
    max_change_rows: int | None = Field(default=None, ge=1)
    max_change_ratio: float | None = Field(default=None, gt=0)
    verify_every: Duration | None = None
    suspend_after: int = Field(default=5, ge=1)


NO_OPTIONS = TableOptions()


def read_table_options(words: Mapping[str, object], before: TableOptions = NO_OPTIONS) -> TableOptions:
    """Read the options that a verb was given, over those that a table has.

    >>> read_table_options({"timeout": "90s", "partition_by": "day"}).timeout
    '1m30s'

    Raises:
        DefinitionError: ``UNKNOWN_OPTION`` or ``BAD_OPTION``.
    """
    unknown = [name for name in words if name not in TableOptions.model_fields]
    if unknown:
        hint = f"There are {', '.join(TableOptions.model_fields)}."
        raise DefinitionError("UNKNOWN_OPTION", f"a stream table has no option {unknown[0]!r}.", hint=hint)
    try:
        options = TableOptions.model_validate({**before.model_dump(), **words})
    except ValidationError as error:
        first = error.errors()[0]
        said = first["msg"].removeprefix("Value error, ")
        text = f"the option {'.'.join(map(str, first['loc']))} cannot be {first.get('input')!r}: {said}."
        raise DefinitionError("BAD_OPTION", text, hint="See the options of a stream table in the reference.") from error
    for name in ("partition_by", "cluster_by"):
        columns = [column.lower() for column in getattr(options, name)]
        if twice := [column for column in columns if columns.count(column) > 1]:
            text = f"the option {name} has the column {twice[0]!r} twice."
            raise DefinitionError("BAD_OPTION", text, hint="Give each column once.")
    if options.partition_by and options.cluster_by:
        text = "a table is either partitioned or clustered, not both."
        raise DefinitionError("BAD_OPTION", text, hint="Give partition_by or cluster_by.")
    return options
