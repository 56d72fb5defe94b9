"""One leader among several processes."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from trickle.errors import DefinitionError
from trickle.schedule.lease import Lease, open_lease
from trickle.tables.storage.credentials import s3_settings
from trickle.tables.storage.object_store import ObjectStorage
from trickle.tables.storage.schemes import Folder, folder_at
from trickle.tables.storage.settings import GivenSettings
from trickle.testing.s3 import s3_server


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope="module")
def bucket():
    with s3_server() as server:
        server.make_bucket("leases")
        given = {key.removeprefix("spark.hadoop."): text for key, text in server.settings.items()}
        yield ObjectStorage("s3", "s3a://leases", s3_settings("leases", "s3a://leases", GivenSettings(given)))


@pytest.fixture(params=["local", "s3"])
def lease(request, tmp_path, clock, bucket):
    folder = folder_at(str(tmp_path)) if request.param == "local" else Folder(bucket, f"s3a://leases/{uuid.uuid4()}")
    return lambda: Lease(folder, seconds=9, clock=clock)


def test_the_first_takes_it_and_others_wait(lease):
    one, two = lease(), lease()

    assert one.take()
    assert not two.take()
    assert one.is_held
    assert not two.is_held
    assert two.holder() == one.me


def test_one_who_renews_keeps_it_for_ever(lease, clock):
    one, two = lease(), lease()
    one.take()

    for _ in range(100):
        clock.now += 3
        assert one.take()
        assert not two.take()


def test_a_dead_holder_is_followed_after_a_term(lease, clock):
    one, two = lease(), lease()
    one.take()
    two.take()

    clock.now += 8.9
    assert not two.take()
    clock.now += 0.2

    assert two.take()
    assert not one.is_held
    assert not one.take()


def test_a_holder_stops_before_others_may_take_over(lease, clock):
    one = lease()
    one.take()

    clock.now += 6.1

    assert not one.is_held


def test_a_holder_that_slept_too_long_does_not_renew_what_another_has(lease, clock):
    one, two = lease(), lease()
    one.take()
    two.take()
    clock.now += 10
    two.take()

    assert not one.take()
    assert two.take()


def test_a_released_lease_is_taken_at_once(lease):
    one, two = lease(), lease()
    one.take()

    one.release()

    assert two.take()
    assert not one.take()


def test_old_terms_are_swept(lease, clock, tmp_path):
    one = lease()
    for _ in range(50):
        one.take()
        clock.now += 1

    assert len(list(tmp_path.iterdir())) <= 4


def test_of_eight_that_race_one_wins(tmp_path):
    folder = folder_at(str(tmp_path))
    leases = [Lease(folder, seconds=60) for _ in range(8)]
    taken: list[Lease] = []
    start = threading.Barrier(len(leases))

    def race(one: Lease) -> None:
        start.wait()
        if one.take():
            taken.append(one)

    threads = [threading.Thread(target=race, args=(one,)) for one in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(taken) == 1
    assert taken[0].is_held


def session(**settings: str) -> Any:
    known = {key.replace("_", "."): value for key, value in settings.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=known.get))


def test_a_lease_lies_where_it_is_asked_for_else_in_the_warehouse(tmp_path, caplog):
    asked = open_lease(session(), f"{tmp_path}/leases/shop")
    own = open_lease(session(spark_trickle_warehouse=str(tmp_path), spark_sql_catalogImplementation="hive"))

    assert asked is not None
    assert own is not None
    assert (asked.folder.address, own.folder.address) == (f"{tmp_path}/leases/shop", f"{tmp_path}/_trickle_lease")
    assert asked.take()
    assert not caplog.text


@pytest.mark.parametrize("place", ["leases", "ofs://host/leases", ""])
def test_a_lease_on_no_known_storage_is_refused(place):
    with pytest.raises(DefinitionError, match="BAD_OPTION"):
        open_lease(session(), place)


def test_it_is_told_if_a_lease_is_not_surely_shared(tmp_path, caplog):
    settings = {
        "spark_sql_warehouse_dir": f"file:{tmp_path}/spark-warehouse",
        "spark_sql_catalogImplementation": "hive",
    }

    assert open_lease(session(**settings)) is not None
    assert "give run() a lease" in caplog.text


@pytest.mark.parametrize("place", ["ofs://host/tables", "/sys/tables"])
def test_a_warehouse_that_takes_no_lease_keeps_nobody_from_leading(place, caplog):
    assert open_lease(session(spark_sql_warehouse_dir=place)) is None
    assert "nobody is kept from leading" in caplog.text
