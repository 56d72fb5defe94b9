"""Logs as they should not be: every one of them is named, none is passed over."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from trickle.errors import SourceError
from trickle.model.definition import RefreshRecord, SourceVersion
from trickle.refresh.look import why_restored
from trickle.tables.delta.actions import parse_commit
from trickle.tables.delta.driver.lines import commit_lines
from trickle.tables.delta.files import FileList
from trickle.tables.delta.log import DeltaLogFiles
from trickle.tables.delta.table_log import open_delta_log

METADATA = {"metaData": {"id": "one", "schemaString": '{"type":"struct","fields":[]}', "configuration": {}}}
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


class Handle:
    """As much of Delta as a local log needs: none."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1


def add(path: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "size": 1, "partitionValues": {}, "dataChange": True, **more}}


def lines(*actions: Any) -> str:
    return "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions)


def table(folder: Path, *texts: str | bytes) -> DeltaLogFiles:
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    for version, text in enumerate((lines(PROTOCOL, METADATA, add("a")), *texts)):
        (log / f"{version:020d}.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    return DeltaLogFiles(Handle(str(folder)), name="orders")


def write(folder: Path, version: int, text: str) -> None:
    (folder / "_delta_log" / f"{version:020d}.json").write_text(text, encoding="utf-8")


TEXTS = st.text(st.characters() | st.sampled_from("\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r\n\ufeff\0"))


@given(texts=st.lists(TEXTS.filter(lambda text: not any("\ud800" <= sign <= "\udfff" for sign in text)), max_size=4))
def test_any_text_in_statistics_comes_through(texts: list[str]) -> None:
    stats = json.dumps({"numRecords": 2, "minValues": {"s": texts}}, ensure_ascii=False)
    actions = [add(f"f{place}-{text}", stats=stats) for place, text in enumerate(texts)]
    ours = commit_lines(actions, mode="Append", number=3, record="\u2028".join(texts), read=0, metrics={})

    raw = "\r\n".join(json.dumps(json.loads(line), ensure_ascii=False) for line in ours.split("\n") if line)

    for text in (ours, raw):
        commit = parse_commit(1, text)
        assert [file.path for file in commit.adds] == [action["add"]["path"] for action in actions]
        assert all(file.body["stats"] == stats and file.records == 2 for file in commit.adds)
        assert commit.info["userMetadata"] == "\u2028".join(texts)
        assert commit.transactions == {"trickle": 3}


GOOD = lines(add("b"), {"commitInfo": {"operation": "WRITE"}})
MALFORMED: dict[str, str | bytes] = {
    "empty": "",
    "blank": " \n\n",
    "cut within a line": GOOD[:-20],
    "cut within a sign": lines(add("b", stats='{"minValues":{"s":"é"}}')).encode().partition(b"\xc3")[0] + b"\xc3",
    "not UTF-8": b"\xff\xfe" + GOOD.encode(),
    "not JSON": "garbage\n",
    "zeros": b"\0" * 100,
    "a list": "[]\n",
    "a list of actions": json.dumps([add("b")]) + "\n",
    "a number": "1\n",
    "null": "null\n",
    "no action": "{}\n",
    "two actions in a line": json.dumps({**add("b"), "remove": {"path": "a"}}) + "\n",
    "two actions of a kind in a line": f'{{"add":{json.dumps(add("b")["add"])},"add":{json.dumps(add("c")["add"])}}}\n',
    "two of a kind, spelt differently": f'{{"add":{json.dumps(add("b")["add"])},"\\u0061dd":{json.dumps(add("c")["add"])}}}\n',
    "two of a kind, one of them null": f'{{"remove":{{"path":"a"}},"remove":null,"add":{json.dumps(add("c")["add"])}}}\n',
    "two lines in one": GOOD.replace("\n", "") + "\n",
    "an action that is a text": '{"add":"b"}\n',
    "a file without a path": '{"add":{"size":1}}\n',
    "a path that is a number": '{"remove":{"path":1}}\n',
    "a size that is a word": lines(add("b", size="big")),
    "a deletion vector without its place": lines(add("b", deletionVector={"storageType": "u"})),
    "a deletion vector without anything": lines(add("b", deletionVector={})),
    "partition values without columns": lines(add("b", partitionValues=["2024"])),
    "partition columns that are no names": lines(
        {"metaData": {"id": "one", "schemaString": '{"fields":[]}', "partitionColumns": [1]}}
    ),
    "metadata without a schema": '{"metaData":{"id":"one"}}\n',
    "metadata without an id": '{"metaData":{"schemaString":"{\\"fields\\":[]}"}}\n',
    "a schema that is not JSON": '{"metaData":{"id":"one","schemaString":"{"}}\n',
    "a protocol without versions": '{"protocol":{}}\n',
    "a transaction without a number": '{"txn":{"appId":"x"}}\n',
    "nested too deep": '{"add":' * 100_000 + "\n",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_commit_is_named_with_table_version_and_file(tmp_path: Path, text: str | bytes) -> None:
    log = table(tmp_path, GOOD, text)
    reads = (log.commit, log.digest, log.metadata, log.protocol, lambda head: log.commits(0, head), FileList(log).at)

    for read in reads:
        with pytest.raises(SourceError) as error:
            read(log.head())
        assert error.value.code == "UNREADABLE_LOG"
        assert all(word in error.value.message for word in ("'orders'", str(tmp_path), "Version 2", f"{2:020d}.json"))


def test_an_action_that_does_not_deny_it_changes_data() -> None:
    said = {
        flag: parse_commit(1, f'{{"add":{{"path":"b","dataChange":{flag}}}}}') for flag in ("null", "true", "false")
    }

    assert [flag for flag, commit in said.items() if commit.changes_data] == ["null", "true"]


def test_names_of_actions_within_an_action_are_no_second_one() -> None:
    named = {"add": "remove", "metaData": '"add":'}

    assert parse_commit(1, lines(add('"add"', partitionValues=named))).adds[0].body["partitionValues"] == named


def test_a_commit_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    log = table(tmp_path)
    (tmp_path / "_delta_log" / f"{1:020d}.json").mkdir()

    with pytest.raises(SourceError) as error:
        log.commits(-1, log.head())

    assert error.value.code == "UNREADABLE_LOG"


def test_what_does_not_bear_on_rows_is_no_obstacle(tmp_path: Path) -> None:
    nulls = json.dumps({"txn": None, **add("b"), "remove": None})
    odd = lines(add("c", stats="{"), add("d", stats="[]"), add("e", stats='{"numRecords":"many"}'), {"sidecar": {}})
    log = table(tmp_path, f"{nulls}\r\n\r\n", odd)
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text("garbage")
    (tmp_path / "_delta_log" / f"{2:020d}.crc").write_text("[]")

    files = FileList(log).at(log.head())

    assert files is not None
    assert {file.path: file.records for file in files} == dict.fromkeys("abcde")
    assert all(isinstance(json.loads(file.body.get("stats", "{}")), dict) for file in files)


MAY_HAVE_METADATA = {
    name: text
    for name, text in MALFORMED.items()
    if isinstance(text, bytes) or "metaData" in text or not (text.startswith("{") and text.endswith("}\n"))
}


@pytest.mark.parametrize("text", MAY_HAVE_METADATA.values(), ids=MAY_HAVE_METADATA)
def test_without_spark_a_commit_in_the_middle_that_may_have_the_metadata_is_named(
    tmp_path: Path, text: str | bytes
) -> None:
    table(tmp_path, text, GOOD, GOOD)
    log = open_delta_log(str(tmp_path))

    for read in (log.properties, log.identity):
        with pytest.raises(SourceError) as error:
            read()
        assert error.value.code == "UNREADABLE_LOG"
        assert all(word in error.value.message for word in (str(tmp_path), "Version 1", f"{1:020d}.json"))


CHECKPOINTS: dict[str, tuple[str, bytes]] = {
    "cut": (".parquet", b"PAR1garbled"),
    "empty": (".parquet", b""),
    "cut JSON": (".some.json", b'{"metaData":{'),
    "a list": (".some.json", b"[1]\n"),
    "a list as an action": (".some.json", b'{"add":[1],"metaData":[1],"protocol":[1],"sidecar":[1]}\n'),
    "not UTF-8": (".some.json", b"\xff\xfe\n"),
    "metadata without an id": (
        ".some.json",
        lines(PROTOCOL, {"metaData": {"schemaString": '{"fields":[]}'}}).encode(),
    ),
}


@pytest.mark.parametrize(("ending", "data"), CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_without_spark_a_checkpoint_that_cannot_be_read_is_named(tmp_path: Path, ending: str, data: bytes) -> None:
    table(tmp_path, GOOD, GOOD, GOOD)
    (tmp_path / "_delta_log" / f"{2:020d}.checkpoint{ending}").write_bytes(data)
    log = open_delta_log(str(tmp_path))

    with pytest.raises(SourceError) as error:
        log.properties()

    assert error.value.code == "UNREADABLE_LOG"
    assert all(word in error.value.message for word in (str(tmp_path), "Version 2", f"{2:020d}.checkpoint{ending}"))


def test_without_spark_a_gap_behind_a_checkpoint_is_named(tmp_path: Path) -> None:
    table(tmp_path, GOOD, GOOD, GOOD)
    kept = lines(PROTOCOL, METADATA).encode()
    (tmp_path / "_delta_log" / f"{1:020d}.checkpoint.some.json").write_bytes(kept)
    assert open_delta_log(str(tmp_path)).identity() == "one"
    (tmp_path / "_delta_log" / f"{2:020d}.json").unlink()

    with pytest.raises(SourceError) as error:
        open_delta_log(str(tmp_path)).identity()

    assert error.value.code == "UNREADABLE_LOG"


@pytest.mark.parametrize("name", [name for name in CHECKPOINTS if name != "metadata without an id"])
def test_a_checkpoint_that_cannot_be_read_leaves_the_files_to_delta(tmp_path: Path, name: str) -> None:
    log = table(tmp_path, GOOD, GOOD, GOOD)
    ending, data = CHECKPOINTS[name]
    (tmp_path / "_delta_log" / f"{2:020d}.checkpoint{ending}").write_bytes(data)
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()

    assert FileList(log).at(log.head()) is None


def test_without_spark_odd_metrics_and_checksums_are_no_obstacle(tmp_path: Path) -> None:
    table(tmp_path, lines({"commitInfo": {"operationMetrics": [1], "timestamp": [1]}}, add("b")))
    (tmp_path / "_delta_log" / f"{1:020d}.crc").write_text('{"metadata":{"schemaString":"{}"}}')
    log = open_delta_log(str(tmp_path))

    facts = log.commit(log.head())

    assert facts is not None
    assert (facts.rows_inserted, facts.time, log.identity()) == (None, None, "one")


def test_a_gap_is_not_taken_for_the_end(tmp_path: Path) -> None:
    log = table(tmp_path, GOOD)
    assert log.head() == 1
    write(tmp_path, 3, GOOD)

    assert log.head() == 3
    with pytest.raises(SourceError) as error:
        log.commits(1, 3)
    assert error.value.code == "HISTORY_EXPIRED"


def test_a_commit_put_in_the_place_of_another_is_noticed(tmp_path: Path) -> None:
    whole = lines(add("b"), add("c"))
    log = table(tmp_path, lines(add("b")))
    cut, generation = log.digest(log.head()), log.generation
    write(tmp_path, 1, whole)
    write(tmp_path, 2, GOOD)

    assert log.head() == 2
    assert log.generation > generation
    assert log.digest(1) not in (None, cut)
    assert log.digest(1) == parse_commit(1, whole.replace("\n", "\r\n")).digest
    assert log.digest(7) is None
    write(tmp_path, 1, GOOD)
    assert log.digest(1) == parse_commit(1, GOOD).digest


@pytest.mark.parametrize(
    ("protocol", "named"),
    [
        ({"minReaderVersion": 4, "minWriterVersion": 7}, "reader version 4"),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["sparkles", "timestampNtz"]}, "sparkles"),
    ],
)
def test_a_newer_protocol_is_refused(tmp_path: Path, protocol: dict[str, Any], named: str) -> None:
    log = table(tmp_path, lines({"protocol": protocol}), GOOD)

    assert log.metadata(0)["id"] == "one"
    for read in (log.metadata, log.protocol):
        with pytest.raises(SourceError) as error:
            read(log.head())
        assert error.value.code == "UNSUPPORTED_PROTOCOL"
        assert named in error.value.message


def test_what_only_delta_can_read_is_not_refused(tmp_path: Path) -> None:
    features = ["typeWidening", "variantType", "deletionVectors", "catalogManaged"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}

    log = table(tmp_path, lines({"protocol": protocol}))

    assert log.protocol(log.head())["readerFeatures"] == features


def test_old_records_are_read_and_agree_with_any_digest() -> None:
    old = {"refresh_id": "1", "mode": "full", "frontier": {"s": {"version": 1, "identity": "one"}}, "fingerprint": ""}
    frontier = RefreshRecord.model_validate_json(json.dumps({**old, "started": ""})).frontier

    assert frontier["s"].is_same(SourceVersion(version=1, identity="one", digest="d"))
    assert not SourceVersion(version=1, identity="one", digest="e").is_same(
        SourceVersion(version=1, identity="one", digest="d")
    )


class Store(Handle):
    """A log that is not local: Delta's log store reads it."""

    def __init__(self, *texts: str) -> None:
        super().__init__("hdfs://host/orders")
        self.texts = list(texts)

    def head(self) -> tuple[int, str]:
        return len(self.texts) - 1, "one"

    def read_commits(self, start: int, end: int) -> list[tuple[int, str]]:
        return [(version, text) for version, text in enumerate(self.texts) if start <= version <= end]


def test_on_other_storage_a_table_put_back_is_noticed_with_its_next_commit() -> None:
    store = Store(lines(PROTOCOL, METADATA, add("a")), lines(add("b")))
    log = DeltaLogFiles(store)
    seen = log.digest(log.head())
    store.texts[1:] = [lines(add("c")), lines(add("d"))]

    assert log.head() == 2
    assert log.digest(1) not in (None, seen)
    assert [commit.adds[0].path for commit in log.commits(0, 2)] == ["c", "d"]
    assert store.forgotten == 1


def test_on_other_storage_malformed_commits_and_refusals_of_delta_are_named() -> None:
    store = Store(lines(PROTOCOL, METADATA), GOOD[:-20])
    log = DeltaLogFiles(store, name="orders")

    with pytest.raises(SourceError) as malformed:
        log.commits(0, log.head())
    with pytest.raises(SourceError) as refused, log.errors_named():
        raise PySparkException("[DELTA_VERSIONS_NOT_CONTIGUOUS] Versions (0, 2) are not contiguous.")
    with pytest.raises(SourceError) as unknown, log.errors_named():
        raise PySparkException("[DELTA_UNSUPPORTED_FEATURES_FOR_READ] Unsupported Delta read feature: sparkles")

    assert (malformed.value.code, refused.value.code) == ("UNREADABLE_LOG", "UNREADABLE_LOG")
    assert all("'orders' at hdfs://host/orders" in error.value.message for error in (malformed, refused, unknown))
    assert unknown.value.code == "UNSUPPORTED_PROTOCOL"


@pytest.mark.parametrize(
    ("old", "new", "now", "code"),
    [
        ((5, "a"), (7, "c"), {5: "a"}, None),
        ((5, "a"), (7, "c"), {5: "b"}, "SOURCE_RESTORED"),
        ((5, "a"), (5, "b"), {5: "b"}, "SOURCE_RESTORED"),
        ((5, "a"), (7, "c"), {}, "HISTORY_EXPIRED"),
        ((5, "a.b.c"), (7, "x"), {5: "a.b.c"}, None),
        ((5, "a.b.c"), (7, "x"), {5: "a"}, None),
        ((5, "a"), (7, "x"), {5: "a.b"}, None),
        ((5, "a.b.c"), (7, "x"), {5: "a.b.d"}, "COMMIT_OVERWRITTEN"),
        ((5, "a.b.c"), (5, "a..d"), {}, "COMMIT_OVERWRITTEN"),
        ((9, "a"), (7, "c"), {}, "SOURCE_RESTORED"),
        ((5, None), (7, "c"), {5: "b"}, None),
        ((6, "a"), (5, "b"), {6: "a"}, None),  # asked for with at=
    ],
)
def test_a_frontier_holds_only_if_its_commit_is_the_one_of_then(old, new, now, code) -> None:
    source = SimpleNamespace(head=lambda: 7, digest=lambda version, _before=0: now.get(version), overwrites_late=True)
    before, after = (SourceVersion(version=v, identity="one", digest=d) for v, d in (old, new))
    reason = why_restored("orders", source, before, after)

    assert (reason.code if reason else None) == code


def test_a_commit_that_was_there_in_part_is_another_when_it_is_whole(tmp_path: Path) -> None:
    """On a file system, where commits may be copied bit by bit; nothing overwrites them late."""
    log = table(tmp_path, *(lines(add(name)) for name in "abcde"))
    source = SimpleNamespace(head=log.head, digest=log.digest, overwrites_late=False)
    seen = SourceVersion(version=5, identity="one", digest=log.digest(log.head(), 3))
    write(tmp_path, 7, lines(add("g")))

    assert seen.digest is not None
    assert seen.digest.count(".") == 3
    assert log.digest(5) == seen.digest.split(".")[0]
    assert why_restored("orders", source, seen, seen) is None
    write(tmp_path, 3, lines(add("c"), add("d")))
    reason = why_restored("orders", source, seen, SourceVersion(version=6, identity="one", digest="f"))

    assert reason is not None
    assert reason.code == "SOURCE_RESTORED"
    assert "version 3" in reason.text
    write(tmp_path, 3, "[]")
    assert why_restored("orders", source, seen, SourceVersion(version=6, identity="one", digest="f")) is None
    write(tmp_path, 1, lines(add("x")))
    assert log.digest(5, 9) != log.digest(5, 3)
    assert seen.is_same(SourceVersion(version=5, identity="one", digest=log.digest(5)))
