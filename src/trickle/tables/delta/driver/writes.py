"""Small writes to a stream table's Delta table, done in the driver: same commits as Spark's, no Spark job.

The driver takes a write if its rows are there already and the table is plain and on a storage that the driver knows; a small
one it rewrites, in a big one it masks the rows to delete. Otherwise it declines before a commit, and Spark does the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from trickle.errors import StateError
from trickle.model.reason import STATE_MISMATCH, SUM_OVERFLOW
from trickle.tables.arrow.edit import MissingRowsError, edit_bag, edit_keys, edit_sum
from trickle.tables.contract import WEIGHT, check_count
from trickle.tables.delta.driver.find import Finder
from trickle.tables.delta.driver.fit import NeedsSparkError
from trickle.tables.delta.driver.transaction import DriverTransaction, StoredRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trickle.tables.cache.columns import ColumnCache
    from trickle.tables.contract import Applied, Given, Record, TargetState
    from trickle.tables.delta.target import DeltaTarget


class DriverWrites:
    """The verbs of a target; each gives None if Spark must do it. Keeps the table's rows between commits."""

    def __init__(self, target: DeltaTarget, columns: ColumnCache | None = None) -> None:
        """Bind to a target; touches nothing yet. Columns searched again and again are cached in ``columns``."""
        self.target = target
        self._columns = columns
        self._stored = StoredRows(target.options)

    @property
    def _known(self) -> StoredRows:
        """What is known of the table's rows, with what finds more of them once the driver can reach its folder."""
        folder = self.target.table.folder
        if self._stored.finder is None and folder is not None:
            self._stored.search_with(Finder(self._columns, self.target.options, folder.storage))
        return self._stored

    def rows(self, most: int) -> pa.Table | None:
        """Return all rows, if they are no more than some."""
        try:
            transaction = DriverTransaction(self.target, self._known, "", self.target.state())
            files = transaction.files()
            if sum(file.records or 0 for file in files) > most:
                return None
            return pa.concat_tables([transaction.schema.empty_table(), *transaction.stored(files)])
        except NeedsSparkError:
            return None

    def overwrite(self, rows: Given, record: Record, expected: TargetState, most: int | None = None) -> Applied | None:
        """Replace all rows, if they are no more than some."""

        def write(transaction: DriverTransaction) -> Applied:
            new = transaction.given(rows)
            check_count(new.num_rows, most)
            return transaction.replace_all(new)

        return self._try(write, record, expected)

    def append(self, rows: Given, record: Record, expected: TargetState) -> Applied | None:
        """Add rows."""
        return self._try(lambda transaction: transaction.only_add(transaction.given(rows)), record, expected)

    def touch(self, record: Record, expected: TargetState) -> Applied | None:
        """Commit the record alone."""
        return self._try(lambda transaction: transaction.only_add(transaction.schema.empty_table()), record, expected)

    def apply_bag(self, change: Given, record: Record, expected: TargetState) -> Applied | None:
        """Delete -n copies of a row, add +n copies."""

        def write(transaction: DriverTransaction) -> Applied:
            rows = transaction.given(change, pa.schema([*transaction.schema, pa.field(WEIGHT, pa.int64())]))
            going = rows.column(rows.num_columns - 1).to_numpy() < 0
            if not going.any():
                return transaction.only_add(edit_bag(transaction.schema.empty_table(), rows).inserts)
            gone = rows.filter(pa.array(going)).drop_columns([WEIGHT])
            return transaction.apply(lambda stored: edit_bag(stored, rows), gone)

        return self._try(write, record, expected)

    def replace_keys(
        self, rows: Given, touched: Given, keys: Sequence[str], record: Record, expected: TargetState
    ) -> Applied | None:
        """Make ``rows`` the table's rows of the touched keys."""

        def write(transaction: DriverTransaction) -> Applied:
            new = transaction.given(rows)
            key_schema = pa.schema([transaction.schema.field(name) for name in keys])
            some = transaction.given(touched, key_schema) if keys else key_schema.empty_table()
            mine = new.select(list(keys))
            wanted = pa.concat_tables([some.cast(mine.schema), mine])
            return transaction.apply(lambda stored: edit_keys(stored, new, some, keys), wanted)

        return self._try(write, record, expected)

    def accumulate(
        self, delta: Given, keys: Sequence[str], record: Record, expected: TargetState, count: str
    ) -> Applied | None:
        """Add ``delta`` to the stored rows of its keys."""

        def write(transaction: DriverTransaction) -> Applied:
            rows = transaction.given(delta)
            return transaction.apply(lambda stored: edit_sum(stored, rows, keys, count), rows.select(list(keys)))

        return self._try(write, record, expected)

    def _try(
        self, write: Callable[[DriverTransaction], Applied], record: Record, expected: TargetState
    ) -> Applied | None:
        transaction = None
        try:
            transaction = DriverTransaction(self.target, self._known, record, expected)
            return write(transaction)
        except NeedsSparkError:
            return None
        except MissingRowsError as error:
            raise StateError(
                STATE_MISMATCH,
                f"Stream table {self.target.name} holds {error}.",
                hint="Someone changed it, or its record; a full refresh repairs it.",
            ) from error
        except OverflowError as error:
            raise StateError(
                SUM_OVERFLOW,
                f"Stream table {self.target.name}: {error}.",
                hint="Give the column a wider type with CAST.",
            ) from error
        finally:
            if transaction is not None:
                transaction.close()
