"""A writer in a process of its own: commits single rows to a Delta table, so many times a second, until its time is over.

``python -m bench.writer FOLDER FIRST RATE SECONDS`` prints the number of its commits.
"""

from __future__ import annotations

import sys
import time

import pyarrow as pa
from deltalake import write_deltalake


def write(folder: str, first: int, rate: float, seconds: float) -> int:
    """Append one row at each beat of the clock; a beat that was missed is made up for at once."""
    begun, number = time.monotonic(), 0
    while number < rate * seconds:
        time.sleep(max(0.0, begun + number / rate - time.monotonic()))
        row = {"id": [first + number], "k": [number % 1000], "v": [1]}
        write_deltalake(
            folder, pa.table({name: pa.array(values, pa.int64()) for name, values in row.items()}), mode="append"
        )
        number += 1
    return number


if __name__ == "__main__":
    folder, first, rate, seconds = sys.argv[1:]
    sys.stdout.write(f"{write(folder, int(first), float(rate), float(seconds))}\n")
