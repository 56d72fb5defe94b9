"""Verifies stream tables by and by, and remembers with the table what was found."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import TYPE_CHECKING, Final

from trickle.model.events import Mismatch, utc_now
from trickle.model.verification import VERIFIED_PROPERTY, Verification, read_verification

if TYPE_CHECKING:
    from trickle.engine.engine import Engine
    from trickle.model.report import VerifyReport

_LOG: Final = logging.getLogger("trickle")


def verify_and_tell(engine: Engine, name: str) -> VerifyReport:
    """Compare a stream table, or a sample of a big one, with its query; tell what is wrong, and store it with the table."""
    report = engine.verify(name, sampled=True)
    found = Verification(
        at=utc_now().isoformat(timespec="seconds"),
        ok=report.ok,
        rows=report.rows,
        missing=report.missing,
        extra=report.extra,
        part=report.part,
    )
    engine.catalog.results.set_properties(name, {VERIFIED_PROPERTY: found.model_dump_json()})
    if not report.ok:
        _LOG.warning("stream table %s is not what its query returns: %s", name, found)
        engine.events.emit(Mismatch(name, report))
    return report


def last_verified(engine: Engine, location: str) -> datetime | None:
    """Return when a stream table was last verified so, None if never."""
    marks = engine.catalog.marks(location)
    found = None if marks is None else read_verification(marks.verified)
    return None if found is None else datetime.fromisoformat(found.at)
