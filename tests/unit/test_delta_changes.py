"""Which files hold a change, from commits alone."""

from __future__ import annotations

import json

from trickle.tables.delta.actions import Commit, parse_commit
from trickle.tables.delta.changes import changed_rows, layers, reading_plans, removed_files


def commit(version: int, *actions: str, operation: str = "WRITE", metrics: dict[str, str] | None = None) -> Commit:
    """A commit written as `+a`, `-a`, `+a#v` (with a deletion vector), `~c` (a change file); a size after `:`.

    A leading `=` makes an action one of a compaction.
    """
    lines = [json.dumps({"commitInfo": {"operation": operation, "operationMetrics": metrics or {}}})]
    for text in actions:
        compacts, text = text.startswith("="), text.removeprefix("=")
        name, _, size = text[1:].partition(":")
        path, _, vector = name.partition("#")
        body: dict[str, object] = {"path": path, "size": int(size or 1), "dataChange": not compacts}
        body["stats"] = json.dumps({"numRecords": 10})
        if vector:
            body["deletionVector"] = {"storageType": "i", "pathOrInlineDv": vector, "cardinality": len(vector)}
        lines.append(json.dumps({{"+": "add", "-": "remove", "~": "cdc"}[text[0]]: body}))
    return parse_commit(version, "\n".join(lines))


def test_a_file_that_came_and_went_cancels() -> None:
    (plan,) = reading_plans([commit(1, "+a"), commit(2, "-a", "+b"), commit(3, "-b")])
    assert plan.is_empty


def test_compaction_changes_nothing_and_does_not_hide_what_came_before() -> None:
    assert reading_plans([commit(1, "=-a", "=+b")])[0].is_empty

    plans = reading_plans([commit(1, "+b:9"), commit(2, "=-a:1", "=-b:9", "=+c:2")])
    assert [file.path for file in plans[0].added] == ["b"]
    assert plans[0].is_append
    assert [file.path for file in plans[1].removed] == ["a"]
    assert removed_files([commit(1, "+b"), commit(2, "=-a", "=-b", "=+c")]) == {"a"}


def test_another_deletion_vector_of_a_file_is_not_the_file_itself() -> None:
    (plan,) = reading_plans([commit(1, "-a", "+a#x"), commit(2, "-a#x", "+a#xy")])
    assert (plan.added, plan.removed) == ((), ())
    ((before, after),) = plan.remasked
    assert (before.vector, after.masked) == ("", 2)


def test_change_files_are_read_where_they_are_smaller() -> None:
    update = commit(1, "-a:100", "+b:100", "~c:1", operation="UPDATE", metrics={"numUpdatedRows": "3"})
    plans = reading_plans([update, commit(2, "+d:5")])

    assert [file.path for file in plans[0].feed] == ["c"]
    assert [file.path for file in plans[0].added] == ["d"]
    assert plans[1].bytes == 205
    assert changed_rows([update], plans[0]) == 6
    by_delta_rs = commit(1, "-a:100", "+b:96", "~c:1", operation="DELETE", metrics={"num_deleted_rows": 4})
    assert changed_rows([by_delta_rs], reading_plans([by_delta_rs])[0]) == 4


def test_a_way_in_which_rows_only_come_goes_first() -> None:
    plans = reading_plans([commit(1, "+a:1"), commit(2, "-a:1", "+b:50", "~c:1", operation="DELETE")])
    assert plans[0].is_append
    assert plans[0].bytes > plans[1].bytes


def test_a_scan_never_has_one_path_twice() -> None:
    files = [file for c in (commit(1, "+a", "+b"), commit(2, "+a#x")) for file in c.adds]
    assert [[file.key[0] for file in layer] for layer in layers(files)] == [["a", "b"], ["a"]]
