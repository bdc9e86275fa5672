# Needs Python 3.11+ and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup heavy java browser postgres demo test lint types layers tests fuzz minimal wheel lowest docs bench golden clean

help: ## list the commands
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	@touch $(READY)

setup: $(READY) ## make .venv with the package and all tools

heavy: $(READY) ## add torch and Spark (needs Java 17), without which some tests are skipped
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet "pyspark>=4,<5"

java: ## add Java, without which the Spark tests are skipped (Debian, as root)
	command -v java >/dev/null || { apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	openjdk-17-jre-headless; }

browser: ## add Chromium, without which the browser tests are skipped (Debian, as root)
	command -v chromium >/dev/null || { apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	chromium fonts-dejavu-core; }

postgres: ## add Postgres, without which its tests of SQL are skipped (Debian, as root)
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	postgresql; }

demo: $(READY) ## evaluate the bundled predictions, print a table, write a figure
	$(BIN)/calibrant demo

test: lint types layers tests ## lint, types, layers and all tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell src tests docs examples benchmarks tools *.md
	$(BIN)/python tools/check_docstrings.py

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

# One thread a worker: there is a worker for each core.
tests: $(READY)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup --cov --cov-report=term --cov-fail-under=95

# Only what works without extras; no fixture of the other tests is loaded.
MINIMAL_TESTS := -m pytest --quiet --confcutdir=tests/minimal -p no:cacheprovider tests/minimal

minimal: ## test the package without any extra (in .minimal-venv)
	$(PYTHON) -m venv .minimal-venv
	.minimal-venv/bin/python -m pip install --quiet --editable . pytest
	.minimal-venv/bin/python $(MINIMAL_TESTS)

wheel: ## build the wheel and test it outside the tree (in .wheel-venv)
	$(PYTHON) -m venv .wheel-venv
	.wheel-venv/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	rm -rf dist && .wheel-venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	.wheel-venv/bin/python -m pip install --quiet --force-reinstall "$$(ls dist/*.whl)[all]" pytest
	.wheel-venv/bin/python -P $(MINIMAL_TESTS)
	cd dist && ../.wheel-venv/bin/calibrant demo

# The lower bounds of pyproject.toml. Old versions warn about newer ones of others.
LOWEST_TESTS := -m pytest --quiet -m "not slow" -p no:cacheprovider \
	-W default::DeprecationWarning -W default::FutureWarning
lowest: ## test the lowest versions that are allowed (in .lowest-venv)
	$(PYTHON) -m venv .lowest-venv
	.lowest-venv/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	grep -oE '"[A-Za-z0-9-]+>=[0-9.]+"' pyproject.toml | sed 's/"//g; s/>=/==/' \
	> .lowest-venv/lowest.txt
	.lowest-venv/bin/python -m pip install --quiet --editable ".[all]" --group test \
	--constraint .lowest-venv/lowest.txt
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .lowest-venv/bin/python $(LOWEST_TESTS) \
	tests/engines tests/cli tests/minimal tests/predictions/test_from_table.py \
	tests/test_public_api.py tests/test_conformance.py
	.lowest-venv/bin/calibrant demo --out .lowest-venv/demo.png

docs: $(READY) ## build the documentation: docs/_build/html/index.html
	$(BIN)/python -m pip install --quiet --group docs
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html -j auto docs docs/_build/html
	@echo "wrote docs/_build/html/index.html"

MINUTES ?= 3
fuzz: $(READY) ## random cases for MINUTES=3; one again: CATEGORY=sweep SEED=20240501-37
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m fuzz \
	--minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(CATEGORY),--category $(CATEGORY))

bench: $(READY) ## race the peers (installs them into .bench-venv)
	$(PYTHON) -m venv .bench-venv
	.bench-venv/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.bench-venv/bin/python -m pip install --quiet torch==2.13.0
	.bench-venv/bin/python -m pip install --quiet --editable ".[cli,data,report]" -r benchmarks/requirements.txt
	.bench-venv/bin/python -m pip install --quiet --no-deps --ignore-requires-python dirichletcal==0.5.3
	.bench-venv/bin/python benchmarks/bench_binned.py
	.bench-venv/bin/python benchmarks/bench_piecewise.py
	.bench-venv/bin/python benchmarks/bench_kernel.py
	.bench-venv/bin/python benchmarks/bench_calibrators.py
	.bench-venv/bin/python benchmarks/bench_multiclass.py
	.bench-venv/bin/python benchmarks/bench_arena.py --quick --out .bench-venv/arena
	.bench-venv/bin/python benchmarks/bench_compare.py
	.bench-venv/bin/python benchmarks/bench_report.py
	.bench-venv/bin/python benchmarks/bench_startup.py
	.bench-venv/bin/python benchmarks/bench_engines.py 7

golden: ## record the peers' numbers that the tests compare with (after make bench)
	.bench-venv/bin/python tests/golden/record_peers.py
	.bench-venv/bin/python tests/golden/record_pwlf.py
	.bench-venv/bin/python tests/golden/record_kernel.py
	.bench-venv/bin/python tests/golden/record_calibrators.py
	.bench-venv/bin/python tests/golden/record_class_peers.py
	.bench-venv/bin/python tests/golden/record_scaling_peers.py

clean:
	rm -rf $(VENV) .bench-venv .minimal-venv .wheel-venv .lowest-venv build dist .coverage .mypy_cache .ruff_cache .pytest_cache
