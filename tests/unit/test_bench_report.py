"""The benchmark's arithmetic, page and picture, from a few invented numbers."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bench.chart import bar_chart, bounds
from bench.cost import IDLE, ONE_ROW
from bench.goals import goals_table
from bench.measure import unpaired
from bench.report import chart, markdown, worst_cases, write_report
from bench.results import (
    AUTO,
    DIFFERENTIAL,
    FULL,
    PLAIN,
    Case,
    Cycle,
    Origin,
    Part,
    Refreshed,
    Results,
    Run,
    read,
    write,
)
from bench.summary import breakdown, create_ratio, geometric_mean, line_of, median, slowdowns
from bench.tables import choice_table, memory_table

MACHINE = {
    "cores": 2,
    "cpu": "some processor",
    "memory_gb": 8.0,
    "heap": "4g",
    "load_average": 0.1,
    "system": "Linux",
    "python": "3.12.1",
    "java": "17",
    "spark": "4.1.0",
    "delta": "4.4.0",
    "trickle": "0.1.0",
    "revision": "abc1234",
}


def refreshed(seconds: float, *, mode: str = "differential", reason: str | None = None, changed: int = 5) -> Refreshed:
    steps = {"compute": seconds * 0.75, "commit": seconds * 0.25}
    return Refreshed(seconds=seconds, mode=mode, reason=reason, changed=changed, steps=steps)


def case(name: str, full: list[float], differential: list[float], **options) -> Case:
    cycles = [
        Cycle(
            number=number,
            warm_up=number == 1,
            refreshes={FULL: refreshed(slow, mode="full"), DIFFERENTIAL: refreshed(fast, **options)},
            differences=0,
        )
        for number, (slow, fast) in enumerate(zip(full, differential, strict=True), 1)
    ]
    return Case(name=name, create={FULL: 3.0, DIFFERENTIAL: 3.0, PLAIN: 2.0}, cycles=cycles)


def origin(**machine: float | str) -> Origin:
    return Origin(command="python -m bench run", date="2026-01-02T03:04:05+00:00", machine={**MACHINE, **machine})


def run(pattern: str, *cases: Case) -> Run:
    facts = {"scale": 1.0, "rate": 0.001, "pattern": pattern}
    return Run(facts=facts, origin=origin(), cases=list(cases), is_complete=True)


def part(*runs: Run) -> Part:
    return Part(runs=list(runs))


@pytest.fixture
def results() -> Results:
    one_row = Case(name=ONE_ROW, cycles=[Cycle(number=3, warm_up=False, refreshes={DIFFERENTIAL: refreshed(0.5)})])
    idle = Case(
        name=IDLE,
        cycles=[Cycle(number=2, warm_up=False, refreshes={DIFFERENTIAL: refreshed(0.004, mode="no_data", changed=0)})],
    )
    tpch = part(
        run("random", case("q01", [9, 4, 4, 4], [9, 1, 1, 1]), case("q02", [9, 1, 1, 1], [9, 2, 2, 2])),
        run("recent", case("q01", [9, 8, 8, 8], [9, 1, 1, 1])),
    )
    cost = part(Run(facts={"rows": 1_000_000}, origin=origin(), cases=[one_row, idle], is_complete=True))
    return Results(parts={"tpch": tpch, "cost": cost})


def test_goals_show_what_was_measured_and_what_was_not(results):
    measured = {goal: value for goal, _, _, value in goals_table(results).rows}

    assert measured["scale 1, 0.1 %, random, mean ratio"] == "1.41 ×"
    assert measured["scale 1, 0.1 %, recent, mean ratio"] == "8.00 ×"
    assert measured["worst query of both, full / auto"] == "q02 0.50 ×, 0.1 % random; q01 8.00 ×, 0.1 % recent"
    assert measured["smallest refresh, warm"] == "one row 0.50 s"
    assert measured["create / plain CREATE TABLE AS"] == "1.50 ×, 0.1 % random; 1.50 ×, 0.1 % recent"
    assert measured["scale 10, 0.1 %, recent, mean ratio"] == "–"


def test_median_of_an_even_number_of_values_lies_between_the_middle_ones():
    assert median([5, 1, 2, 100]) == 3.5


def test_geometric_mean_leaves_out_what_was_not_measured():
    assert geometric_mean([0.5, None, 2, 8]) == pytest.approx(2.0)
    assert geometric_mean([None]) is None


def test_warm_up_does_not_count():
    line = line_of(case("q01", [100, 4, 6, 5], [100, 1, 3, 2]))

    assert (line.full, line.differential, line.ratio) == (5, 2, 2.5)


@pytest.mark.parametrize("options", [{"mode": "no_data", "changed": 0}, {"changed": 0}])
def test_a_cycle_without_source_changes_does_not_count(options):
    line = line_of(case("q01", [4, 4], [1, 1], **options))

    assert (line.ratio, line.mode) == (None, "no_data")


def test_a_refresh_that_fell_back_to_full_counts_and_says_why():
    line = line_of(case("q01", [4, 4], [4, 4], mode="full", reason="SOURCE_REPLACED", changed=0))

    assert (line.ratio, line.mode) == (1, "full: SOURCE_REPLACED")


def test_break_down_sums_steps_over_queries_longest_first():
    steps = breakdown([case("q01", [9, 4], [9, 1]), case("q02", [9, 4], [9, 3])])

    assert list(steps.items()) == [("compute", 3.0), ("commit", 1.0)]


def test_creation_is_compared_with_a_plain_table():
    assert create_ratio(case("q01", [], [])) == 1.5


def test_slowdown_is_against_everything_switched_on():
    cycle = Cycle(number=2, warm_up=False, refreshes={DIFFERENTIAL: refreshed(2), "push_keys": refreshed(5)})

    assert slowdowns(Case(name="q01", cycles=[cycle])) == {"push_keys": 2.5}


def test_rows_differing_in_the_last_digits_of_a_float_find_each_other():
    assert unpaired([("a", 0.1 + 0.2), ("b", None)], [("b", None), ("a", 0.3)]) == 0
    assert unpaired([("a", 1.0), ("a", 1.0)], [("a", 1.0)]) == 1
    assert unpaired([("a", 1)], [("a", 2)]) == 2


def test_page_has_ratios_worst_cases_and_the_command(results):
    text = markdown(results, "benchmarks.svg")

    assert "| q01 | 4.00 s | 1.00 s | 4.00 × | differential | 1.50 × |" in text
    assert "| q01 | 8.00 s | 1.00 s | 8.00 × | differential | 1.50 × |" in text
    assert "| 0.1 % random | 2 of 2 | 1.41 × | q02 0.50 × |" in text
    assert "- q02, 0.1 % random: 0.50 ×, 2.00 s, 75% of it in *compute*" in text
    assert "| nothing new | 4 ms |" in text
    assert "```console\npython -m bench run\n```" in text
    assert "![" in text


def test_different_twins_are_among_the_worst_cases():
    wrong = case("q01", [9, 4], [9, 1])
    wrong.cycles[1].differences = 3

    assert "- q01, 0.1 % random: **3 rows differ**" in worst_cases(part(run("random", wrong)))


def test_picture_has_a_bar_for_each_query_and_run(results):
    picture = ElementTree.fromstring(chart(results.parts["tpch"]))

    bars = [title.text for title in picture.iterfind(".//{*}rect/{*}title")]
    assert [bar.partition(" (")[0] + bar[-8:] for bar in bars] == [
        "q01, 0.1 % random: 4.00 ×",
        "q02, 0.1 % random: 0.50 ×",
        "q01, 0.1 % recent: 8.00 ×",
    ]


def test_picture_has_the_runs_of_one_rate_only(results):
    results.parts["tpch"].runs.append(Run(facts={"scale": 1.0, "rate": 0.1, "pattern": "random"}, origin=origin()))

    assert "10 % random" not in chart(results.parts["tpch"])


def test_choice_of_auto_is_compared_with_the_better_mode():
    chosen = case("q01", [9, 4], [9, 8])
    chosen.cycles[1].refreshes[AUTO] = refreshed(5, mode="full", reason="COST")
    table = choice_table(part(run("random", chosen), run("recent", case("q01", [9, 4], [9, 1]))))

    assert table is not None
    assert table.rows == [("q01, 0.1 % random", "4.00 s", "8.00 s", "5.00 s", "1.25 ×", "full")]


def test_picture_of_nothing_is_a_picture():
    assert ElementTree.fromstring(bar_chart("nothing", {})).tag.endswith("svg")
    assert bounds([]) == (0.5, 2.0)


def test_a_completed_run_of_the_same_facts_machine_and_revision_is_kept_if_asked_for():
    done = part(run("random"), run("recent"), Run(facts={"scale": 2.0}, origin=origin()))
    kept = list(done.runs)

    assert done.begin(run("random").facts, origin(load_average=7.5), resume=True) is None
    assert done.runs == kept
    for facts, how in (
        (run("random").facts, {"origin": origin(revision="def5678"), "resume": True}),
        (run("recent").facts, {"origin": origin(), "resume": False}),
        ({"scale": 2.0}, {"origin": origin(), "resume": True}),
        ({"scale": 3.0}, {"origin": origin(), "resume": True}),
    ):
        assert done.begin(facts, **how).cases == []
    assert [r.facts.get("pattern", r.facts["scale"]) for r in done.runs] == ["random", "recent", 2.0, 3.0]


def test_runs_of_several_revisions_say_which_they_are_of(results):
    results.parts["tpch"].runs[1].origin = origin(revision="def5678")

    page = markdown(results, "picture.svg")

    assert "0.1 % random: made on 2026-01-02 with Trickle 0.1.0 (abc1234)" in page
    assert "0.1 % recent: made on 2026-01-02 with Trickle 0.1.0 (def5678)" in page


def test_stored_results_are_read_as_they_were(results, tmp_path):
    file = tmp_path / "benchmarks.json"

    write(file, results)
    write_report(file)

    assert read(file) == results
    assert sorted(path.name for path in tmp_path.iterdir()) == ["benchmarks.json", "benchmarks.md", "benchmarks.svg"]


def test_memory_is_compared_from_the_first_to_the_last_third():
    seen = {"python": [100, 100, 100, 150, 110, 110, 110], "java": []}
    run = Run(facts={}, origin=Origin(command="c", date="d", machine=MACHINE), resident=seen)

    table = memory_table(Part(runs=[run]))

    assert table is not None
    assert table.rows == [("python", "100", "110", "150", "+10.0 %")]
    assert memory_table(Part(runs=[run.model_copy(update={"resident": {}})])) is None
