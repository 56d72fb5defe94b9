"""Object stores that answer late, badly or not at all, and how few requests they get when they answer well."""

from __future__ import annotations

import io
import random
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from trickle.errors import StorageError
from trickle.model.options import Options
from trickle.tables.cache.columns import ColumnCache
from trickle.tables.delta.driver.find import Finder
from trickle.tables.storage import client, object_store
from trickle.tables.storage.credentials import s3_settings
from trickle.tables.storage.disk_cache import DiskCache
from trickle.tables.storage.object_store import ObjectStorage
from trickle.tables.storage.protocol import UncertainPutError
from trickle.tables.storage.remote_file import TAIL
from trickle.tables.storage.schemes import Folder
from trickle.tables.storage.settings import GivenSettings
from trickle.testing.s3 import KEYS, S3Server, s3_server
from trickle.testing.s3_proxy import Fault, Proxy, Request, s3_proxy


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        running.make_bucket("storage")
        yield running


@pytest.fixture
def proxy(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    monkeypatch.setattr(client, "RETRY", {"max_retries": 2})
    with s3_proxy(server.endpoint) as running:
        yield running


@pytest.fixture
def folder(proxy: Proxy) -> Folder:
    """A folder of a bucket behind the proxy, which has been written to once."""
    made = folder_of(proxy.endpoint)
    made.storage.put_if_absent(made / "first", b"1")
    proxy.clear()
    return made


def folder_of(endpoint: str, bucket: str = "storage") -> Folder:
    given = {key.removeprefix("spark.hadoop."): text for key, text in S3Server(endpoint).settings.items()}
    root = f"s3a://{bucket}"
    storage = ObjectStorage("s3", root, s3_settings(bucket, root, GivenSettings(given)))
    return Folder(storage, f"{root}/{uuid.uuid4()}")


class Times:
    """A fault that comes a few times, in requests of one kind."""

    def __init__(self, method: str, fault: Fault, times: int = 1) -> None:
        self.method, self.fault, self.left = method, fault, times

    def __call__(self, request: Request) -> Fault | None:
        if request.method != self.method or self.left == 0:
            return None
        self.left -= 1
        return self.fault


def test_a_commit_whose_answer_was_lost_is_known_as_ours(proxy: Proxy, folder: Folder) -> None:
    proxy.fault = Times("PUT", "lost answer")

    folder.storage.put_if_absent(folder / "x", b"ours")

    assert folder.storage.get(folder / "x") == b"ours"


def test_a_commit_that_came_second_is_refused_even_if_the_answer_was_lost(proxy: Proxy, folder: Folder) -> None:
    folder.storage.put(folder / "x", b"theirs")
    proxy.fault = Times("PUT", "lost answer")

    with pytest.raises(FileExistsError):
        folder.storage.put_if_absent(folder / "x", b"ours")

    assert folder.storage.get(folder / "x") == b"theirs"


def test_a_commit_that_nobody_answered_may_still_arrive(proxy: Proxy, folder: Folder) -> None:
    proxy.fault = Times("PUT", "unavailable", -1)

    with pytest.raises(UncertainPutError):
        folder.storage.put_if_absent(folder / "x", b"ours")


def test_a_commit_that_was_refused_did_not_happen(proxy: Proxy, folder: Folder) -> None:
    proxy.fault = Times("PUT", "refused", -1)

    for put in (folder.storage.put_if_absent, folder.storage.put):
        with pytest.raises(StorageError, match="STORAGE_REFUSED") as refused:
            put(folder / "x", b"ours")
        assert folder.address in refused.value.message

    assert folder.storage.missing([folder / "x"])


@pytest.mark.parametrize("fault", ["unavailable", "cut body", "lost answer"])
def test_what_passes_is_tried_again(proxy: Proxy, folder: Folder, fault: Fault) -> None:
    storage = folder.storage
    storage.put(folder / "x", b"0123456789")
    for read, expected in (
        (lambda: storage.get(folder / "x"), b"0123456789"),
        (lambda: storage.get_ranges(folder / "x", [(2, 6)]), [b"234567"]),
        (lambda: storage.readable(folder / "x").read(), b"0123456789"),
        (lambda: storage.names(folder.address), ["first", "x"]),
    ):
        proxy.fault = Times("GET", fault)
        assert read() == expected


def test_a_store_that_stays_away_is_one_clear_error(proxy: Proxy, folder: Folder) -> None:
    proxy.fault = Times("GET", "unavailable", -1)

    with pytest.raises(StorageError, match="STORAGE_FAILED") as failed:
        folder.storage.get(folder / "first")

    assert "SlowDown" in failed.value.message


def test_all_tries_together_have_an_end(proxy: Proxy, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PATIENCE", 0.0)
    proxy.fault = Times("GET", "cut body", -1)

    with pytest.raises(StorageError, match="STORAGE_FAILED"):
        folder.storage.get(folder / "first")

    assert proxy.count()["GET"] == 3  # the client's own tries, once


def test_a_commit_is_tried_again_while_nobody_has_one_there(proxy: Proxy, folder: Folder) -> None:
    proxy.fault = Times("PUT", "unavailable", 4)  # more often than the client by itself tries

    folder.storage.put_if_absent(folder / "x", b"ours")

    assert folder.storage.get(folder / "x") == b"ours"


def test_a_bucket_that_is_not_there_is_named(proxy: Proxy) -> None:
    folder = folder_of(proxy.endpoint, "nowhere")
    storage = folder.storage

    for do in (
        lambda: storage.get(folder / "x"),
        lambda: storage.versions(folder.address, -1),
        lambda: storage.put_if_absent(folder / "x", b""),
        lambda: storage.readable(folder / "x"),
    ):
        with pytest.raises(StorageError, match=r"STORAGE_MISSING.*s3a://nowhere"):
            do()


def test_errors_and_texts_about_a_store_hold_no_secret(proxy: Proxy, folder: Folder) -> None:
    proxy.fault = Times("GET", "refused", -1)
    with pytest.raises(StorageError) as refused:
        folder.storage.get(folder / "first")

    given = {"fs.s3a.proxy.host": "p", "fs.s3a.proxy.username": "u", "fs.s3a.proxy.password": KEYS[1]}
    given = {**given, "fs.s3a.access.key": KEYS[0], "fs.s3a.secret.key": KEYS[1]}
    with folder.storage.scannable([folder / "first.parquet"]) as scannable:
        assert KEYS[1] in str(scannable.options)
    shown = [
        repr(scannable),
        repr(GivenSettings(given)),
        repr(s3_settings("storage", "s3a://storage", GivenSettings(given))),
        str(refused.value),
        repr(refused.value),
        repr(refused.value.__cause__),
        repr(folder),
        repr(vars(folder.storage)),
    ]

    assert not [text for text in shown if KEYS[1] in text]


def test_a_server_that_overlooks_conditions_gets_no_commit(proxy: Proxy) -> None:
    proxy.hidden = frozenset({"if-none-match"})
    folder = folder_of(proxy.endpoint)

    for _ in range(2):
        with pytest.raises(StorageError, match="NO_CONDITIONAL_PUT"):
            folder.storage.put_if_absent(folder / "x", b"ours")

    assert folder.storage.names(folder.address) == []


def test_a_marker_of_a_folder_is_no_file_in_it(folder: Folder, server: S3Server) -> None:
    storage = folder.storage
    server.put(folder.address.removeprefix("s3a://") + "/_staged_commits/", b"")

    assert storage.names(folder / "_staged_commits") == []
    assert sorted(storage.names(folder.address)) == ["_staged_commits", "first"]


def test_a_look_at_a_log_is_one_request(proxy: Proxy, folder: Folder) -> None:
    storage = folder.storage
    for version in range(30):
        storage.put(folder / f"{version:020d}.json", b"{}")
    proxy.clear()

    assert [*storage.versions(folder.address, 28)] == list(range(20, 30))
    assert proxy.count() == {"GET": 1}


def test_a_small_file_is_fetched_once_for_all_its_readers(proxy: Proxy, folder: Folder) -> None:
    storage = folder.storage
    with folder_of(proxy.endpoint).storage.writable(folder / "x.parquet") as sink:
        pq.write_table(pa.table({"k": range(1000)}), sink.file)
    sink.wait()
    proxy.clear()

    for _ in range(3):
        assert pq.read_table(storage.readable(folder / "x.parquet")).num_rows == 1000
    with storage.scannable([folder / "x.parquet"]) as place:
        assert place.options == {}

    assert proxy.count() == {"GET": 1}


def test_many_writers_of_numbered_files_lose_and_double_nothing(
    proxy: Proxy, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What commits are made of: each writer takes the next free number, while answers get lost."""
    monkeypatch.setattr(client, "RETRY", {"max_retries": 9})
    counter = iter(range(10**6))
    proxy.fault = lambda request: "lost answer" if request.method == "PUT" and next(counter) % 5 == 0 else None
    done: list[bytes] = []

    def write(writer: int) -> None:
        storage = folder_of(proxy.endpoint).storage
        for number in range(8):
            text = f"{writer} {number}".encode()
            while True:
                try:
                    storage.put_if_absent(
                        folder / f"{max(storage.versions(folder.address, -1), default=-1) + 1:020d}.json", text
                    )
                    break
                except FileExistsError:
                    continue
            done.append(text)

    threads = [Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proxy.fault = lambda _: None

    versions = folder.storage.versions(folder.address, -1)
    texts = folder.storage.get_many([folder / f"{version:020d}.json" for version in versions])
    assert sorted(versions) == list(range(32))
    assert sorted(text[0] for text in texts if text is not None) == sorted(done)


# -- files on the disk of this machine


class Disk:
    """Makes stores of one bucket as new processes would, with one folder for all."""

    def __init__(self, proxy: Proxy, path: Path) -> None:
        self.proxy, self.path, self.address = proxy, path, f"s3a://storage/{uuid.uuid4()}"

    def folder(self, *, max_bytes: int = 2**28, tail: int = TAIL) -> Folder:
        given = {
            key.removeprefix("spark.hadoop."): text for key, text in S3Server(self.proxy.endpoint).settings.items()
        }
        settings = s3_settings("storage", "s3a://storage", GivenSettings(given))
        disk = DiskCache(max_bytes, self.path)
        return Folder(ObjectStorage("s3", "s3a://storage", settings, tail=tail, disk=disk), self.address)

    def write(self, name: str, rows: pa.Table) -> str:
        """Write a file as another machine would."""
        buffer = io.BytesIO()
        pq.write_table(rows, buffer, row_group_size=rows.num_rows // 4, compression="none")
        folder_of(self.proxy.endpoint).storage.put(f"{self.address}/{name}", buffer.getvalue())
        self.proxy.clear()
        return f"{self.address}/{name}"

    def asked(self) -> int:
        """Count the requests since the last time."""
        count = sum(self.proxy.count().values())
        self.proxy.clear()
        return count


ROWS = pa.table({"k": range(200_000), "v": [n * 7919 % 200_000 for n in range(200_000)], "w": [1.5] * 200_000})


@pytest.fixture
def disk(proxy: Proxy, tmp_path: Path) -> Disk:
    return Disk(proxy, tmp_path / "files")


def lasting(end: str = "parquet") -> str:
    return f"part-00000-{uuid.uuid4()}-c000.snappy.{end}"


@pytest.mark.parametrize("tail", [TAIL, 20])
def test_a_new_process_finds_on_disk_what_another_read(disk: Disk, tail: int) -> None:
    big, small = disk.write(lasting(), ROWS), disk.write(f"_change_data/{lasting()}", ROWS.slice(0, 100))
    for requests in (True, False):
        storage = disk.folder(tail=tail).storage
        storage.fetch([big, small])
        assert pq.read_table(storage.readable(big), columns=["k", "w"]).equals(ROWS.select(["k", "w"]))
        assert pq.read_table(storage.readable(small)).equals(ROWS.slice(0, 100))
        assert bool(disk.asked()) == requests or tail < TAIL


def test_look_ups_of_a_new_process_read_from_disk(disk: Disk) -> None:
    wide = ROWS.append_column("text", pa.array([random.Random(n).randbytes(64) for n in range(200_000)]))
    files = [disk.write(lasting(), wide), disk.write(lasting(), wide)]
    keys = {"v": pa.array([5, 77, 199_999])}
    fields = [pa.field("k", pa.int64()), pa.field("v", pa.int64())]
    expected = ROWS.filter(pc.is_in(ROWS["v"], pa.array([5, 77, 199_999]))).select(["k", "v"])
    expected = pa.concat_tables([expected, expected])

    for options in (Options(column_cache_asks=1), Options(column_cache_bytes=0)):  # columns whole, and rows by a filter
        for requests in (True, False):
            storage = disk.folder().storage
            found = Finder(ColumnCache(options), options, storage).find(files, fields, keys)
            assert found.sort_by("k").equals(expected.sort_by("k"))
            assert bool(disk.asked()) == requests
            assert len(list(disk.path.iterdir())) == 4
        taken = sum(path.stat().st_blocks * 512 for path in disk.path.iterdir())
        assert taken < 0.7 * 2 * wide.nbytes  # the long column was not asked for
        shutil.rmtree(disk.path)


def test_parts_of_a_file_of_vectors_are_read_from_disk(disk: Disk) -> None:
    data = random.Random(3).randbytes(3_000_000)
    address = f"{disk.address}/deletion_vector_{uuid.uuid4()}.bin"
    folder_of(disk.proxy.endpoint).storage.put(address, data)
    disk.asked()
    ranges = [(1, 50), (0, 0), (2_500_000, 1000)]

    for requests in (True, False):
        assert disk.folder().storage.get_ranges(address, ranges) == [data[a : a + n] for a, n in ranges]
        assert bool(disk.asked()) == requests


def test_a_file_that_we_wrote_is_on_disk(disk: Disk) -> None:
    folder, address = disk.folder(), f"{disk.address}/{lasting()}"
    with folder.storage.writable(address) as sink:
        pq.write_table(ROWS, sink.file)
    sink.wait()
    folder.storage.later(lambda: None)
    object_store._POOL.submit(lambda: None).result()
    deadline = monotonic() + 10
    while len(list(disk.path.glob("*.sums"))) < 1 and monotonic() < deadline:
        sleep(0.01)
    disk.asked()

    assert pq.read_table(disk.folder().storage.readable(address)).equals(ROWS)


def test_commits_are_known_by_the_marks_that_a_look_tells(disk: Disk) -> None:
    log = disk.folder() / "_delta_log"
    first = disk.folder().storage
    files = [f"{log}/{version:020d}.json" for version in range(20)]
    for version, file in enumerate(files):
        first.put(file, b"theirs %d" % version)
    first.put_if_absent(f"{log}/{20:020d}.json", b"ours")
    files.append(f"{log}/{20:020d}.json")

    def read() -> list[bytes]:
        storage = disk.folder().storage
        marks = storage.versions(log, -1)
        seen = {file: marks[version] for version, file in enumerate(files)}
        disk.asked()
        return [found[0] for found in storage.get_many(files, seen) if found is not None]

    assert read() == [*(b"theirs %d" % version for version in range(20)), b"ours"]
    assert disk.asked() == 20  # ours was kept when it was made
    assert read()[7] == b"theirs 7"
    assert disk.asked() == 0

    first.put(files[7], b"another")  # of a table made anew, or put back
    assert read()[7] == b"another"
    assert disk.asked() == 1
    assert disk.folder().storage.get(files[7]) == b"another"
    assert disk.asked() == 1  # whoever has seen no mark asks


@pytest.mark.parametrize("tail", [TAIL, 4000])
@pytest.mark.parametrize("name", [f"_delta_log/{10:020d}.checkpoint.parquet", "rows.parquet"])
def test_a_name_that_may_come_again_is_not_trusted(disk: Disk, name: str, tail: int) -> None:
    before, after = ROWS, ROWS.set_column(1, "v", pa.array(range(200_000)))
    for rows in (before, after, before):
        address = disk.write(name, rows)
        for _ in range(2):
            assert pq.read_table(disk.folder(tail=tail).storage.readable(address)).equals(rows)
        disk.asked()
        assert pq.read_table(disk.folder(tail=tail).storage.readable(address)).equals(rows)
        assert disk.asked() == 1  # which file it is


def test_a_checkpoint_of_a_table_made_anew_is_read_anew(disk: Disk) -> None:
    storage = disk.folder().storage
    for rows in (ROWS.slice(0, 100), ROWS.slice(100, 100)):
        address = disk.write(f"_delta_log/{10:020d}.checkpoint.parquet", rows)
        assert pq.read_table(storage.readable(address)).equals(rows)


def test_parts_of_two_files_of_one_name_are_never_mixed(disk: Disk) -> None:
    before, after = ROWS, ROWS.set_column(1, "v", pa.array(range(200_000)))
    address = disk.write("rows.parquet", before)
    storage = disk.folder(tail=4000).storage
    file: Any = storage.readable(address)
    disk.write("rows.parquet", after)
    file.read(2_000_000)  # of the other file, after the end of this one

    disk.write("rows.parquet", before)
    assert pq.read_table(disk.folder(tail=4000).storage.readable(address)).equals(before)


def test_a_file_that_was_vacuumed_is_missing_though_it_is_on_disk(disk: Disk) -> None:
    address = disk.write(lasting(), ROWS.slice(0, 100))
    disk.folder().storage.readable(address)
    storage = disk.folder().storage
    storage.readable(address)
    storage.delete(address)

    assert storage.missing([address]) == [address]


def test_files_on_disk_that_were_harmed_are_fetched_again(disk: Disk) -> None:
    address = disk.write(lasting(), ROWS)
    disk.folder().storage.readable(address).read()
    disk.asked()
    for path in disk.path.iterdir():
        if path.suffix != ".sums":
            path.write_bytes(path.read_bytes().replace(b"\1", b"\2"))

    for requests in (True, False):
        storage = disk.folder().storage
        assert pq.read_table(storage.readable(address)).equals(ROWS)
        assert bool(disk.asked()) == requests


@pytest.mark.parametrize("how", ["off", "no folder", "too small"])
def test_without_a_disk_all_is_fetched(disk: Disk, how: str) -> None:
    if how == "no folder":
        disk.path.write_bytes(b"")
    address = disk.write(lasting(), ROWS)
    vectors = f"{disk.address}/{lasting('bin')}"
    folder_of(disk.proxy.endpoint).storage.put(vectors, b"0123456789")

    for _ in range(2):
        disk.proxy.clear()
        storage = disk.folder(max_bytes={"off": 0, "too small": 4 * 2**20}.get(how, 2**28)).storage
        assert pq.read_table(storage.readable(address)).equals(ROWS)
        with storage.scannable([address], [[(0, 2 * 2**20)]]) as place:
            assert place.files == [address]
        assert disk.asked() > 0
        assert storage.get_ranges(vectors, [(2, 3)]) == [b"234"]
    assert how == "too small" or not disk.path.is_dir()


def test_what_is_kept_on_disk_holds_no_secret(disk: Disk) -> None:
    disk.folder().storage.readable(disk.write(lasting(), ROWS.slice(0, 100)))

    paths = list(disk.path.iterdir())
    assert len(paths) == 2
    assert all(KEYS[1].encode() not in path.read_bytes() and KEYS[0] not in path.name for path in paths)
