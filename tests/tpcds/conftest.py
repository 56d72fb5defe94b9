"""TPC-DS needs the generator in duckdb 1.0, which has no wheel for Python 3.13."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("duckdb") else ["test_*.py"]
