"""A runner in a process of its own: the loop over a warehouse, which tells in lines of JSON what it does.

``python -m trickle.testing.soak.runner FOLDER`` ends cleanly on SIGTERM, and is made to be killed.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING

from trickle.api import Trickle
from trickle.model.events import RefreshFailed, RunEnded, Suspended
from trickle.schedule.lease import open_lease
from trickle.schedule.loop import Loop
from trickle.schedule.running import stopped_by_signals
from trickle.session import local_session

if TYPE_CHECKING:
    from trickle.schedule.lease import Lease


def main(folder: str) -> None:
    """Run until SIGTERM."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s")
    spark = local_session(folder, cores=1, memory="1g", config={"spark.ui.enabled": "false"})
    trickle = Trickle(spark)
    trickle.events.on(RunEnded, _tell_run)
    trickle.events.on(RefreshFailed, lambda event: _tell("failed", table=event.table, code=event.error.code))
    trickle.events.on(Suspended, lambda event: _tell("suspended", table=event.table, why=str(event.suspension)))
    lease = open_lease(spark)
    assert lease is not None
    loop = Loop(trickle._engine, lease=lease)
    threading.Thread(target=_watch, args=(lease,), daemon=True).start()
    _tell("ready")
    with stopped_by_signals(loop.stop, loop.cancel):
        loop.run()
    _tell("ended")
    spark.stop()


def _tell_run(event: RunEnded) -> None:
    modes = [report.mode for report in event.report.tables.values()]
    _tell("run", refreshed=len(modes) - modes.count("no_data"), seconds=round(event.report.seconds, 2))


def _watch(lease: Lease) -> None:
    """Tell when this process begins to lead, and when it no longer does."""
    led = False
    while True:
        if lease.is_held != led:
            led = not led
            _tell("leads" if led else "follows")
        time.sleep(0.02)


def _tell(kind: str, **facts: object) -> None:
    sys.stdout.write(json.dumps({"kind": kind, "at": time.time(), **facts}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
