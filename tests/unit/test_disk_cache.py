"""Files of object stores on the disk of this machine: what is kept is right or not there, whoever writes it."""

from __future__ import annotations

import logging
import os
import random
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trickle.model.cache import cache_sizes
from trickle.tables.storage.disk_cache import BLOCK, DiskCache, cache_folder, together

MIB = 1024**2
DATA = random.Random(7).randbytes(3 * BLOCK + 1000)


def cache(folder: Path, max_bytes: int = 100 * MIB) -> DiskCache:
    return DiskCache(max_bytes, folder)


def read(kept_in: DiskCache, key: str, start: int = 0, length: int | None = None) -> bytes | None:
    with kept_in.opened(key) as kept:
        return None if kept is None else kept.read(start, kept.size - start if length is None else length)


def test_what_is_kept_is_there_for_the_next_process(tmp_path: Path) -> None:
    cache(tmp_path).keep("a", len(DATA), 0, DATA)

    assert read(cache(tmp_path), "a") == DATA
    assert read(cache(tmp_path), "a", BLOCK - 5, 10) == DATA[BLOCK - 5 : BLOCK + 5]
    assert read(cache(tmp_path), "b") is None


def test_parts_are_kept_by_blocks_and_the_rest_is_lacking(tmp_path: Path) -> None:
    kept_in = cache(tmp_path)
    kept_in.keep("a", len(DATA), BLOCK - 10, DATA[BLOCK - 10 : 2 * BLOCK + 10])
    kept_in.keep("a", len(DATA), 3 * BLOCK, DATA[3 * BLOCK :])

    assert read(kept_in, "a", BLOCK, BLOCK) == DATA[BLOCK : 2 * BLOCK]
    assert read(kept_in, "a", 3 * BLOCK) == DATA[3 * BLOCK :]
    assert read(kept_in, "a") is None
    with kept_in.opened("a") as kept:
        assert kept is not None
        assert kept.lacking([(BLOCK, 1)]) == []
        assert kept.lacking([(10, BLOCK), (2 * BLOCK, 1)]) == [(0, BLOCK), (2 * BLOCK, BLOCK)]
        for start, length in kept.lacking([(0, len(DATA))]):
            kept.put(start, DATA[start : start + length])
        assert kept.read(0, len(DATA)) == DATA
        with kept.file() as file:
            assert file.read() == DATA


def test_requests_are_few_and_not_too_long() -> None:
    assert together([(0, 10), (30, 10), (40, 40)], gap=20, most=50) == [(0, 50), (50, 30)]
    assert together([(0, 10), (31, 10)], gap=20, most=50) == [(0, 10), (31, 10)]


def _flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: _flip(folder / "a", 5),
        lambda folder: _flip(folder / "a.sums", 10),  # the size
        lambda folder: _flip(folder / "a.sums", 35),
        lambda folder: os.truncate(folder / "a", 1000),
        lambda folder: os.truncate(folder / "a", 0),
        lambda folder: os.truncate(folder / "a.sums", 40),
        lambda folder: os.truncate(folder / "a.sums", 0),
        lambda folder: (folder / "a").unlink(),
        lambda folder: (folder / "a.sums").unlink(),
        lambda folder: [(folder / f"b{end}").rename(folder / f"a{end}") for end in ("", ".sums")],
    ],
    ids=["data", "size", "digest", "cut", "empty", "digests cut", "no digests", "gone", "digests gone", "another"],
)
def test_what_is_not_what_was_kept_is_not_trusted(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    cache(tmp_path).keep("a", len(DATA), 0, DATA)
    cache(tmp_path).keep("b", len(DATA), 0, DATA[::-1])
    harm(tmp_path)

    kept_in = cache(tmp_path)
    assert read(kept_in, "a", 0, BLOCK) is None
    kept_in.keep("a", len(DATA), 0, DATA)

    assert read(cache(tmp_path), "a") == DATA


def test_a_file_of_another_size_is_another(tmp_path: Path) -> None:
    cache(tmp_path).keep("a", len(DATA), 0, DATA)
    with cache(tmp_path).opened("a", 2 * BLOCK) as kept:
        assert kept is not None
        assert kept.lacking([(0, 2 * BLOCK)]) == [(0, 2 * BLOCK)]
    assert read(cache(tmp_path), "a") is None


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    kept_in, data = cache(tmp_path, 2 * MIB), DATA[: 100 * 1024]
    for number in range(60):
        kept_in.keep(str(number), len(data), 0, data)
        os.utime(tmp_path / f"{number}.sums", (0, number))
        if number == 10:
            for name in ("5", "5.sums"):
                os.utime(tmp_path / name, (0, 2**31))
        for name in {str(number), "5"} & {path.name for path in tmp_path.iterdir()}:
            os.utime(tmp_path / name, (0, number if name != "5" else 2**31))

    taken = sum(path.stat().st_blocks * 512 for path in tmp_path.iterdir())
    assert MIB < taken <= 2 * MIB + MIB // 8
    assert read(kept_in, "59") == read(kept_in, "5") == data
    assert read(kept_in, "0") is None
    assert kept_in.size().bytes <= 2 * MIB + MIB // 8


def test_tiny_files_do_not_become_too_many(tmp_path: Path) -> None:
    kept_in = cache(tmp_path, 2 * MIB)
    for number in range(200):
        kept_in.keep(str(number), 10, 0, b"0123456789")

    assert len(list(tmp_path.iterdir())) <= 2 * 34


def test_what_would_push_all_others_out_is_not_kept(tmp_path: Path) -> None:
    kept_in = cache(tmp_path, MIB)
    kept_in.keep("a", len(DATA), 0, DATA)

    assert not list(tmp_path.iterdir())


def test_a_file_that_is_read_was_used(tmp_path: Path) -> None:
    kept_in = cache(tmp_path)
    kept_in.keep("a", len(DATA), 0, DATA)
    os.utime(tmp_path / "a.sums", (0, 0))

    read(kept_in, "a")

    assert (tmp_path / "a.sums").stat().st_mtime > 0


_BUSY = """
import random, sys
from pathlib import Path
from trickle.tables.storage.disk_cache import BLOCK, DiskCache
kept_in, found = DiskCache(8 * 1024**2, Path(sys.argv[1])), 0
draw = random.Random(int(sys.argv[2]))
for _ in range(400):
    number = draw.randrange(30)
    data = random.Random(number).randbytes(BLOCK + 1000 * number + 1)
    with kept_in.opened(str(number), len(data)) as kept:
        there = kept.read(0, len(data))
        assert there in (None, data), number
        found += there is not None
        kept_in.keep(str(number), len(data), 0, data)
        there = kept.read(0, len(data))
        assert there in (None, data), number
print(found)
"""


def test_processes_share_a_folder_and_read_what_is_right(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _BUSY, str(tmp_path)]
    busy = [
        subprocess.Popen([*command, str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for seed in range(3)
    ]
    done = [process.communicate() for process in busy]

    assert [error for _, error in done if error] == []
    assert all(int(found) > 0 for found, _ in done)
    taken = sum(path.stat().st_blocks * 512 for path in tmp_path.iterdir())
    assert taken <= 8 * MIB + 3 * MIB


def test_a_disk_that_takes_no_more_is_done_without(tmp_path: Path) -> None:
    script = """
import resource, sys
from pathlib import Path
from trickle.tables.storage.disk_cache import DiskCache
kept_in = DiskCache(100 * 1024**2, Path(sys.argv[1]))
kept_in.keep("small", 100, 0, bytes(100))
resource.setrlimit(resource.RLIMIT_FSIZE, (2**18, 2**18))
for _ in range(3):
    kept_in.keep("big", 2**20, 0, bytes(2**20))
with kept_in.opened("big") as big, kept_in.opened("small") as small:
    assert big is None and small.read(0, 100) == bytes(100)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("are not kept") == 1


def test_a_folder_that_cannot_be_made_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    kept_in = cache(tmp_path / "file" / "cache")

    with caplog.at_level(logging.WARNING, "trickle"):
        for _ in range(3):
            kept_in.keep("a", len(DATA), 0, DATA)
            assert read(kept_in, "a") is None

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert not kept_in.has_room(1)


def test_the_folder_may_be_deleted_at_any_time(tmp_path: Path) -> None:
    kept_in = cache(tmp_path / "files")
    kept_in.keep("a", len(DATA), 0, DATA)
    with kept_in.opened("a") as kept:
        shutil.rmtree(tmp_path / "files")
        assert kept is not None
        assert kept.read(0, len(DATA)) == DATA
    assert read(kept_in, "a") is None

    kept_in.keep("a", len(DATA), 0, DATA)

    assert read(kept_in, "a") == DATA


def test_nobody_else_sees_into_the_folder(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o755)
    for folder in (tmp_path / "new", open_to_all):
        cache(folder).keep("a", len(DATA), 0, DATA)

        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_nothing_is_kept_or_read_where_nothing_may_be(tmp_path: Path) -> None:
    cache(tmp_path / "kept").keep("a", len(DATA), 0, DATA)
    cache(tmp_path / "none", 0).keep("a", len(DATA), 0, DATA)

    assert not (tmp_path / "none").exists()
    assert read(cache(tmp_path / "kept", 0), "a") is None


def test_the_folder_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRICKLE_CACHE", "/fast/disk")
    assert cache_folder() == Path("/fast/disk")
    assert DiskCache(MIB).has_room(1)
    monkeypatch.delenv("TRICKLE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/spark-trickle/files")
    assert DiskCache(MIB).has_room(1)
    monkeypatch.setenv("TRICKLE_CACHE", "")
    assert not DiskCache(MIB).has_room(1)


def test_its_size_is_told(tmp_path: Path) -> None:
    kept_in = cache(tmp_path)
    kept_in.name = "files of a test"
    kept_in.keep("a", len(DATA), 0, DATA)

    sizes = cache_sizes()["files of a test"]

    assert (sizes.entries, sizes.max_bytes) == (1, 100 * MIB)
    assert sizes.bytes >= len(DATA)


def test_damage_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept_in = cache(tmp_path)
    kept_in.keep("a", len(DATA), 0, DATA)
    _flip(tmp_path / "a", 5)

    with caplog.at_level(logging.INFO, "trickle"):
        for _ in range(3):
            assert read(kept_in, "a") is None

    assert [record.levelname for record in caplog.records] == ["INFO"]
