"""One leader among several processes."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass

import pytest

from trickle.schedule.lease import Lease
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
