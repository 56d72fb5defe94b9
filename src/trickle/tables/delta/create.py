"""Creates the Delta table of a new stream table: an empty one, then its rows; or nothing at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import ParseException

from trickle.errors import DefinitionError
from trickle.model.names import sql_name
from trickle.model.options import DEFAULT, Options
from trickle.model.table_options import NO_OPTIONS
from trickle.tables.delta import FEED_COLUMNS
from trickle.tables.delta.checkpoints import CHECKPOINTS
from trickle.tables.delta.jvm import DeltaHandle
from trickle.tables.delta.leaf import location_of
from trickle.tables.delta.properties import CHANGE_FEED, set_properties
from trickle.tables.delta.target import DeltaTarget
from trickle.tables.delta.wreck import is_leftover
from trickle.tables.storage.schemes import folder_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from trickle.model.table_options import TableOptions
    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.delta.jvm import Jvm

_NEEDS_MAPPING: Final = frozenset(" ,;{}()\n\t=")
"""Characters that Parquet does not accept in names: Delta must map a name with one of them."""

_MAPPING: Final = "delta.columnMapping.mode"
_KEPT: Final = frozenset({"comment", "__COLLATIONS"})
"""What a result's columns have of the metadata of its sources' columns."""


Fill = Callable[[DeltaTarget], object]


def table_properties(options: Options = DEFAULT) -> dict[str, str]:
    """Return the properties of a table that Trickle makes."""
    return {
        CHANGE_FEED: "true",
        # A checkpoint costs as much as ten small commits.
        "delta.checkpointInterval": str(options.checkpoint_interval),
        # A concurrent append by someone else must conflict too: unseen, it would be taken for ours.
        "delta.isolationLevel": "Serializable",
    }


def make_target(
    spark: SparkSession,
    name: str,
    like: DataFrame,
    fill: Fill,
    properties: Mapping[str, str] | None = None,
    *,
    driver_io: bool = True,
    columns: ColumnCache | None = None,
    options: Options = DEFAULT,
    bind: str | None = None,
    table: TableOptions = NO_OPTIONS,
) -> DeltaTarget:
    """Make the table ``name`` with the columns of ``like`` and these properties, then let ``fill`` write to it.

    The property ``bind``, if given, is set to the table's id. If anything fails, neither a folder nor a catalog entry of
    ours is left; what another process made meanwhile is not touched.

    Raises:
        DefinitionError: ``NAME_TAKEN``, there is a table or view of that name; ``BAD_NAME``, it cannot be one;
            ``RESERVED_COLUMN``, a column has a name that the change feed needs.
    """
    identifier = _identifier(spark, name)
    _refuse_reserved(name, like)
    handle = _default_place(spark, identifier) if table.location is None else DeltaHandle(spark, table.location)
    with _one_at_a_time(handle):
        if handle is not None and (left := folder_at(handle.location)) is not None and is_leftover(left):
            handle.delete_folder()
        if spark.catalog.tableExists(sql_name(name)) or (handle is not None and _has_log(handle)):
            raise _taken(name)
        fresh = handle is not None and not handle.folder_exists()
        try:
            _make_empty(
                spark, name, like, {**table_properties(options), **table.properties, **(properties or {})}, table
            )
        except BaseException as error:
            # A process that ignores the lock may have come first, and may not have finished.
            if spark.catalog.tableExists(sql_name(name)) or (handle is not None and _has_log(handle)):
                raise _taken(name) from error
            if fresh and handle is not None:
                handle.delete_empty_folder()
            raise
    target = open_target(spark, name, driver_io=driver_io, columns=columns, options=options)
    identity = target.handle.head()[1]
    try:
        if bind is not None:
            set_properties(spark, name, {bind: identity})
        fill(target)
    except BaseException:
        _clean(spark, name, target.handle, identity, fresh=fresh)
        raise
    return target


def _one_at_a_time(place: DeltaHandle | None) -> AbstractContextManager[None]:
    """Let one process or thread at a time make tables in a schema, if the storage of its folder has locks."""
    folder = folder_at(place.location) if place is not None else None
    if folder is None:
        return nullcontext()
    folder.storage.make_folder(folder.parent, parents=True)
    return folder.storage.lock(f"{folder.parent}/.trickle-create.lock")


def _has_log(place: DeltaHandle) -> bool:
    return place.folder_exists() and place.head()[0] >= 0


def _texts(spark: SparkSession, names: Sequence[str]) -> Jvm:
    gateway: Jvm = spark.sparkContext._gateway
    array = gateway.new_array(gateway.jvm.java.lang.String, len(names))
    for place, name in enumerate(names):
        array[place] = name
    return array


def _make_empty(
    spark: SparkSession, name: str, like: DataFrame, settings: Mapping[str, str], table: TableOptions
) -> None:
    # Rows come with the next commit: a CREATE TABLE AS takes neither the record nor a transaction mark, and Delta
    # refuses files in the commit that turns on both column mapping and the change feed. A table without a record is
    # one not yet refreshed, so a crash in between does no harm.
    jvm: Jvm = spark._jvm
    made = jvm.io.delta.tables.DeltaTable.create(spark._jsparkSession).tableName(sql_name(name))
    made = made.addColumns(_columns(jvm, like))
    if _needs_mapping(like):
        settings = {**settings, _MAPPING: "name"}
    for key, value in settings.items():
        made = made.property(key, value)
    if table.comment is not None:
        made = made.comment(table.comment)
    if table.location is not None:
        made = made.location(table.location)
    if table.partition_by:
        made = made.partitionedBy(_texts(spark, table.partition_by))
    if table.cluster_by:
        made = made.clusterBy(_texts(spark, table.cluster_by))
    made.execute()


def _columns(jvm: Jvm, like: DataFrame) -> Jvm:
    """Return the columns of rows without what their sources say of writers: a DEFAULT, the length of a text."""
    schema = json.loads(str(like._jdf.schema().asNullable().json()))
    for field in schema["fields"]:
        field["metadata"] = {name: value for name, value in field["metadata"].items() if name in _KEPT}
    return jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(schema))


def admit_columns(spark: SparkSession, name: str, metadata: Mapping[str, Any], like: DataFrame) -> None:
    """Let a table map the names of its columns, if those to come need it."""
    _refuse_reserved(name, like)
    mapping = (metadata.get("configuration") or {}).get(_MAPPING, "none")
    if mapping == "none" and _needs_mapping(like):
        set_properties(spark, name, {_MAPPING: "name"})


def _needs_mapping(like: DataFrame) -> bool:
    return any(_NEEDS_MAPPING & set(text) for text in _field_names(json.loads(like.schema.json())))


def _refuse_reserved(name: str, like: DataFrame) -> None:
    reserved = sorted(FEED_COLUMNS & {column.lower() for column in like.columns})
    if reserved:
        raise DefinitionError(
            "RESERVED_COLUMN",
            f"Column {reserved[0]} of {name} has a name that Delta's change feed uses.",
            hint="Give it another name with AS.",
        )


def open_target(
    spark: SparkSession,
    name: str,
    *,
    driver_io: bool = True,
    columns: ColumnCache | None = None,
    options: Options = DEFAULT,
) -> DeltaTarget:
    """Return the table of an existing stream table."""
    place = location_of(spark, sql_name(name))
    return DeltaTarget(spark, name, place, driver_io=driver_io, columns=columns, options=options)


def _identifier(spark: SparkSession, name: str) -> Jvm:
    parser: Jvm = spark._jsparkSession.sessionState().sqlParser()
    try:
        return parser.parseMultipartIdentifier(name)
    except ParseException as error:
        raise DefinitionError(
            "BAD_NAME", f"{name!r} cannot be a table name.", hint="Use letters, digits and _, or quote it with `…`."
        ) from error


def default_place(spark: SparkSession, name: str) -> DeltaHandle | None:
    """Return the place where Spark's own catalog puts a table of that name; None for other catalogs."""
    return _default_place(spark, _identifier(spark, name))


def _default_place(spark: SparkSession, parts: Jvm) -> DeltaHandle | None:
    """Return the place where Spark's own catalog puts a table of that name; None for other catalogs, which clean up."""
    names = [str(parts.apply(at)) for at in range(parts.size())]
    if len(names) == 3 and names[0] == "spark_catalog":
        names = names[1:]
    if len(names) > 2 or spark.catalog.currentCatalog() != "spark_catalog":
        return None
    jvm: Jvm = spark._jvm
    handle = DeltaHandle(spark, "")
    database = handle.some(names[0] if len(names) == 2 else spark.catalog.currentDatabase())
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(names[-1], database)
    catalog: Jvm = spark._jsparkSession.sessionState().catalog()
    uri = catalog.defaultTablePath(identifier)
    return DeltaHandle(spark, str(jvm.org.apache.hadoop.fs.Path(uri).toString()))


def _clean(spark: SparkSession, name: str, made: DeltaHandle, identity: str, *, fresh: bool) -> None:
    """Remove the table of a failed creation, unless another was created in its place meanwhile."""
    if not made.folder_exists() or made.head()[1] != identity:
        return
    CHECKPOINTS.finish(made.location)
    spark.sql(f"DROP TABLE IF EXISTS {sql_name(name)}")
    if fresh and made.folder_exists() and made.head()[1] in ("", identity):
        made.delete_folder()


def _taken(name: str) -> DefinitionError:
    return DefinitionError(
        "NAME_TAKEN", f"There is already a table or view {name}.", hint="Drop it, or choose another name."
    )


def _field_names(kind: object) -> list[str]:
    """Return the names of all fields of a type's JSON, nested ones too."""
    if isinstance(kind, list):
        return [name for item in kind for name in _field_names(item)]
    if not isinstance(kind, dict):
        return []
    own = [str(kind["name"])] if "nullable" in kind and "name" in kind else []
    return own + [name for key, value in kind.items() if key != "metadata" for name in _field_names(value)]
