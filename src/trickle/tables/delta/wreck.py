"""What is left of a stream table whose log can no longer be read: enough to tell whose it was, so that it can be dropped."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

from trickle.errors import SourceError
from trickle.model.definition import DEFINITION_PROPERTY
from trickle.tables.delta import LOG_FOLDER, STATE_FOLDER
from trickle.tables.delta.checkpoint_files import UNREADABLE, find_checkpoint
from trickle.tables.delta.log import UNSUPPORTED_PROTOCOL
from trickle.tables.storage.schemes import Folder

if TYPE_CHECKING:
    from trickle.tables.delta.log import DeltaLogFiles

_ID: Final = re.compile(rb'"metaData":\s*\{\s*"id":\s*"([^"]+)"')


def find_wreck(log: DeltaLogFiles, *, is_ours: bool) -> str | None:
    """Return the id of a stream table whose log cannot be read, empty if not even that is known; None if it is none."""
    try:
        log.metadata(log.head())
    except SourceError as error:
        if error.code == UNSUPPORTED_PROTOCOL:
            return None
    else:
        return None
    if log.folder is None:
        return "" if is_ours else None
    texts, names = _texts(log.folder), log.folder.storage.names(log.folder.address)
    if not is_ours and STATE_FOLDER not in names and not any(DEFINITION_PROPERTY.encode() in text for text in texts):
        return None
    found = next((found for text in texts if (found := _ID.search(text)) is not None), None)
    return "" if found is None else found.group(1).decode()


def _texts(folder: Folder) -> list[bytes]:
    """Return what is left of the log, the newest first: commits, and the checksums that repeat the metadata."""
    place = folder / LOG_FOLDER
    names = sorted((name for name in folder.storage.names(place) if name.endswith((".json", ".crc"))), reverse=True)
    return [folder.storage.get(f"{place}/{name}") for name in names]


def is_leftover(folder: Folder) -> bool:
    """Return whether a folder holds no more than checkpoints of a stream table that was dropped before they were written."""
    log = Folder(folder.storage, folder / LOG_FOLDER)
    names = {*folder.storage.names(folder.address)}
    if names == {STATE_FOLDER}:
        return True
    if names - {LOG_FOLDER, STATE_FOLDER} or folder.storage.versions(log.address, -1):
        return False
    try:
        found = find_checkpoint(log, sys.maxsize)
        metadata = None if found is None else found.action("metaData")
    except UNREADABLE:
        return False
    return metadata is not None and DEFINITION_PROPERTY in (metadata.get("configuration") or {})
