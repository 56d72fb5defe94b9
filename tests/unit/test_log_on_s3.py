"""Logs on an object store: how few requests they take, and what is noticed when a commit is not the one it was."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest

from trickle.model.digests import first_difference
from trickle.observe.observer import Observer
from trickle.observe.places import warehouse_places
from trickle.tables import looks
from trickle.tables.delta.log import DeltaLogFiles, commit_file
from trickle.tables.delta.table_log import NoSpark
from trickle.tables.storage import schemes, settings
from trickle.tables.storage.schemes import Folder, folder_at
from trickle.testing.s3 import s3_server
from trickle.testing.s3_proxy import Proxy, s3_proxy

METADATA = {
    "metaData": {
        "id": "orders",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": '{"type":"struct","fields":[]}',
        "partitionColumns": [],
        "configuration": {},
    }
}
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


class Handle(NoSpark):
    """Counts how often the table was said to be another."""

    forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    """A proxy before a server that this process without Spark was told of."""
    with s3_server() as server, s3_proxy(server.endpoint) as running:
        server.make_bucket("logs")
        settings.use_settings(
            {**server.settings, "spark.hadoop.fs.s3a.endpoint": running.endpoint, "spark.master": "local"}
        )
        yield running
        settings._given.clear()
        schemes._opened.pop("s3a://logs", None)


@pytest.fixture
def folder(proxy: Proxy) -> Folder:
    """A table with two commits."""
    found = folder_at(f"s3a://logs/{uuid.uuid4()}/orders")
    assert found is not None
    write(found, 0, PROTOCOL, METADATA)
    write(found, 1, add("a"))
    proxy.clear()
    return found


def add(path: str) -> dict[str, object]:
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}}


def text_of(*actions: object) -> str:
    return "".join(json.dumps(action) + "\n" for action in ({"commitInfo": {"operation": "WRITE"}}, *actions))


def write(folder: Folder, version: int, *actions: object) -> None:
    folder.storage.put(commit_file(folder, version), text_of(*actions).encode())


def test_a_look_is_one_request_and_a_commit_another(folder: Folder, proxy: Proxy) -> None:
    log = DeltaLogFiles(Handle(folder.address))
    assert log.head() == 1
    for version in (2, 3, 4):
        write(folder, version, add(str(version)))
    log.commits(0, 1)
    log.digest(1)
    proxy.clear()

    assert log.head() == 4
    assert [commit.adds[0].path for commit in log.commits(1, 4)] == ["2", "3", "4"]
    assert log.digest(1) is not None
    assert proxy.count() == {"GET": 4}


def test_one_refresh_looks_once(folder: Folder, proxy: Proxy) -> None:
    log = DeltaLogFiles(Handle(folder.address))
    log.head()
    write(folder, 2, add("b"))
    proxy.clear()

    with looks.one_look():
        looks.at_once([log.head, log.head])
        write(folder, 3, add("c"))
        assert [log.head() for _ in range(3)] == [2, 2, 2]
        looks.look_again()
        assert log.head() == 3

    lists = [request for request in proxy.requests if "list-type" in request.path]
    assert len(lists) == 2


def test_a_commit_of_ours_is_known_without_reading_it(folder: Folder, proxy: Proxy) -> None:
    log = DeltaLogFiles(Handle(folder.address))
    with looks.one_look():
        log.head()
        text = text_of(add("ours"))
        mark = folder.storage.put_if_absent(commit_file(folder, 2), text.encode())
        proxy.clear()

        log.committed(2, text, mark)

        assert log.head() == 2
        assert log.commits(1, 2)[0].adds[0].path == "ours"
        assert not proxy.requests
    assert log.head() == 2
    assert log.generation == 0


def test_a_commit_that_another_overwrote_is_noticed_at_the_next_look(folder: Folder) -> None:
    handle = Handle(folder.address)
    log = DeltaLogFiles(handle)
    log.head()
    text = text_of(add("ours"))
    log.committed(2, text, folder.storage.put_if_absent(commit_file(folder, 2), text.encode()))
    ours = log.digest(2)

    write(folder, 2, add("theirs"))
    write(folder, 3, add("more"))

    assert log.head() == 3
    assert (log.generation, handle.forgotten) == (1, 1)
    assert log.digest(2) not in (None, ours)
    assert log.commits(1, 2)[0].adds[0].path == "theirs"


def test_an_older_commit_that_another_overwrote_is_noticed_at_the_next_look(folder: Folder) -> None:
    handle = Handle(folder.address)
    log = DeltaLogFiles(handle)
    for version in range(2, 12):
        write(folder, version, add(str(version)))
    assert log.head() == 11
    before = log.digest(11)

    write(folder, 5, add("late"))

    assert log.head() == 11
    assert (log.generation, handle.forgotten) == (1, 1)
    assert first_difference(before, log.digest(11)) == 6
    assert log.commits(4, 5)[0].adds[0].path == "late"


def test_a_new_process_notices_an_older_commit_that_another_overwrote(folder: Folder) -> None:
    for version in range(2, 12):
        write(folder, version, add(str(version)))
    before = DeltaLogFiles(Handle(folder.address))
    digest = before.digest(before.head())
    write(folder, 9, add("late"))

    after = DeltaLogFiles(Handle(folder.address))
    assert after.head() == 11

    assert first_difference(digest, after.digest(11)) == 2


def test_digests_ask_for_no_commits_that_are_cleaned_up(folder: Folder, proxy: Proxy) -> None:
    for version in range(2, 12):
        write(folder, version, add(str(version)))
    folder.storage.delete(*(commit_file(folder, version) for version in range(10)))
    log = DeltaLogFiles(Handle(folder.address))
    log.head()
    proxy.clear()

    digest = log.digest(11)

    assert digest is not None
    assert digest.count(".") == 1
    assert proxy.count() == {"GET": 2}


def test_a_warehouse_on_a_store_is_looked_at_without_spark(folder: Folder) -> None:
    warehouse = folder.parent
    folder.storage.put(f"{warehouse}/shop.db/lines/_delta_log/{0:020d}.json", text_of(PROTOCOL, METADATA).encode())
    folder.storage.put(f"{warehouse}/no table/x", b"")

    places = warehouse_places(warehouse)

    assert dict(places.tables()) == {
        "default.orders": f"{warehouse}/orders",
        "shop.lines": f"{warehouse}/shop.db/lines",
    }
    assert Observer(places).status() == ()


def read_by_a_new_process(folder: Folder, upto: int) -> list[str]:
    """Return the paths that the commits of a log add."""
    schemes._opened.pop("s3a://logs", None)
    log = DeltaLogFiles(Handle(folder.address))
    assert log.head() == upto
    return [file.path for commit in log.commits(-1, upto) for file in commit.adds]


def test_a_new_process_reads_no_commit_that_another_has_read(folder: Folder, proxy: Proxy) -> None:
    write(folder, 2, add("b"))
    assert read_by_a_new_process(folder, 2) == ["a", "b"]
    proxy.clear()

    assert read_by_a_new_process(folder, 2) == ["a", "b"]

    assert not [request for request in proxy.requests if ".json" in request.path.partition("?")[0]]


def test_a_new_process_notices_that_the_table_was_made_anew(folder: Folder) -> None:
    assert read_by_a_new_process(folder, 1) == ["a"]
    write(folder, 1, add("other"))
    assert read_by_a_new_process(folder, 1) == ["other"]
    write(folder, 1, add("a"))
    assert read_by_a_new_process(folder, 1) == ["a"]
