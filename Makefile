# make demo  : from nothing to a searched, woken, traversed memory (DATA=… : where its server has its data)
# make test  : every test, on the embedded PostgreSQL 18 (or GRAPHIUM_TEST_DSN, or a container)
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
T ?= tests

.PHONY: venv demo test test-pg17 screenshots bench bench-quick bench-others bench-others-quick lint fmt types snapshots freeze docs clean-venv

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: venv
	$(BIN)/python examples/demo.py $(if $(DATA),--data $(DATA))

test: venv
	$(BIN)/python -m pytest -q $(T)

# The same suite on Debian 13's PostgreSQL 17 in a chroot; says why when the root cannot be built.
test-pg17: venv
	scripts/pg17-root run $(BIN)/python -m pytest -q $(T)

# Writes docs/benchmarks.md and its plots; bench-quick writes small ones into build/, in some minutes.
bench bench-quick: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	nice -n 10 $(BIN)/python -m benchmarks $(if $(filter bench-quick,$@),--quick) $(if $(ROWS),--only $(ROWS)) $(if $(SIZES),--sizes $(SIZES))

# Beside LangGraph's PostgresStore and a table by hand; LangGraph has an environment of its own.
OTHERS := build/others-venv

$(OTHERS)/.installed: benchmarks/others/constraints.txt
	test -x $(OTHERS)/bin/python || $(PYTHON) -m venv $(OTHERS)
	$(OTHERS)/bin/python -m pip install --quiet --disable-pip-version-check -c $< langgraph-checkpoint-postgres 'psycopg[binary]'
	touch $@

bench-others bench-others-quick: venv $(OTHERS)/.installed
	GRAPHIUM_OTHERS_PYTHON=$(OTHERS)/bin/python nice -n 10 $(BIN)/python -m benchmarks.others $(if $(filter bench-others-quick,$@),--quick) $(if $(SIZES),--sizes $(SIZES))

lint: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python scripts/lint_sql.py

fmt: venv
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

types: venv
	$(BIN)/mypy

# Rewrites tests/snapshots/*.txt from a fresh database; read the diff before you commit it.
snapshots: venv
	GRAPHIUM_WRITE_SNAPSHOTS=1 $(BIN)/python -m pytest -q tests/deploy/test_snapshots.py

# Records the hash of every migration as released: from then on an edit is refused.
freeze: venv
	$(BIN)/python -c 'from graphium_db.deploy import Tree; print(*Tree.default().freeze(), sep="\n")'

docs: venv
	$(BIN)/python scripts/make_docs.py

# The pictures of docs/console.md, by Debian's chromium, of the memory of `make demo`.
screenshots: venv
	$(BIN)/python -m scripts.make_screenshots

clean-venv:
	rm -rf $(VENV)
