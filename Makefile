.DEFAULT_GOAL := help
SHELL := bash
BIN := .venv/bin
# A Spark session for each worker; the tests of a file build on one another and stay together.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile
# What `make bench` measures; BENCH takes further options, see `python -m bench run --help`.
QUERIES := all
SCALE := 1
RATE := 0.001
PATTERN := random,recent
BENCH :=
# What `make fuzz` runs: for how long, from which seed (drawn if empty), only one case, only one regime.
MINUTES := 5
SEED :=
CASE :=
REGIME :=

.PHONY: help setup demo test test-all fuzz soak lint check golden fmt bench lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

setup: ## Make .venv, find or install Java 17, fetch the Delta Lake jars (done by the others too)
	@scripts/setup.sh

demo: setup ## Stream tables over 1.2 million order lines: refresh, compare with full, verify; then the loop
	@$(BIN)/python examples/demo.py

test: lint ## Lint, types, import rules, doctests, and the tests that finish in minutes
	@$(BIN)/python -m pytest tests -m "not slow" $(PARALLEL) --durations 15

test-all: lint ## Run every test, all of TPC-DS and the long TPC-H phases included (TPCH_SCALE, TPCH_CYCLES)
	@$(BIN)/python -m pytest tests $(PARALLEL)

fuzz: setup ## Random queries, tables, changes and limits against plain Spark (MINUTES=5 SEED=7 CASE=12 REGIME=default)
	@$(BIN)/python -m trickle.testing.fuzz --minutes "$(MINUTES)" $(if $(SEED),--seed "$(SEED)") \
		$(if $(CASE),--case "$(CASE)") $(if $(REGIME),--regime "$(REGIME)")

soak: setup ## Runners, writers, readers, redeploys and kills over thirty stream tables (MINUTES=10 SEED=7)
	@$(BIN)/python -m trickle.testing.soak --minutes "$(MINUTES)" $(if $(SEED),--seed "$(SEED)")

lint: setup ## Lint, formatting, types, import rules and doctests
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy
	@found=$$($(BIN)/lint-imports --no-logo --no-cache) || { echo "$$found"; exit 1; }
	@$(BIN)/python -m pytest -q --doctest-modules src/trickle

check: lint ## The same, and the tests that need no Spark
	@$(BIN)/python -m pytest tests -q -m "not spark and not slow"

golden: setup ## Write the golden plans of tests/golden anew; review the diff
	@REWRITE_GOLDEN=1 $(BIN)/python -m pytest tests/golden -q

fmt: setup ## Format the code, fix what the linter can
	@$(BIN)/ruff check --fix-only -q .
	@$(BIN)/ruff format .

bench: setup ## Time full against differential refreshes (QUERIES=q01,q03 SCALE=1 RATE=0.001 PATTERN=random)
	@$(BIN)/python -m bench run --queries $(QUERIES) --scale $(SCALE) --rate $(RATE) --pattern $(PATTERN) $(BENCH)

lock: setup ## Renew requirements-dev.txt from pyproject.toml
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv
	@$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --extra dev --custom-compile-command "make lock" pyproject.toml -o requirements-dev.txt

clean: ## Remove the virtual environment, caches and demo data
	@rm -rf .venv build dist demo-warehouse bench-data fuzz-failures .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
