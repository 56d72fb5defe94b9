"""What is written is read back as it was, and any text is either read, left to Spark, or refused with a place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trickle.errors import SqlSyntaxError
from trickle.model.names import shown_part
from trickle.model.schedule import Cron, Downstream, Every, OnCommit
from trickle.sql import statements as s
from trickle.sql.parse import parse
from trickle.sql.render import render
from trickle.sql.split import split_script

PART = st.one_of(
    st.sampled_from(
        ["orders", "as", "AS", "if", "full", "2024", "a b", "schedule", "stream", "naïve", "x`y", "a.b", "--", "*"]
    ),
    st.text(
        st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="/\\\x7f"), min_size=1, max_size=8
    ).filter(
        lambda part: part == part.strip() and part not in (".", "..") and not part.lower().startswith("__trickle")
    ),
)
NAME = st.lists(PART, min_size=1, max_size=3).map(lambda parts: ".".join(map(shown_part, parts)))
TEXT = st.text(st.characters(max_codepoint=0x1FFFF, exclude_categories=("Cs",)), max_size=12)
QUERY = st.sampled_from(
    [
        "SELECT 1",
        "SELECT ';' AS `as;` -- ; as\n, 2",
        "WITH a AS (SELECT 1) SELECT * FROM a /* ; /* as */ */",
        "TABLE t",
        '(SELECT "a;")',
    ]
)
WHOLE_SECONDS = st.integers(1, 40_000_000 // 2).map(lambda half: half / 2)
SCHEDULE = st.one_of(
    WHOLE_SECONDS.map(Every),
    WHOLE_SECONDS.map(OnCommit),
    st.builds(OnCommit),
    st.builds(Downstream),
    st.builds(Cron, st.sampled_from(["0 6 * * 1-5", "*/5 * * * *"]), st.sampled_from(["UTC", "Europe/Berlin"])),
)
NAMES = st.lists(PART, min_size=1, max_size=3, unique_by=str.lower).map(tuple)
PROPERTIES = st.dictionaries(TEXT, TEXT, min_size=1, max_size=3).map(lambda found: tuple(found.items()))
POLICY = st.sampled_from(["auto", "incremental", "incremental strict", "full"])


def maybe(strategy):
    return st.none() | strategy


def clauses(**places):
    layout = st.one_of(
        st.just({}),
        NAMES.map(lambda names: {"partitioned_by": names}),
        NAMES.map(lambda names: {"cluster_by": names}),
        st.just({"cluster_by": ()}),
    )
    rest = st.fixed_dictionaries(
        {
            "schedule": maybe(SCHEDULE),
            "policy": maybe(POLICY),
            "comment": maybe(TEXT),
            "properties": maybe(PROPERTIES),
            **places,
        }
    )
    return st.builds(lambda one, two: s.Clauses(**one, **two), layout, rest)


def columns():
    def of(types):
        return st.builds(lambda names, t, c: tuple(s.Column(n, t, c) for n in names), NAMES, types, maybe(TEXT))

    return st.one_of(
        st.just(()), of(st.none()), of(st.sampled_from(["INT", "DECIMAL(10, 2)", "MAP<STRING, ARRAY<INT>>"]))
    )


CREATE = st.builds(
    lambda name, query, cols, cl, how: s.CreateStreamTable(name, query, cols, cl, how == 1, how == 2),
    *(NAME, QUERY, columns(), clauses(location=maybe(TEXT)), st.integers(0, 2)),
)
STATEMENT = st.one_of(
    CREATE,
    st.builds(s.RefreshStreamTable, NAME, st.booleans()),
    st.builds(s.SuspendStreamTable, NAME),
    st.builds(s.ResumeStreamTable, NAME, st.sampled_from([None, "apply", "full", "skip"])),
    st.builds(s.SetClauses, NAME, clauses().filter(lambda found: found != s.NO_CLAUSES)),
    st.builds(s.DropSchedule, NAME),
    st.builds(s.UnsetProperties, NAME, st.lists(TEXT, min_size=1, max_size=2).map(tuple)),
    st.builds(s.ReplaceQuery, NAME, QUERY),
    st.builds(s.RenameStreamTable, NAME, NAME),
    st.builds(s.DropStreamTable, NAME, st.booleans(), st.booleans()),
    st.builds(s.ShowStreamTables, maybe(NAME), maybe(TEXT)),
    st.builds(s.ShowRefreshHistory, maybe(NAME), maybe(st.integers(1, 99))),
    st.builds(s.DescribeStreamTable, NAME, st.booleans()),
    st.builds(s.ExplainCreate, CREATE),
    st.builds(s.ExplainStreamTable, NAME),
)


@given(STATEMENT)
def test_what_is_written_is_read_back(statement):
    assert parse(render(statement)) == statement


@given(st.lists(STATEMENT, min_size=1, max_size=4))
def test_a_script_of_statements_is_split_into_them(statements):
    script = ";\n".join(map(render, statements)) + ";"

    assert [parse(part.text) for part in split_script(script)] == statements


@given(STATEMENT, st.integers(0, 400), st.sampled_from(["", "'", "`", "(", ";", " x ", "/*", "--", "\n", "AS", "💧"]))
def test_damaged_text_is_read_or_refused_with_a_place(statement, at, junk):
    text = render(statement)
    damaged = text[:at] + junk + text[at + 1 :]

    error = refusal(damaged)

    lines = damaged.split("\n")
    assert error is None or 1 <= error.line <= len(lines)
    assert error is None or 1 <= error.column <= len(lines[error.line - 1]) + 1
    assert error is None or "^" in str(error)


def refusal(text):
    try:
        parse(text)
    except SqlSyntaxError as error:
        return error
    return None
