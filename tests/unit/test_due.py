"""What is due, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from trickle.model.graph import Graph
from trickle.model.schedule import Cron, Downstream, Every, OnCommit
from trickle.schedule.due import Scheduled, due_at, find_due, next_moment, tightest

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
AGO = {seconds: NOW - timedelta(seconds=seconds) for seconds in (5, 20, 40, 86_400 * 30)}


def test_a_table_is_due_when_its_time_is_over():
    assert due_at(Scheduled(Every(30), last=AGO[20]), NOW) == NOW + timedelta(seconds=10)
    assert find_due({"a": Scheduled(Every(30), last=AGO[40])}, Graph({"a": ()}), NOW) == {"a"}
    assert find_due({"a": Scheduled(Every(30), last=AGO[20])}, Graph({"a": ()}), NOW) == set()


def test_by_hand_and_suspended_tables_are_never_due():
    tables = {"a": Scheduled(None), "b": Scheduled(Every(1), last=AGO[40], is_suspended=True)}

    assert find_due(tables, Graph({"a": (), "b": ()}), NOW) == set()
    assert next_moment(tables, NOW) is None


def test_on_commit_waits_for_a_commit_and_not_longer_than_it_must():
    assert due_at(Scheduled(OnCommit(), last=AGO[5]), NOW) is None
    assert due_at(Scheduled(OnCommit(), last=AGO[5], is_behind=True), NOW) == NOW
    assert due_at(Scheduled(OnCommit(10), last=AGO[5], is_behind=True), NOW) == NOW + timedelta(seconds=5)
    assert due_at(Scheduled(OnCommit(10), last=AGO[20], is_behind=True), NOW) == NOW


def test_a_failed_refresh_is_tried_again_no_sooner_than_said():
    later = NOW + timedelta(seconds=7)

    assert due_at(Scheduled(Every(30), last=AGO[40], not_before=later), NOW) == later


def test_what_a_due_table_reads_is_refreshed_with_it_if_it_follows_its_readers():
    graph = Graph({"base": ("t",), "own": ("t",), "top": ("base", "own"), "idle": ("base",)})
    tables = {
        "base": Scheduled(Downstream(), last=AGO[5]),
        "own": Scheduled(Every(3600), last=AGO[5]),
        "top": Scheduled(Every(30), last=AGO[40]),
        "idle": Scheduled(Every(3600), last=AGO[5]),
    }

    assert find_due(tables, graph, NOW) == {"top", "base"}


def test_downstream_of_downstream_is_followed():
    graph = Graph({"a": ("t",), "b": ("a",), "c": ("b",)})
    tables = {
        "a": Scheduled(Downstream()),
        "b": Scheduled(Downstream()),
        "c": Scheduled(Cron("0 * * * *"), last=AGO[86_400 * 30]),
    }

    assert find_due(tables, graph, NOW) == {"a", "b", "c"}
    assert tightest("a", tables, graph) == Cron("0 * * * *")


def test_the_tightest_reader_counts():
    graph = Graph({"a": ("t",), "b": ("a",), "c": ("a",), "d": ("a",)})
    tables = {
        "a": Scheduled(Downstream()),
        "b": Scheduled(Every(60)),
        "c": Scheduled(OnCommit(5)),
        "d": Scheduled(None),
    }

    assert tightest("a", tables, graph) == OnCommit(5)
    assert tightest("d", tables, graph) is None


def test_the_next_moment_is_the_first():
    tables = {"a": Scheduled(Every(30), last=AGO[20]), "b": Scheduled(Every(60), last=AGO[20])}

    assert next_moment(tables, NOW) == NOW + timedelta(seconds=10)
