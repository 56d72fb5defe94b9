"""Every code of a reason and of an error: what it means, and what to do. docs/reference/reasons-and-errors.md is made of it.

The texts are Markdown, with links as that page has them. A test compares the codes with those that the code uses.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Code(NamedTuple):
    """What a code means, and what to do.

    Attributes:
        meaning: What happened.
        todo: What the user can do.
        raised: Of a reason: the errors that mode ``differential`` raises with this code instead of a full refresh.
    """

    meaning: str
    todo: str
    raised: tuple[str, ...] = ()


#: Why a refresh was full.
REASONS: Final[dict[str, Code]] = {
    "FIRST_REFRESH": Code(
        "the table has no recorded refresh: its creation was interrupted, it was adopted, or its log no longer "
        "reaches back to one",
        "nothing",
    ),
    "REQUESTED": Code("`refresh(full=True)`", "nothing"),
    "MODE_FULL": Code("the stream table is in mode `full`", "create it in another mode if the query can be maintained"),
    "SOURCE_REPLACED": Code(
        "a source was dropped and created again, or replaced by another table",
        "nothing; in mode `differential`, `refresh(full=True)` once",
        ("SourceError",),
    ),
    "SOURCE_ALTERED": Code(
        "a used column of a source, or its partitioning, changed",
        "nothing; in mode `differential`, `refresh(full=True)` once; if the query returns other columns now, the table "
        "gets them",
        ("SourceError",),
    ),
    "SOURCE_REWOUND": Code(
        "the requested versions are older than the frontier", "expected with `at=` and older versions", ("SourceError",)
    ),
    "SOURCE_RESTORED": Code(
        "the version of a source that the last refresh used was replaced: the folder was restored from a backup and "
        "perhaps written to, or its log was changed",
        "nothing; in mode `differential`, `refresh(full=True)` once",
        ("SourceError",),
    ),
    "COMMIT_OVERWRITTEN": Code(
        "on S3, another writer overwrote a commit that the last refresh had read, or one of the stream table's own "
        "below its newest: Delta's commits there have no condition",
        "nothing; in mode `differential`, `refresh(full=True)` once. To exclude it, see [Several "
        "writers](../how-to/use-object-storage.md#several-writers)",
        ("SourceError", "StateError"),
    ),
    "HISTORY_EXPIRED": Code(
        "commits or files between the frontier and now are gone (VACUUM, log clean-up, a gap before a checkpoint)",
        "refresh more often than the retention time, or raise it",
        ("SourceError",),
    ),
    "TABLE_MODIFIED": Code(
        "others changed rows of the stream table", "write to the sources, not to the stream table", ("StateError",)
    ),
    "DEFINITION_CHANGED": Code(
        "a view or SQL function in the query was redefined, the query was replaced, or it now returns other columns "
        "or reads other sources",
        "nothing; in mode `differential`, `refresh(full=True)` once",
        ("StateError",),
    ),
    "COST": Code(
        "mode `auto`: a full refresh is estimated to take clearly less time; the text has both estimates",
        "nothing; mode `differential` never does this",
    ),
    "STATE_MISSING": Code(
        "a state table of an aggregate or top-k is missing, damaged, or not the one that the last refresh left; the "
        "text says what is wrong",
        "nothing; in mode `differential`, `refresh(full=True)` once",
        ("StateError",),
    ),
    "STATE_MISMATCH": Code(
        "a row to be deleted is not in the table as often as it should be, and neither is a near-equal one",
        "see [floating point](../limits.md#floating-point); otherwise `verify` after the refresh",
        ("StateError",),
    ),
    "SUM_OVERFLOW": Code(
        "the change of a sum of decimals needs more than 38 digits, though the sum does not",
        "nothing; in mode `differential`, `refresh(full=True)` once. To exclude it, sum a narrower type",
        ("StateError",),
    ),
}

#: What a refresh, or the loop, warns of.
WARNINGS: Final[dict[str, Code]] = {
    "STALE_UPSTREAM": Code(
        "a stream table that this one reads is behind what it reads itself",
        "`refresh(name, upstream=True)`, or `refresh_all`",
    ),
    "SPARK_STORAGE": Code(
        "the driver cannot reach the storage of the table or of a source, so Spark does all work there, which takes "
        "seconds; told once for each storage and process",
        "the text names the setting or the scheme; see [Use object storage](../how-to/use-object-storage.md)",
    ),
    "CHANGE_SKIPPED": Code(
        "a change was passed over by `resume(name, skip=True)`: the table does not equal its query, and stands for no "
        "cut",
        "`refresh(name, full=True)`",
    ),
    "RETENTION_SHORT": Code(
        "the loop found that a source may delete its history before the next refresh reads it",
        "raise its `delta.logRetentionDuration` and `delta.deletedFileRetentionDuration`, or refresh more often",
    ),
}

#: Why a query cannot be maintained.
OBSTACLES: Final[dict[str, Code]] = {
    "NON_DETERMINISTIC": Code(
        "a function returns different values at each run, or depends on how rows are stored and split: `rand`, "
        "`uuid`, `shuffle`, `monotonically_increasing_id`, `input_file_name`, a UDF marked so",
        "remove it, or keep its value in a table",
    ),
    "SESSION_DEPENDENT": Code(
        "a function depends on who runs the refresh, and how: `current_user`, `current_database`, `current_timezone` …",
        "write the value into the query",
    ),
    "TIME_DEPENDENT": Code(
        "a function changes with the clock: `now`, `current_date`, `current_timestamp` …",
        "keep the time in a table and join it, or filter when reading the stream table",
    ),
    "TABLESAMPLE": Code("selects different rows at each run", "filter by a hash of a column"),
    "LIMIT_WITHOUT_ORDER": Code("LIMIT or OFFSET without ORDER BY beside it may keep any rows", "add ORDER BY"),
    "PARTITION_FUNCTION": Code(
        "a Python function over whole batches (`mapInPandas`, `mapInArrow`) may mix rows in any way",
        "write it as a UDF, as a UDTF, or by group (`applyInPandas`)",
    ),
    "TABLE_ARGUMENT": Code(
        "a Python table function takes a table (`TABLE(…)`) that is not partitioned, so what it sees depends on "
        "Spark's tasks",
        "say `PARTITION BY` or `WITH SINGLE PARTITION`",
    ),
    "SCRIPT_TRANSFORM": Code("TRANSFORM hands rows to a program that may mix them in any way", "write it as a UDF"),
    "UNSUPPORTED_OPERATOR": Code(
        "the plan has an operator that Trickle has no law for",
        "rewrite the query; see [limits](../limits.md#operators-without-a-law)",
    ),
    "UNSUPPORTED_SUBQUERY": Code(
        "Spark leaves the subquery as an expression",
        "move it to WHERE, or write it as a join",
    ),
    "NON_LINEAR_RECURSION": Code(
        "a recursive CTE uses its own rows in an aggregate, a window, a LIMIT or an EXISTS, or joins them with "
        "themselves",
        "move that outside of the recursion",
    ),
}

#: The codes of each error.
ERRORS: Final[dict[str, dict[str, Code]]] = {
    "DefinitionError": {
        "BAD_NAME": Code(
            "not a table name, or one that the catalog does not accept: Spark's own accepts only the letters a to z, "
            "digits and `_`",
            "`table`, `schema.table` or `catalog.schema.table`; quote odd names with backticks",
        ),
        "RESERVED_NAME": Code("the name begins with `__trickle`", "choose another"),
        "NAME_TAKEN": Code("there is a table or view of that name", "choose another, or drop what is there"),
        "SCHEMA_NOT_FOUND": Code(
            "`SHOW STREAM TABLES IN` names a schema that is not there",
            "correct the name; `SHOW SCHEMAS` lists them",
        ),
        "BAD_MODE": Code("not a mode", "`auto`, `differential` or `full`"),
        "BAD_SCHEDULE": Code(
            "not a schedule, a cron whose day never comes, or an unknown time zone",
            "the hint has one of each form; see [Refresh by schedule](../how-to/refresh-by-schedule.md)",
        ),
        "STILL_READ": Code(
            "a stream table is to be dropped or renamed that others read; the text names them",
            "drop or replace those first, or `drop(name, cascade=True)`",
        ),
        "BAD_DEFINITIONS": Code(
            "`apply` was given something that is not a set of definitions",
            "give `{name: query}`, a list of `Spec`, the text of `export`, or `CREATE STREAM TABLE` statements",
        ),
        "DUPLICATE_NAME": Code(
            "`apply` was given a name twice, or two definitions of a project have one; the text has both places",
            "give each name once",
        ),
        "CYCLE": Code(
            "stream tables, or views of a project, read each other in a circle; the text has the path",
            "let one of them read its sources directly",
        ),
        "SQL_SYNTAX": Code(
            "a statement about stream tables cannot be read; the message shows line and column",
            "correct it at the place that the carets mark",
        ),
        "NO_TRICKLE": Code(
            "a magic of a notebook finds no variable that is a `Trickle`, or several",
            "call the one to use `t`",
        ),
        "BAD_SQL": Code(
            "Spark cannot parse or analyse the query; its message says where",
            "correct the query; at a refresh: restore the table, view or function that it names",
        ),
        "NOT_A_QUERY": Code(
            "a command such as INSERT, a script, EXECUTE IMMEDIATE, or something that is neither text nor a DataFrame; "
            "nothing was run",
            "give one SELECT, VALUES, WITH or TABLE query, or a DataFrame",
        ),
        "TOO_DEEP": Code(
            "the query is nested too deep for Spark's parser or optimiser",
            "split it into views or stream tables; write long chains of OR as IN; give the JVM a larger stack (`-Xss`)",
        ),
        "NO_COLUMNS": Code("the query returns no columns", "select at least one"),
        "DUPLICATE_COLUMN": Code("two columns have the same name, ignoring case", "rename one with AS"),
        "RESERVED_COLUMN": Code(
            "`__weight`, `_change_type`, `_commit_version`, `_commit_timestamp` or `_metadata`",
            "rename it with AS",
        ),
        "UNSUPPORTED_TYPE": Code(
            "a column of the result is or holds a map, a variant, an interval, a time of day, a text with a collation, an "
            "object, or an untyped NULL",
            "see [limits](../limits.md#types-of-the-result)",
        ),
        "TEMPORARY_VIEW": Code(
            "the SQL reads a temporary view, which no other session sees",
            "make it with CREATE VIEW, or write its query inline",
        ),
        "STREAMING_SOURCE": Code("the query reads a stream", "write the stream to a Delta table and read that"),
        "UNSUPPORTED_SOURCE": Code(
            "the query reads something that is not a Delta table",
            "write it to a Delta table and read that",
        ),
        "UNSTORABLE_PLAN": Code(
            "a DataFrame's plan has a part that lives in this process only, or a JVM function of your own",
            "give the query as SQL text",
        ),
        "UNREADABLE_PLAN": Code(
            "a DataFrame was stored with another Spark version, or the stored plan was altered",
            "drop the table and create it again, or define it by SQL",
        ),
        "PLAN_REFUSED": Code(
            "a stored DataFrame contains Java objects that do not belong to a plan; they were not read",
            "find out who wrote the table's properties; create it again",
        ),
        "STORED_PLAN_REFUSED": Code(
            "a DataFrame, or SQL with session variables, given to or found by `Trickle(spark, stored_plans=False)`",
            "give the query as SQL text",
        ),
        "BAD_HISTORY": Code("the name given as `history` is a table or view with other columns", "choose another name"),
        "NO_PROJECT": Code(
            "the command needs a project, and the working folder lies in none",
            "go there, `--project DIR`, or `trickle init NAME`",
        ),
        "BAD_PROJECT": Code(
            "a file of a project cannot be read or used: not YAML, a value of the wrong kind, a file that is not text",
            "the message has file and line",
        ),
        "UNKNOWN_KEY": Code(
            "`trickle.yml`, a header or a decorator has a key that does not exist",
            "the hint lists those that do",
        ),
        "UNKNOWN_ENVIRONMENT": Code(
            "`--env` or `TRICKLE_ENV` names an environment that `trickle.yml` does not have",
            "the hint lists them",
        ),
        "NO_FILES": Code(
            "no file fits the patterns of the project", "put `.sql` or `.py` files there, or correct `files`"
        ),
        "FOLDER_TAKEN": Code(
            "`trickle init` was given a folder that has something in it, or that cannot be made",
            "choose another",
        ),
        "NOTHING_SELECTED": Code("a pattern of `--select` fits no stream table", "the hint lists the tables"),
        "NOT_A_DEFINITION": Code(
            "a statement in a SQL file of a project defines nothing that a project can have; nothing was run",
            "leave one query, or statements that create",
        ),
        "BAD_PYTHON": Code(
            "a Python file of a project failed, or its function gives neither a DataFrame nor a text",
            "the message has the line; `--debug` shows the whole error",
        ),
        "OTHER_COLUMNS": Code(
            "the query of a materialized view gives other columns than its `schema`",
            "correct the schema, or cast in the query",
        ),
        "BAD_FORMAT": Code("a materialized view has another format than `delta`", "leave the format out"),
        "UNKNOWN_TARGET": Code(
            "a flow goes into something that is not a streaming table of the project",
            "create the streaming table",
        ),
        "NO_FLOW": Code("nothing flows into a streaming table", "give it a query or a flow"),
        "NO_STORAGE": Code(
            "a project has streaming tables and no place for their checkpoints",
            "say `storage: FOLDER` in `trickle.yml`",
        ),
        "NOT_A_STREAM": Code(
            "a flow into a streaming table reads no stream",
            "read with `spark.readStream` or `STREAM(…)`",
        ),
        "STREAM_OVER_TABLE": Code(
            "a streaming table reads a stream table, which is filled after it",
            "read what that one is made from",
        ),
        "UNKNOWN_COLUMN": Code("`declare` names a column that the table does not have", "the hint lists its columns"),
        "UNKNOWN_SOURCE": Code("`declare` names a table that does not exist", "check the name and the current schema"),
        "NO_PRIMARY_KEY": Code(
            "a foreign key refers to a table without a declared primary key",
            "declare that table first",
        ),
        "BAD_FOREIGN_KEY": Code(
            "the columns or types of a foreign key differ from those of the primary key it refers to",
            "use as many columns, of the same types, in the same order",
        ),
        "KEY_VIOLATED": Code(
            "the rows of a table violate the keys given to `declare`",
            "correct the data, or declare what holds",
        ),
        "UNKNOWN_OPTION": Code("`disable` names an unknown optimisation", "the message lists the known ones"),
        "BAD_OPTION": Code("an argument of `Trickle` or of `refresh` has the wrong type", "the message says which"),
    },
    "UnknownTableError": {
        "UNKNOWN_TABLE": Code(
            "there is no such table, or it is not a stream table",
            "the hint lists the stream tables that exist",
        ),
        "COPY_OF_STREAM_TABLE": Code(
            "a clone of a stream table, or a table made with CREATE TABLE … LIKE: it carries the definition, but is an "
            "ordinary table",
            "`adopt(name)` makes it a stream table",
        ),
    },
    "SourceError": {
        "UNKNOWN_SOURCE": Code("`at` names a table that is not a source", "the hint lists the sources"),
        "NO_SUCH_VERSION": Code(
            "`at` names a version that the source does not have",
            "use one that exists",
        ),
        "UPSTREAM_FAILED": Code(
            "in a run over several stream tables, one that this one reads failed; this one is unchanged",
            "correct what failed; the next run continues from there",
        ),
        "NOT_PINNED": Code(
            "`at` was given for a query that cannot be maintained; Spark recomputes it over the newest versions",
            "refresh without `at`",
        ),
        "KEY_VIOLATED": Code(
            "a change shows that a declared key does not hold",
            "correct the data, or withdraw the declaration: `declare(table)`",
        ),
        "BAD_KEYS": Code(
            "the property `trickle.keys` of a source was not written by Trickle", "declare its keys again"
        ),
        "SOURCE_MISSING": Code("the source's Delta table is gone", "create it again, or drop the stream table"),
        "NEEDS_SPARK": Code(
            "a command that reads logs without Spark met one on a storage, or coordinated by a catalog, that only Spark "
            "reads",
            "ask in a Spark session: `t.status()`, `t.history(name)`",
        ),
        "RECURSION_LIMIT": Code(
            "a recursive CTE exceeded its depth limit while its change was computed",
            "raise `spark.sql.cteRecursionLevelLimit` and create the table again; look for a cycle",
        ),
        "SCALAR_SUBQUERY_TOO_MANY_ROWS": Code(
            "a scalar subquery returned more than one row",
            "correct the data, or aggregate in the subquery",
        ),
        "UNREADABLE_LOG": Code(
            "a commit or checkpoint of a source's log, or of the stream table's own, violates the Delta format "
            "(truncated, empty, not UTF-8, two actions in a line …), or a commit is missing; the text names the table, "
            "the version and the file",
            "wait if it is still being copied; else restore the file from a backup. A stream table can also be dropped and "
            "created again",
        ),
        "UNSUPPORTED_PROTOCOL": Code(
            "a table needs a reader feature that Delta Lake 4.4 does not know; the text names it",
            "drop the feature, or use a newer version",
        ),
    },
    "ConflictError": {
        "CONCURRENT_ALTER": Code(
            "somebody else changed the definition of the stream table three times while it was being altered; nothing was "
            "written",
            "do it again",
        ),
        "CONCURRENT_REFRESH": Code(
            "another writer committed to the stream table during this refresh; nothing was written",
            "refresh again",
        ),
    },
    "SuspendedError": {
        "SUSPENDED": Code(
            "the stream table waits for a person: someone suspended it, the loop gave up after failures, or its fuse "
            "blew; the text says which, since when and why",
            "act on the error in the text, then `resume(name)`",
        ),
        "FUSE_BLOWN": Code(
            "a refresh would insert and delete more rows than `max_change_rows` or `max_change_ratio` allows; nothing was "
            "committed, and the table is suspended",
            "look at the sources, then `resume(name, apply=True)`, `full=True` or `skip=True`",
        ),
    },
    "CancelledError": {
        "TIMED_OUT": Code(
            "a refresh took longer than its `timeout`; its Spark jobs were cancelled and nothing was committed",
            "give it more time; `explain(name)` shows what it does",
        ),
        "CANCELLED": Code("a refresh was called off, e.g. by a second Ctrl-C; nothing was committed", "refresh again"),
    },
    "StateError": {
        "OTHER_QUERY": Code(
            "`restore` to a version that the table's earlier query made",
            "set the query back with `alter`, then restore",
        ),
        "NO_SUCH_VERSION": Code(
            "`restore` names a version of the stream table that there is not, or that no refresh in the log made; or "
            "`snapshot` found rows that no refresh made",
            "`history(name)` lists the refreshes; refresh before `snapshot`",
        ),
        "NO_CHANGE_WAITS": Code(
            "`resume` with `apply` or `skip` for a table whose fuse has not blown", "`resume(name)`"
        ),
        "BAD_SUSPENSION": Code(
            "the property `trickle.suspended` was not written by Trickle; the table counts as suspended",
            "`resume(name)` removes it",
        ),
        "NO_COMMON_CUT": Code(
            "`read` found no versions of the stream tables that stand for the same versions of the base tables",
            "`refresh_all()`, or raise the option `cut_versions`",
        ),
        "EMPTY_PARTITION": Code(
            "a column of `partition_by` got an empty text, which Delta stores as NULL in a partition column",
            "have the query give another text, or use `cluster_by`",
        ),
        "SCHEMA_MISMATCH": Code(
            "mode `differential`: the query's columns or types are not those of the stream table any more, nor wider ones",
            "`refresh(full=True)` once: the table gets them",
        ),
        "UNREADABLE_RECORD": Code(
            "the newest record was written by another version of Trickle, or is damaged",
            "use that version, or `refresh(full=True)`",
        ),
        "BAD_DEFINITION": Code(
            "the property `trickle.definition` was altered, or written by a later version of Trickle; `tables()` leaves "
            "the table out, with a warning",
            "set the property back (`DESCRIBE HISTORY` shows when it changed), or `drop` the table and create it again",
        ),
    },
    "SessionError": {
        "CONNECT_SESSION": Code(
            "a Spark Connect session, or `SPARK_REMOTE` is set",
            "use a classic session: `.master(...)`, not `.remote(...)`",
        ),
        "NOT_A_SESSION": Code("what was given to `Trickle` is not a Spark session", "give a `SparkSession`"),
        "SESSION_STOPPED": Code("the session was stopped", "start a new one"),
        "SESSION_ACTIVE": Code(
            "`local_session` for another folder while a session runs in this process",
            "`spark.stop()` first, or give the running session to `Trickle`",
        ),
        "DELTA_MISSING": Code(
            "the session has no Delta Lake",
            "[configure it](../how-to/use-your-own-session.md), or use `local_session`",
        ),
        "JAVA_MISSING": Code("no Java was found", "install Java 17 or 21, or set `JAVA_HOME`"),
        "JAVA_UNSUPPORTED": Code(
            "the Java found is too old or too new, or lacks the module `jdk.incubator.vector`",
            "install Java 17 or 21, or set `JAVA_HOME`",
        ),
        "JARS_UNAVAILABLE": Code(
            "Spark could not fetch the Delta Lake jars",
            "check the network; behind a mirror set `spark.jars.ivySettings`",
        ),
        "OUT_OF_MEMORY": Code(
            "the JVM of Spark ran out of memory while it computed; nothing was committed",
            'give it more: `local_session(memory="8g")`, or `spark.driver.memory`, in a new process',
        ),
        "JVM_GONE": Code(
            "the JVM of Spark ended, most often because it ran out of memory",
            "give it more memory in a new process; what it last printed says why",
        ),
        "NOT_A_WAREHOUSE": Code(
            "the warehouse is a file, a Delta table itself, or a folder that you may not read",
            "name the folder that the folders of the tables lie in",
        ),
        "NO_WAREHOUSE": Code(
            "the command `trickle` was given no warehouse folder, or one that does not exist",
            "`--warehouse DIR`, or set `TRICKLE_WAREHOUSE`",
        ),
        "SPARK_FAILED": Code("the JVM or Spark did not start; the message says why", "act on the message"),
        "NO_JVM": Code("a session without a JVM reached the table layer", "use a classic session"),
    },
    "StorageError": {
        "STORAGE_MISSING": Code("there is no such bucket or container", "create it, or check the name"),
        "STORAGE_REFUSED": Code(
            "the credentials are refused, or may not do what was asked (a prefix that can only be read); or the clock of "
            "this machine is wrong",
            "the text has the place and what the store says; see [Use object storage](../how-to/use-object-storage.md)",
        ),
        "STORAGE_SETTINGS": Code(
            "no client can be made with the settings (a key file that is not there, an address that is none), or Hadoop "
            "cannot read a store of secrets",
            "the text names the settings; correct them",
        ),
        "STORAGE_FAILED": Code(
            "the store did not answer after several tries, or answered with errors (503), or broke off",
            "check endpoint and network, then refresh again; the loop does so by itself",
        ),
        "NO_CONDITIONAL_PUT": Code(
            "a server of one's own overwrites files that it is asked to write only if they are absent, so commits could "
            "be lost",
            'use a newer version of it, or `Trickle(spark, disable={"driver_io"})` and one writer',
        ),
    },
    "SparkError": {
        "UNEXPECTED_ERROR": Code(
            "in a run over several stream tables, a defect of Trickle; the other tables are refreshed",
            "please report it with the text",
        ),
        "UNREADABLE_FILE": Code(
            "a file of a table cannot be read in the driver",
            "restore it, or remove it from the source",
        ),
        "STREAM_FAILED": Code(
            "a flow of a project's streaming table failed, and Spark names no condition",
            "act on the message, then refresh again: what it committed before stays",
        ),
        "SPARK_ERROR": Code("a Spark error without a condition", "act on the message"),
    },
}
