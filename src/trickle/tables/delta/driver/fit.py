"""Which Delta tables the driver may read and write without Spark: those with known features only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class NeedsSparkError(Exception):
    """The driver cannot do this, so Spark must. Users never see it."""


_WIDENING: Final = frozenset({"typeWidening", "typeWidening-preview"})

_READER_FEATURES: Final = _WIDENING | {
    *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck")
}
"""Features that bear only on tables that use them, which is seen elsewhere: in the metadata or at a file."""

_WRITER_FEATURES: Final = frozenset(
    {
        *(_READER_FEATURES - _WIDENING),
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns"),
        *("inCommitTimestamp", "allowColumnDefaults", "clustering", "domainMetadata"),
    }
)
_FEED_WRITER: Final = 4
_MAX_LEGACY_WRITER: Final = 6
"""Protocols up to this are made of the features above; 7 lists its features."""

_REFUSED_SETTINGS: Final = ("delta.constraints.", "delta.coordinatedCommits.")
_REFUSED_SWITCHES: Final = ("delta.appendOnly", "delta.enableRowTracking")


_DELTA_READER_FEATURES: Final = _READER_FEATURES | {
    *("variantType", "variantType-preview", "variantShredding", "variantShredding-preview", "catalogManaged"),
    *("geospatial", "geospatial-dev", "adaptiveMetadata-preview"),
}
"""What Delta 4.4 can read; tables with those that the driver does not know go to Spark."""

_NEWEST_READER: Final = 3
"""The protocol that lists its features; no higher one exists yet."""


def unknown_reading(protocol: Mapping[str, Any]) -> str | None:
    """Name a reader feature that is unknown here, None if there is none."""
    version = int(protocol["minReaderVersion"])
    if version > _NEWEST_READER:
        return f"reader version {version}"
    unknown = sorted(set(protocol.get("readerFeatures") or ()) - _DELTA_READER_FEATURES)
    return f"the feature {', '.join(unknown)}" if unknown else None


def is_readable(protocol: Mapping[str, Any]) -> bool:
    """Return whether nothing unknown bears on what files hold."""
    return not unread_features(protocol)


def unread_features(protocol: Mapping[str, Any]) -> list[str]:
    """Return the features that only Spark can read."""
    return sorted(set(protocol.get("readerFeatures") or ()) - _READER_FEATURES)


def is_widened(protocol: Mapping[str, Any]) -> bool:
    """Return whether files may hold narrower numbers than the table says."""
    return not _WIDENING.isdisjoint(protocol.get("readerFeatures") or ())


def is_mapped(metadata: Mapping[str, Any]) -> bool:
    """Return whether files hold columns under other names than the table."""
    return mapping_mode(metadata) != "none"


def mapping_mode(metadata: Mapping[str, Any]) -> str:
    """Return what tells columns in files: ``none`` (their names), ``name`` (names of their own) or ``id``."""
    return _settings(metadata).get("delta.columnMapping.mode", "none").lower()


def is_committable(protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Return whether a commit that names files as Spark writes them is all that a writer must do."""
    version = int(protocol["minWriterVersion"])
    if version > _MAX_LEGACY_WRITER and protocol.get("writerFeatures") is None:
        return False
    settings = _settings(metadata)
    return (
        mapping_mode(metadata) in ("none", "name")
        and is_readable(protocol)
        and set(protocol.get("writerFeatures") or ()) <= _WRITER_FEATURES
        and not any(key.startswith(_REFUSED_SETTINGS) for key in settings)
        and not any(settings.get(key, "false").lower() == "true" for key in _REFUSED_SWITCHES)
    )


def has_feed(metadata: Mapping[str, Any]) -> bool:
    """Return whether the table keeps a change feed."""
    return _settings(metadata).get("delta.enableChangeDataFeed", "false").lower() == "true"


def may_have_feed(protocol: Mapping[str, Any]) -> bool:
    """Return whether a table of a protocol may keep a change feed."""
    version = int(protocol["minWriterVersion"])
    return _FEED_WRITER <= version <= _MAX_LEGACY_WRITER or "changeDataFeed" in (protocol.get("writerFeatures") or ())


def is_stamped(metadata: Mapping[str, Any]) -> bool:
    """Return whether each commit must say when it was made, later than the one before."""
    return _settings(metadata).get("delta.enableInCommitTimestamps", "false").lower() == "true"


def checkpoint_interval(metadata: Mapping[str, Any]) -> int:
    """Return after how many commits the table's log gets a checkpoint, which only Spark writes."""
    return int(_settings(metadata).get("delta.checkpointInterval", "10"))


def _settings(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    return metadata.get("configuration") or {}
