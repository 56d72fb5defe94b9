"""Object stores that answer late, badly or not at all, and how few requests they get when they answer well."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trickle.errors import StorageError
from trickle.tables.storage import object_store
from trickle.tables.storage.credentials import s3_settings
from trickle.tables.storage.object_store import ObjectStorage
from trickle.tables.storage.protocol import UncertainPutError
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
    monkeypatch.setattr(object_store, "RETRY", {"max_retries": 2})
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

    shown = [
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

    assert [*storage.versions(folder.address, 28)] == [28, 29]
    assert proxy.count() == {"GET": 1}


def test_a_small_file_is_fetched_once_for_all_its_readers(proxy: Proxy, folder: Folder) -> None:
    storage = folder.storage
    with folder_of(proxy.endpoint).storage.writable(folder / "x.parquet") as sink:
        pq.write_table(pa.table({"k": range(1000)}), sink.file)
    sink.wait()
    proxy.clear()

    for _ in range(3):
        assert pq.read_table(storage.readable(folder / "x.parquet")).num_rows == 1000
    assert storage.scannable([folder / "x.parquet"]).options == {}

    assert proxy.count() == {"GET": 1}


def test_many_writers_of_numbered_files_lose_and_double_nothing(
    proxy: Proxy, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What commits are made of: each writer takes the next free number, while answers get lost."""
    monkeypatch.setattr(object_store, "RETRY", {"max_retries": 9})
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
