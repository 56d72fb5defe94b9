from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from trickle.errors import SessionError
from trickle.session import check_session, local_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_same_folder_gives_the_running_session(spark: SparkSession, warehouse_folder: Path) -> None:
    assert local_session(warehouse_folder) is spark


def test_other_folder_is_refused_while_a_session_runs(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SessionError) as caught:
        local_session(tmp_path / "other")

    assert caught.value.code == "SESSION_ACTIVE"
    assert not (tmp_path / "other").exists()


def test_connect_mode_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")

    with pytest.raises(SessionError) as caught:
        local_session(tmp_path)

    assert caught.value.code == "CONNECT_SESSION"


def test_session_without_delta_lake_is_refused(spark: SparkSession) -> None:
    check_session(spark)
    bare = spark.newSession()
    bare._jsparkSession.sessionState().conf().setConfString("spark.sql.extensions", "")

    with pytest.raises(SessionError) as caught:
        check_session(bare)

    assert caught.value.code == "DELTA_MISSING"
    assert "local_session" in caught.value.hint


def test_empty_commits_are_recorded(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE session_empty USING delta AS SELECT 1 AS id")

    spark.sql("DELETE FROM session_empty WHERE id = 2")

    assert spark.sql("DESCRIBE HISTORY session_empty").count() == 2
    spark.sql("DROP TABLE session_empty")


def test_user_defined_functions_run_in_the_same_python(spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    where = spark.range(1).select(udf(lambda _: sys.executable)("id")).first()

    assert where is not None
    assert where[0] == sys.executable


def test_starting_and_failing_queries_print_nothing(tmp_path: Path) -> None:
    script = """if True:
        import sys
        from trickle.session import local_session
        spark = local_session(sys.argv[1], cores=1)
        for query in ("SELECT nope", "SELECT 1 / (id - id) FROM range(1)"):
            try:
                spark.sql(query).collect()
            except Exception:
                pass
            else:
                raise SystemExit("the query should fail")
    """

    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
