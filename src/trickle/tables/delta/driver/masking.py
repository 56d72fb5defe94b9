"""Rows of a big table are deleted by masking them in their files: a change costs what it has, not what the table has.

Law    rows(file, vector) = the file's rows, without those whose numbers are in the vector
       a commit takes (file, old vector) out and puts (file, old vector + deleted rows) in
Cost   finding the rows to delete by their values, one file of vectors, one file of new rows. What every reader then pays, and
       what is left of masked rows, housekeeping takes back (``tables/delta/upkeep.py``)
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc

from trickle.tables.arrow.types import arrow_facts
from trickle.tables.delta.deletion_vectors import inline_vector, read_vectors, vector_file, vector_path
from trickle.tables.delta.driver.write import removal
from trickle.tables.delta.files import near_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from trickle.model.options import Options
    from trickle.tables.delta.actions import FileAction
    from trickle.tables.delta.deletion_vectors import Places
    from trickle.tables.delta.driver.write import Action, FileWriter
    from trickle.tables.storage.schemes import Folder

VECTORS: Final = "delta.enableDeletionVectors"
_FEATURE: Final = "deletionVectors"
_LEGACY_WRITING: Final = (
    (2, "appendOnly"),
    (2, "invariants"),
    (3, "checkConstraints"),
    (4, "changeDataFeed"),
    (4, "generatedColumns"),
    (5, "columnMapping"),
    (6, "identityColumns"),
)
"""What the writers' protocols before the one that lists its features stand for, from which version on."""

_ENOUGH: Final = 4
"""More columns are searched by, as long as that many times the wanted rows may have the values of those before."""

Key = tuple[str, str]


def is_masked(metadata: Mapping[str, Any], files: Sequence[FileAction], options: Options) -> bool:
    """Return whether rows of a table are deleted by vectors: as its property says, else if the table is big."""
    said = (metadata.get("configuration") or {}).get(VECTORS)
    if said is not None:
        return str(said).lower() == "true"
    return (
        sum(file.records or 0 for file in files) > options.vector_rows
        or sum(file.size for file in files) > options.vector_bytes
    )


def with_vectors(protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[Action, Action] | None:
    """Return the actions that let a table have vectors, None if it may have them."""
    reading, writing = (set(protocol.get(f"{kind}Features") or ()) for kind in ("reader", "writer"))
    settings = dict(metadata.get("configuration") or {})
    if _FEATURE in writing and settings.get(VECTORS) == "true":
        return None
    if int(protocol["minReaderVersion"]) == 2:
        reading.add("columnMapping")
    if int(protocol["minWriterVersion"]) < 7:
        writing.update(name for version, name in _LEGACY_WRITING if version <= int(protocol["minWriterVersion"]))
    features = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": sorted(reading | {_FEATURE}),
        "writerFeatures": sorted(writing | {_FEATURE}),
    }
    return {"protocol": features}, {"metaData": {**metadata, "configuration": {**settings, VECTORS: "true"}}}


def search_keys(
    wanted: pa.Table, rows: int, domain: Callable[[str], int | None], options: Options
) -> dict[str, pa.Array]:
    """Choose the columns to search a table of so many rows by: with the values wanted of each, those that few rows have first.

    Values of numbers are assumed to occur alike often; of other types, nothing is known but that those wanted differ. None
    are chosen if more rows than may be looked up would have the values.
    """
    known: list[tuple[float, str, pa.Array]] = []
    for name, column in zip(wanted.column_names, wanted.columns, strict=True):
        if not arrow_facts(column.type).is_looked_up:
            continue
        values, all_ = pc.unique(column.combine_chunks()), domain(name)
        repeats = wanted.num_rows / max(len(values), 1)
        share = len(values) / all_ if all_ else min(repeats * wanted.num_rows / max(rows, 1), 1.0)
        known.append((min(share, 1.0), name, values))
    chosen, left = {}, float(rows)
    for share, name, values in sorted(known, key=lambda one: one[0]):
        if len(values) > options.lookup_keys:
            continue
        chosen[name] = values
        left *= share
        if left <= _ENOUGH * wanted.num_rows:
            break
    return chosen if left <= options.lookup_rows else {}


def files_with(files: Sequence[FileAction], keys: Mapping[str, pa.Array]) -> list[FileAction]:
    """Return the files that may hold rows with the values of keys."""
    near = list(files)
    for name, values in keys.items():
        near = near_values(near, name, values)
    return near


def with_more(mask: Places | None, places: Places) -> Places:
    """Return a vector with more places, none of which it has."""
    new = np.sort(places)
    if mask is None:
        return new
    both = np.concatenate([mask, new])
    both.sort(kind="stable")  # two runs in order: they are merged
    return both


def read_masks(
    files: Sequence[FileAction], known: Mapping[Key, Places], folder: Folder, address: Callable[[str], str | None]
) -> dict[Key, Places]:
    """Return the vectors of files by the files' keys, without files that have none; those known are not read again.

    Raises:
        NeedsSparkError: One cannot be read.
    """
    masked = [file for file in files if file.vector]
    new = [file for file in masked if file.key not in known]
    descriptors = [file.body["deletionVector"] for file in new]
    addresses = [None if (path := vector_path(one)) is None else address(path) for one in descriptors]
    found = {
        **known,
        **dict(zip((file.key for file in new), read_vectors(descriptors, folder, addresses), strict=True)),
    }
    return {file.key: found[file.key] for file in masked}


def small_files(files: Sequence[FileAction], options: Options) -> list[FileAction]:
    """Return the small files, for a commit to write anew with its own rows, if there are many: nobody else did."""
    small = [file for file in files if file.size < options.small_file_bytes]
    if len(small) <= options.appended_files or sum(file.size for file in small) > options.commit_bytes:
        return []
    return small


def mask_actions(
    files: Sequence[FileAction], masks: Mapping[Key, Places], writer: FileWriter, options: Options
) -> list[Action]:
    """Return the actions that give files new vectors, written to one file unless they are small; a file without rows goes."""
    left = [file for file in files if len(masks[file.key]) != file.records]
    vectors = [masks[file.key] for file in left]
    if all(len(places) <= options.inline_vector_rows for places in vectors):
        descriptors = [inline_vector(places) for places in vectors]
    else:
        made = vector_file(vectors)
        writer.put(made.name, made.data)
        descriptors = list(made.descriptors)
    adds = [_masked_add(file, vector) for file, vector in zip(left, descriptors, strict=True)]
    return [*map(removal, files), *adds]


def _masked_add(file: FileAction, vector: Mapping[str, Any]) -> Action:
    stats = json.loads(file.body["stats"])
    others = ("deletionVector", "stats", "dataChange")
    return {
        "add": {
            **{name: value for name, value in file.body.items() if name not in others},
            "dataChange": True,
            "stats": json.dumps({**stats, "tightBounds": False}),
            "deletionVector": dict(vector),
        }
    }
