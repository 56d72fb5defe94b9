"""What every storage does alike. A new storage is a row of ``FACTORIES``."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trickle.tables.storage.credentials import azure_settings, gcs_settings, s3_settings
from trickle.tables.storage.hadoop import COPIES, HadoopStorage
from trickle.tables.storage.local import LocalStorage
from trickle.tables.storage.object_store import CACHE_BYTES, ObjectStorage
from trickle.tables.storage.remote_file import BLOCK, TAIL
from trickle.tables.storage.schemes import Folder, folder_at
from trickle.tables.storage.settings import GivenSettings
from trickle.testing.emulators import AzureServer, GcsServer, azurite, emulator, fake_gcs
from trickle.testing.hadoop import mount
from trickle.testing.s3 import S3Server, s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _on_hadoop(spark: SparkSession, place: str, copies: int = COPIES) -> Folder:
    folder = folder_at(f"{place}/a folder")
    assert folder is not None
    known: Any = folder.storage
    storage = HadoopStorage(spark.sparkContext, known.root, known._fs, known._mounts, copies=copies)
    storage.make_folder(folder.address)
    return Folder(storage, folder.address)


def _bucket_of(server: S3Server, tail: int = TAIL, block: int = BLOCK, cache: int = CACHE_BYTES) -> Folder:
    client = s3_settings("storage", "s3a://storage", _given(server))
    storage = ObjectStorage("s3", "s3a://storage", client, tail=tail, block=block, cache=cache)
    return Folder(storage, f"s3a://storage/a folder/{uuid.uuid4()}")


def _container_of(server: AzureServer, **sizes: int) -> Folder:
    root = server.root("storage")
    client = azure_settings(root, root.partition("://")[2], _given(server))
    return Folder(ObjectStorage("azure", root, client, **sizes), f"{root}/a folder/{uuid.uuid4()}")


def _google_bucket_of(server: GcsServer, **sizes: int) -> Folder:
    storage = ObjectStorage("gcs", "gs://storage", gcs_settings("storage", _given(server)), **sizes)
    return Folder(storage, f"gs://storage/a folder/{uuid.uuid4()}")


def _given(server: S3Server | AzureServer | GcsServer) -> GivenSettings:
    return GivenSettings({key.removeprefix("spark.hadoop."): text for key, text in server.settings.items()})


FACTORIES: Mapping[str, Callable[[Path, Callable[[str], Any]], Folder]] = {
    "LocalStorage": lambda path, _: Folder(LocalStorage(), str(path)),
    "ObjectStorage": lambda _, ask: _bucket_of(ask("server")),
    "ObjectStorage, by small ranges": lambda _, ask: _bucket_of(ask("server"), tail=20, block=30),
    "ObjectStorage, without a cache": lambda _, ask: _bucket_of(ask("server"), cache=0),
    "ObjectStorage, Azurite": lambda _, ask: _container_of(ask("azure")),
    "ObjectStorage, Azurite, by small ranges": lambda _, ask: _container_of(ask("azure"), tail=20, block=30),
    "ObjectStorage, fake-gcs-server": lambda _, ask: _google_bucket_of(ask("gcs")),
    "ObjectStorage, fake-gcs-server, by small ranges": lambda _, ask: _google_bucket_of(ask("gcs"), tail=20, block=30),
    "HadoopStorage": lambda path, ask: _on_hadoop(ask("spark"), mount(ask("spark"), path.as_uri())),
    "HadoopStorage, without copies": lambda path, ask: _on_hadoop(ask("spark"), mount(ask("spark"), path.as_uri()), 0),
    "HadoopStorage, HDFS": lambda path, ask: _on_hadoop(ask("spark"), f"{ask('hdfs')}/{path.name}/{uuid.uuid4()}"),
}

_MARKS: Mapping[str, tuple[pytest.MarkDecorator, ...]] = {
    **{name: (pytest.mark.slow,) for name in FACTORIES if "Azurite" in name or "gcs" in name},
    "HadoopStorage": (pytest.mark.spark,),
    "HadoopStorage, without copies": (pytest.mark.spark,),
    "HadoopStorage, HDFS": (pytest.mark.spark, pytest.mark.slow),
}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        running.make_bucket("storage")
        yield running


@pytest.fixture(scope="module")
def azure() -> Iterator[AzureServer]:
    with emulator(azurite()) as running:
        running.make_container("storage")
        yield running


@pytest.fixture(scope="module")
def gcs() -> Iterator[GcsServer]:
    with emulator(fake_gcs()) as running:
        running.make_bucket("storage")
        yield running


@pytest.fixture(params=[pytest.param(name, marks=_MARKS.get(name, ())) for name in FACTORIES])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    """An empty folder on every storage in turn."""
    return FACTORIES[request.param](tmp_path, request.getfixturevalue)


def test_locations_are_known_by_their_scheme() -> None:
    for location in ("/data/a b/orders", "file:/data/a b/orders", "file:///data/a b/orders", "/data/a b/orders/"):
        found = folder_at(location)
        assert found is not None
        assert (found.address, found / "x", found.parent) == (
            "/data/a b/orders",
            "/data/a b/orders/x",
            "/data/a b",
        )
    assert folder_at("/data/a:b/orders") is not None
    for location in ("ofs://host/orders", "hdfs:///orders", "s3a:/bucket/orders", "orders", ""):
        assert folder_at(location) is None


def test_what_is_put_is_read(folder: Folder) -> None:
    storage = folder.storage
    storage.put(folder / "a", b"0123456789")
    storage.put(folder / "b", b"")

    assert storage.get(folder / "a") == b"0123456789"
    assert storage.size(folder / "a") == 10
    found = storage.get_many([folder / "b", folder / "none", folder / "a"])
    assert [one and one[0] for one in found] == [b"", None, b"0123456789"]
    assert storage.get_ranges(folder / "a", [(2, 3), (9, 1), (0, 0)]) == [b"234", b"9", b""]
    assert sorted(storage.names(folder.address)) == ["a", "b"]
    assert storage.missing([folder / "none", folder / "a", folder / "more"]) == [folder / "none", folder / "more"]


def test_what_is_not_there_is_said(folder: Folder) -> None:
    storage = folder.storage
    storage.put(folder / "a", b"x")

    for address in (folder / "none", folder / "a/in a file", folder / "none/at all"):
        with pytest.raises(FileNotFoundError):
            storage.get(address)
        assert storage.mark(address) is None
        assert storage.names(address) == []
        assert not storage.is_folder(address)
    storage.delete(folder / "none")
    storage.delete()


def test_a_file_in_the_place_of_another_has_another_mark(folder: Folder) -> None:
    storage = folder.storage
    storage.put(folder / "a", b"one")
    before = storage.mark(folder / "a")
    assert storage.mark(folder / "a") == before

    storage.put(folder / "a", b"two")

    assert storage.mark(folder / "a") not in (before, None)
    storage.delete(folder / "a")
    assert storage.mark(folder / "a") is None


def test_of_many_who_put_a_file_one_wins(folder: Folder) -> None:
    storage, start, won, lost = folder.storage, Barrier(8), [], []

    def put(number: int) -> None:
        start.wait()
        try:
            storage.put_if_absent(folder / "x", str(number).encode())
            won.append(number)
        except FileExistsError:
            lost.append(number)

    threads = [Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(won), len(lost)) == (1, 7)
    assert storage.get(folder / "x") == str(won[0]).encode()
    assert storage.names(folder.address) == ["x"]


def test_the_newest_version_is_found_from_any_known_one(folder: Folder) -> None:
    storage = folder.storage
    assert storage.versions(folder.address, -1) == {}
    for version in (0, 1, 2, 3, 5):  # one is missing
        storage.put(folder / f"{version:020d}.json", b"{}")
    for name in (f"{9:020d}.crc", "_last_checkpoint", f"{7:020d}.checkpoint.parquet", f"{8:019d}x.json"):
        storage.put(folder / name, b"")

    for known in (-1, 0, 3, 5):
        found = storage.versions(folder.address, known)
        assert max(found) == 5
        assert known == -1 or found[known] == storage.mark(folder / f"{known:020d}.json")
        assert found[5] == storage.get_marked(folder / f"{5:020d}.json")[1]
    assert 4 not in storage.versions(folder.address, 4)


def test_a_log_that_is_shorter_than_its_hint_is_listed_whole(folder: Folder) -> None:
    storage = folder.storage
    storage.put(folder / f"{3:020d}.json", b"{}")
    for hint in (b'{"version":7}', b'{"version":2,"size":3}', b"nonsense", b'{"version": 3}'):
        storage.put(folder / "_last_checkpoint", hint)

        assert max(storage.versions(folder.address, -1)) == 3


def test_readers_and_writers_of_parquet_take_its_files(folder: Folder) -> None:
    storage, rows = folder.storage, pa.table({"k": [1, 2, 3]})
    with storage.writable(folder / "rows.parquet") as sink:
        pq.write_table(rows, sink.file)
    sink.wait()

    assert sink.size == storage.size(folder / "rows.parquet")
    for _ in range(2):
        assert pq.read_table(storage.readable(folder / "rows.parquet")).equals(rows)
        with storage.scannable([folder / "rows.parquet"]) as place:
            assert pl.read_parquet(place.files, glob=False, **place.options)["k"].to_list() == [1, 2, 3]


def test_a_checkpoint_of_a_table_made_anew_is_read_anew(folder: Folder) -> None:
    storage, checkpoint = folder.storage, folder / f"_delta_log/{10:020d}.checkpoint.parquet"
    storage.make_folder(folder / "_delta_log", parents=True)
    for rows in (pa.table({"k": [1, 2, 3]}), pa.table({"k": [4]})):
        with storage.writable(checkpoint + ".new") as sink:
            pq.write_table(rows, sink.file)
        sink.wait()
        storage.put(checkpoint, storage.get(checkpoint + ".new"))
        storage.delete(checkpoint + ".new")
        storage.fetch([checkpoint])

        assert pq.read_table(storage.readable(checkpoint)).equals(rows)


def test_a_lock_lets_one_in_at_a_time(folder: Folder) -> None:
    inside, most = [], []

    def work() -> None:
        for _ in range(20):
            with folder.storage.lock(folder / ".lock"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(most) == {1}


def test_files_that_killed_processes_left_are_swept(tmp_path: Path) -> None:
    folder = Folder(LocalStorage(), str(tmp_path))
    old, new, other = (tmp_path / name for name in (".trickle-1.tmp", ".trickle-2.tmp", "other.tmp"))
    for file in (old, new, other):
        file.touch()
    for file in (old, other):
        os.utime(file, (0, 0))

    folder.storage.put_if_absent(folder / "x", b"x")
    folder.storage.sweep(folder.address)

    assert {path.name for path in tmp_path.iterdir()} == {new.name, other.name, "x"}


def test_what_lies_in_the_way_of_a_folder_is_cleared(tmp_path: Path) -> None:
    storage = LocalStorage()
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()

    for name in ("file", "dangling", "folder", "nothing"):
        storage.clear(str(tmp_path / name))

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
