"""Declared keys of a Delta table: a property of the table, so that every reader sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from trickle.errors import SourceError
from trickle.model.keys import KEYS_PROPERTY, NO_KEYS, TableKeys
from trickle.tables.delta.properties import set_properties
from trickle.tables.delta.schema import column_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from trickle.model.cache import Cache


def declared_keys(table: str, metadata: Mapping[str, Any], known: Cache[tuple[str, str], TableKeys]) -> TableKeys:
    """Return the keys that a table's metadata hold, by the columns' present names; a key of a dropped column is none.

    ``known`` has those of metadata that were read before.

    Raises:
        SourceError: ``BAD_KEYS``, someone else wrote the property.
    """
    text = (metadata.get("configuration") or {}).get(KEYS_PROPERTY)
    if not text:
        return NO_KEYS
    try:
        stored, schema = str(text), str(metadata["schemaString"])
        return known.get((stored, schema), lambda: _named(stored, schema))
    except ValidationError as error:
        message = f"the property {KEYS_PROPERTY} of {table} cannot be read."
        raise SourceError("BAD_KEYS", message, hint="Declare its keys again with declare().") from error


def _named(text: str, schema: str) -> TableKeys:
    stored = TableKeys.model_validate_json(text)
    names = {fact.identity: fact.name for fact in column_facts({"schemaString": schema}).values()}
    foreign = [key for key in stored.foreign if all(c in names for c in key.columns)]
    return TableKeys(
        primary=tuple(names[c] for c in stored.primary) if all(c in names for c in stored.primary) else (),
        foreign=tuple(k.model_copy(update={"columns": tuple(names[c] for c in k.columns)}) for k in foreign),
    )


def store_keys(spark: SparkSession, table: str, keys: TableKeys) -> None:
    """Write keys, by the names that files have for the columns, into a table's properties."""
    set_properties(spark, table, {KEYS_PROPERTY: None if keys == NO_KEYS else keys.model_dump_json()})
