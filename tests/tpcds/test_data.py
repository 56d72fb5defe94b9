"""The rows and rounds of the TPC-DS suite: what they promise about themselves, and what Delta tables make of them."""

from __future__ import annotations

import pytest

from trickle.testing import tpcds


@pytest.fixture(scope="module")
def rows() -> tpcds.Rows:
    return tpcds.Rows()


def count(rows: tpcds.Rows, query: str) -> int:
    return rows.read(f"SELECT count(*) AS n FROM ({query})")["n"][0].as_py()


def test_keys_are_keys_in_every_round(rows):
    repeated = [
        f"{name} in round {round_}"
        for name, table in tpcds.TABLES.items()
        for round_ in range(tpcds.ROUNDS + 1)
        if count(rows, f"SELECT 1 FROM ({rows.at(name, round_)}) GROUP BY {', '.join(table.key)} HAVING count(*) > 1")
    ]

    assert repeated == []


def test_changes_lead_from_one_round_to_the_next(rows):
    for name in tpcds.TABLES:
        for round_ in range(1, tpcds.ROUNDS + 1):
            before, after = (count(rows, rows.at(name, at)) for at in (round_ - 1, round_))
            came, went = (
                count(rows, f"SELECT * FROM ({rows.change(name, round_)}) WHERE _op = '{kind}'")
                for kind in ("insert", "delete")
            )

            assert after == before + came - went, f"{name}, round {round_}"


def test_every_table_but_one_changes_in_every_round(rows):
    idle = {
        name
        for name in tpcds.TABLES
        for round_ in range(1, tpcds.ROUNDS + 1)
        if not count(rows, rows.change(name, round_))
    }

    assert idle == {"income_band"}


@pytest.mark.parametrize(
    ("fact", "dimension"),
    [
        ("ss_item_sk", "item.i_item_sk"),
        ("ss_store_sk", "store.s_store_sk"),
        ("ss_sold_date_sk", "date_dim.d_date_sk"),
        ("ss_customer_sk", "customer.c_customer_sk"),
    ],
)
def test_facts_wait_for_their_dimensions(rows, fact, dimension):
    table, key = dimension.split(".")

    waiting = [
        count(
            rows,
            f"""SELECT 1 FROM ({rows.at("store_sales", round_)})
                WHERE {fact} NOT IN (SELECT {key} FROM ({rows.at(table, round_)}))
                AND {fact} IN (SELECT {key} FROM ({rows.at(table, tpcds.ROUNDS)}))""",
        )
        for round_ in range(tpcds.ROUNDS)
    ]

    assert all(waiting), waiting


def test_the_texts_have_a_complete_order_beside_each_limit():
    texts = tpcds.queries()

    assert list(texts) == list(tpcds.NUMBERS)
    assert not [number for number, text in texts.items() if "LIMIT" in text and ", 1" not in text.split("ORDER BY")[-1]]
    assert not [number for number, text in texts.items() if '"' in text]


@pytest.mark.slow
def test_every_query_has_rows_and_a_change_to_follow(rows):
    import duckdb

    answers: dict[int, list[list[str]]] = {number: [] for number in tpcds.NUMBERS}
    for round_ in range(tpcds.ROUNDS + 1):
        engine = duckdb.connect()
        for table in tpcds.TABLES:
            engine.register("stored", rows.read(rows.at(table, round_)))
            engine.execute(f"CREATE TABLE {table} AS SELECT * FROM stored")
        for number, text in tpcds.queries().items():
            found = engine.execute(text.replace("`", '"')).fetchall()
            answers[number].append(sorted(str(row) for row in found))

    assert [number for number, seen in answers.items() if not any(seen)] == []
    assert [number for number, seen in answers.items() if all(answer == seen[0] for answer in seen)] == []
