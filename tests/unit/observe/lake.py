"""Hand-made warehouses: logs of Delta tables without a row of data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from trickle.model.definition import (
    DEFINITION_PROPERTY,
    TABLE_PROPERTY,
    Definition,
    RefreshRecord,
    SourceVersion,
    Took,
)
from trickle.observe.observer import Observer
from trickle.observe.places import warehouse_places

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@dataclass
class Lake:
    """A warehouse folder; times are seconds before noon."""

    folder: Path
    now: datetime = NOON
    versions: dict[str, int] = field(default_factory=dict)

    def table(self, name: str, *, ago: float = 3600, properties: dict[str, str] | None = None, id: str = "") -> None:
        """Make a table."""
        self._path(name).mkdir(parents=True)
        self.versions[name] = -1
        self._commit(name, ago, "CREATE TABLE", [PROTOCOL, self._metadata(id or name, properties or {})])

    def write(self, name: str, *, ago: float, changes_data: bool = True, operation: str = "WRITE") -> None:
        """Commit to a table."""
        version = self.versions[name] + 1
        add = {"path": f"f{version}", "size": 1, "partitionValues": {}, "dataChange": changes_data}
        self._commit(name, ago, operation, [{"add": add}])

    def stream(self, name: str, *, schedule: str | None = None, mode: str = "auto", **properties: str) -> None:
        """Make a stream table."""
        definition = Definition(
            query="SELECT 1",
            mode=mode,
            schedule=schedule,
            catalog="spark_catalog",
            schema_name="default",
            spark="4.1.4",
        )
        own = {DEFINITION_PROPERTY: definition.model_dump_json(), TABLE_PROPERTY: name, **properties}
        self.table(name, properties=own)

    def alter(self, name: str, properties: dict[str, str]) -> None:
        """Set other properties."""
        log = self._path(name) / f"{0:020d}.json"
        created = [json.loads(line) for line in log.read_text().splitlines()]
        known = next(action["metaData"]["configuration"] for action in created if "metaData" in action)
        self._commit(name, 0, "SET TBLPROPERTIES", [self._metadata(name, {**known, **properties})])

    def refresh(
        self,
        name: str,
        sources: dict[str, int],
        *,
        ago: float,
        mode: str = "differential",
        reason: str | None = None,
        took: Took | None = None,
        metrics: dict[str, int] | None = None,
        columns: dict[str, tuple[str, ...]] | None = None,
        skipped: str | None = None,
    ) -> None:
        """Commit a refresh to a stream table."""
        record = RefreshRecord(
            refresh_id="r",
            mode=mode,
            reason=reason,
            frontier={source: SourceVersion(version=version, identity=source) for source, version in sources.items()},
            fingerprint="f",
            started=(self.now - seconds(ago)).isoformat(timespec="milliseconds"),
            took=took,
            columns=columns,
            skipped=skipped,
        )
        info = {"userMetadata": record.model_dump_json(), "operationMetrics": metrics or {}}
        mark = {"txn": {"appId": "trickle", "version": self.versions[name]}}
        version = self.versions[name] + 1
        add = {"path": f"f{version}", "size": 1, "partitionValues": {}, "dataChange": True}
        self._commit(name, ago, "WRITE", [mark, {"add": add}], **info)

    def observer(self) -> Observer:
        """Look at it."""
        return Observer(warehouse_places(str(self.folder)), clock=lambda: self.now)

    def _commit(self, name: str, ago: float, operation: str, actions: list[Any], **info: Any) -> None:
        self.versions[name] += 1
        time = int((self.now - seconds(ago)).timestamp() * 1000)
        lines = [{"commitInfo": {"timestamp": time, "operation": operation, **info}}, *actions]
        path = self._path(name) / f"{self.versions[name]:020d}.json"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def _path(self, name: str) -> Path:
        schema, _, table = name.rpartition(".")
        return self.folder / (f"{schema}.db/{table}" if schema else table) / "_delta_log"

    @staticmethod
    def _metadata(identity: str, properties: dict[str, str]) -> dict[str, Any]:
        schema = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
        return {"metaData": {"id": identity, "schemaString": schema, "configuration": properties}}
