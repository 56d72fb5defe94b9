"""Suspends stream tables at a person's wish, and lets them go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trickle.refresh.request import Request

if TYPE_CHECKING:
    from trickle.engine.engine import Engine
    from trickle.engine.suspend import Resumption
    from trickle.model.report import RefreshReport
    from trickle.model.suspension import Suspension


def suspend(engine: Engine, name: str, message: str | None = None) -> Suspension:
    """Leave a stream table where it is until it is resumed."""
    found = engine.tables.find(engine.qualify(name))
    with engine.tables.lock(found.name):  # a refresh at work ends first
        return engine.suspensions.suspend(found.name, found.location, message=message)


def resume(engine: Engine, name: str, then: Resumption | None = None) -> RefreshReport | None:
    """Let a suspended stream table go on, perhaps after it was refreshed in some way."""
    found = engine.tables.find(engine.qualify(name))
    with engine.tables.lock(found.name):
        report = None
        if then is not None:
            held = engine.suspensions.held_change(found.name, found.location, then)
            request = Request(full=then == "full", at=held, ignores_fuse=True, skips_change=then == "skip")
            report = engine.refresh_open(engine.tables.get(found.name), request)
        engine.suspensions.resume(found.name, found.location)
        return report
