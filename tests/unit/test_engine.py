"""The engine without Spark: what is kept of a table, when it is compiled anew, which refreshes are tried again."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from trickle.engine import engine as engine_module
from trickle.engine import open_tables
from trickle.engine.cancel import Cancellation
from trickle.engine.engine import Engine
from trickle.engine.events import Events
from trickle.engine.open_tables import OpenTables
from trickle.engine.retry import Retries
from trickle.engine.suspend import Suspensions
from trickle.errors import CancelledError, ConflictError, SourceError, StorageError, UnknownTableError
from trickle.model.definition import Definition
from trickle.model.options import Options
from trickle.refresh.deadline import Deadline
from trickle.refresh.request import Request
from trickle.refresh.run import Outcome
from trickle.refresh.write import StateTooBigError
from trickle.tables.contract import ColumnFact
from trickle.tables.format_contract import Marks

DEFINITION = Definition(query="SELECT 1", catalog="spark_catalog", schema_name="shop", spark="4.1")


class Place:
    """A catalog of one stream table, and what compiles it."""

    def __init__(self) -> None:
        self.spark = None
        self.text = DEFINITION.model_dump_json()
        self.where: str | None = "/totals"
        self.is_copy = False
        self.views = {("shop", "v"): "SELECT 2"}
        self.columns = {"id": ColumnFact("id", "long", nullable=True, identity="id")}
        self.compiled: list[tuple[str, ...]] = []
        self.forgotten: list[str] = []

    # -- as a catalog and its format

    @property
    def results(self) -> Any:
        state = SimpleNamespace(forget=self.forgotten.append)
        target = SimpleNamespace(name="totals", path=self.where, state=lambda: SimpleNamespace(record=None))
        stored = SimpleNamespace(head=lambda: 0, columns=lambda _: {"total": None})
        return SimpleNamespace(
            marks=lambda _: Marks(self.text, self.is_copy),
            target=lambda *_: target,
            source=lambda *_: stored,
            state_tables=lambda *_: state,
        )

    def marks(self, place: str) -> Any:
        return self.results.marks(place)

    def location(self, _: str) -> str | None:
        return self.where

    def is_there(self, _: str) -> bool:
        return self.where is not None

    def definitions(self) -> list[tuple[str, str, Any]]:
        return [("shop.totals", "here", Marks(self.text, is_copy=False)), ("shop.broken", "", OSError("no log"))]

    def qualify(self, parts: tuple[str, ...]) -> str:
        return ".".join(parts)

    # -- as the workspaces

    @property
    def own(self) -> Any:
        return self

    def of(self, _: object) -> Any:
        return self

    def active(self) -> Any:
        return nullcontext()

    @property
    def jvm(self) -> None:
        return None

    @property
    def catalog(self) -> Any:
        return self

    @property
    def compiler(self) -> Any:
        return self

    # -- as a compiler

    def read(self, *_: str) -> Any:
        return SimpleNamespace(definition=DEFINITION, session=None, plan=None, views=dict(self.views))

    def has_same_views(self, analysed: Any) -> bool:
        return bool(analysed.views == self.views)

    def prepare(self, _: object, without: Any = ()) -> Any:
        self.compiled.append(tuple(without))
        source = SimpleNamespace(path="", head=lambda: 1, columns=lambda _: self.columns)
        return SimpleNamespace(
            sources={"orders": source},
            used={"orders": ("id",)},
            names=("total",),
            without=tuple(without),
            is_time_dependent=False,
        )


@pytest.fixture
def place(monkeypatch) -> Place:
    monkeypatch.setattr(open_tables, "sync", lambda _: None)
    return Place()


def tables_of(place: Any) -> OpenTables:
    return OpenTables(place)


class Refusing(Place):
    """A catalog whose tables give a reason, or none, when they are listed."""

    def __init__(self, why: dict[str, str]) -> None:
        super().__init__()
        self.why = why

    def definitions(self) -> list[tuple[str, str, Any]]:
        marks = Marks(self.text, is_copy=False)
        return [(name, name, OSError(why) if why else marks) for name, why in self.why.items()]


def test_a_storage_that_refuses_is_told_once_until_that_changes(monkeypatch, caplog):
    monkeypatch.setattr(open_tables, "sync", lambda _: None)
    place = Refusing({"shop.a": "s3a://shop refuses (403)", "shop.b": "", "shop.c": "s3a://shop refuses (403)"})
    tables = OpenTables(place)  # type: ignore[arg-type]

    def told() -> list[str]:
        caplog.clear()
        listed = [name for name, _ in tables.list_all()]
        assert listed == [name for name, why in place.why.items() if not why]
        return [record.getMessage() for record in caplog.records]

    assert told() == ["'shop.a' and 1 more are not listed: s3a://shop refuses (403)"]
    assert told() == told() == []
    place.why["shop.c"] = "s3a://shop does not answer"
    assert told() == ["'shop.c' is not listed: s3a://shop does not answer"]
    place.why["shop.a"] = ""
    assert told() == []
    place.why["shop.a"] = "s3a://shop refuses (403)"
    assert told() == ["'shop.a' is not listed: s3a://shop refuses (403)"]
    place.why.pop("shop.c")
    assert told() == []


def test_a_table_is_compiled_once(place):
    tables = tables_of(place)

    assert tables.get("shop.totals") is tables.get("shop.totals")
    assert len(place.compiled) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"text": DEFINITION.model_copy(update={"mode": "full"}).model_dump_json()},
        {"where": "/elsewhere"},
        {"views": {("shop", "v"): "SELECT 3"}},
        {"columns": {"id": ColumnFact("id", "integer", nullable=True, identity="id")}},
    ],
)
def test_a_table_that_is_not_what_it_was_is_compiled_anew(place, changed):
    tables = tables_of(place)
    before = tables.get("shop.totals")
    vars(place).update(changed)

    assert tables.get("shop.totals") is not before


def test_what_is_no_stream_table_is_named_with_those_that_are(place):
    tables = tables_of(place)
    place.where = None

    with pytest.raises(UnknownTableError, match=r"does not exist") as unknown:
        tables.get("shop.nothing")

    assert "shop.totals" in unknown.value.hint


def test_a_copy_is_found_only_by_who_asks_for_copies(place):
    place.is_copy = True
    tables = tables_of(place)

    with pytest.raises(UnknownTableError, match="COPY_OF_STREAM_TABLE"):
        tables.find("shop.totals")
    assert tables.find("shop.totals", copies=True).is_copy


def test_a_table_that_was_compiled_anew_meanwhile_is_not_replaced_by_an_older_one(place):
    tables = tables_of(place)
    older = tables.get("shop.totals")
    place.where = "/elsewhere"
    newer = tables.get("shop.totals")

    tables.keep(older, instead_of=older)

    assert tables.get("shop.totals") is newer


def engine_of(place: Any, monkeypatch: Any, outcomes: list[Any], **options: Any) -> tuple[Any, list[Request]]:
    """An engine whose refreshes end as they are told to."""
    requests: list[Request] = []

    class Told:
        def __init__(self, _: object, tables: Any, request: Request) -> None:
            requests.append(request)
            self.without = tables.prepared.without

        def run(self) -> Outcome:
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            report: Any = SimpleNamespace(name=outcome, without=self.without)
            return Outcome(report, f"costs of {outcome}")

    monkeypatch.setattr(engine_module, "Refresh", Told)
    engine: Any = Engine.__new__(Engine)
    engine.jvm, engine.options, engine.catalog, engine.workspaces = None, Options(**options), place, place
    engine.tables = tables_of(place)
    engine.events = Events()
    engine.upstream = SimpleNamespace(warnings=lambda _: ())
    engine.fallbacks = SimpleNamespace(warnings=lambda _: ())
    engine.cancellation = Cancellation(None)
    engine.suspensions = Suspensions(place, engine.events)
    return engine, requests


def lost() -> ConflictError:
    return ConflictError("CONCURRENT_REFRESH", "another one came first.")


def test_a_refresh_that_lost_starts_anew(place, monkeypatch):
    engine, requests = engine_of(place, monkeypatch, [lost(), lost(), "third"], attempts=3)

    assert engine.refresh("shop.totals", Request(full=True)).name == "third"
    assert [request.full for request in requests] == [True] * 3


def test_a_refresh_that_lost_too_often_fails(place, monkeypatch):
    engine, requests = engine_of(place, monkeypatch, [lost(), lost(), "third"], attempts=2)

    with pytest.raises(ConflictError):
        engine.refresh("shop.totals", Request())
    assert len(requests) == 2


def test_a_refresh_of_a_run_that_keeps_losing_goes_to_the_newest_versions(place, monkeypatch):
    engine, requests = engine_of(place, monkeypatch, [lost(), lost(), "third"], attempts=3)

    engine.refresh("shop.totals", Request(pinned={"orders": 1}))

    assert [request.pinned for request in requests] == [{"orders": 1}, {"orders": 1}, None]


def test_storage_that_does_not_answer_is_asked_again(place, monkeypatch, caplog):
    down, late = StorageError("STORAGE_FAILED", "it did not answer."), TimeoutError("timed out")
    engine, requests = engine_of(place, monkeypatch, [down, late, "third"], attempts=3)

    assert engine.refresh("shop.totals", Request()).name == "third"
    assert len(requests) == 3
    assert "tried again" in caplog.text


@pytest.mark.parametrize(
    "error", [SourceError("SOURCE_MISSING", "gone."), StorageError("STORAGE_REFUSED", "no."), FileNotFoundError("gone")]
)
def test_what_would_fail_alike_is_not_tried_again(place, monkeypatch, error):
    engine, requests = engine_of(place, monkeypatch, [error, "second"])

    with pytest.raises(type(error)):
        engine.refresh("shop.totals", Request())
    assert len(requests) == 1


def test_a_refresh_without_time_does_not_wait_for_another_attempt():
    retries = Retries("totals", 3, Deadline("totals", 0.1))

    with pytest.raises(CancelledError, match="TIMED_OUT"):
        retries.wait(StorageError("STORAGE_FAILED", "it did not answer."))


def test_a_state_table_that_is_too_big_is_left_out_from_then_on(place, monkeypatch):
    engine, _ = engine_of(place, monkeypatch, [StateTooBigError("@1"), lost(), "second", "third"])

    assert engine.refresh("shop.totals", Request()).without == ("@1",)
    assert engine.refresh("shop.totals", Request()).without == ("@1",)
    assert place.forgotten == ["@1"]
    assert place.compiled == [(), ("@1",)]


def test_what_a_refresh_took_is_known_to_the_next(place, monkeypatch):
    engine, requests = engine_of(place, monkeypatch, ["first", "second"])
    for _ in range(2):
        engine.refresh("shop.totals", Request())

    assert [request.costs for request in requests] == [None, "costs of first"]
