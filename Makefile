# Everything runs from .venv, made here on first use. `make help` lists the targets.

PYTHON ?= python3
PYTEST_ARGS ?= -n 2 --dist worksteal
VENV := .venv
BIN := $(VENV)/bin
COV := --cov-report= --cov-fail-under=0
SLOWEST := --durations=15 --durations-min=1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo live test test-long format lint types imports unit package bench docs figures clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-9s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.has-plots  ## place new points on a map; results in build/demo
	$(BIN)/outsample demo --out build/demo

test: lint types imports unit package  ## all checks; what CI runs

test-long: $(VENV)/.has-dev  ## nightly: laws with 200 examples each, what is marked long, fuzzes
	$(BIN)/pytest tests --hypothesis-profile=nightly -m "laws or long" $(SLOWEST) $(PYTEST_ARGS)
	OUTSAMPLE_FUZZ=20000 $(BIN)/pytest -s tests/estimators/test_fuzz.py -k random
	OUTSAMPLE_FILE_FUZZ=10000 $(BIN)/pytest -s tests/files/test_bad_model_files.py -k mutants

format: $(VENV)/.has-dev  ## sort imports and lay out the code as ruff does
	$(BIN)/ruff check --select I --fix .
	$(BIN)/ruff format .

lint: $(VENV)/.has-dev  ## ruff, hadolint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/hadolint deploy/Dockerfile

types: $(VENV)/.has-dev  ## mypy, and a strict client of the public names
	$(BIN)/mypy
	MYPYPATH=src $(BIN)/mypy --strict --follow-imports=silent tests/typed_client.py

imports: $(VENV)/.has-dev  ## import layers
	$(BIN)/lint-imports

# Two processes of tests fill two cores: more threads of OpenMP only wait for one another. BLAS
# keeps its two, because there are tests of what they change. Bytecode is kept, whatever the
# environment says: the tests start many processes.
unit: export OMP_NUM_THREADS = 1
unit: export OPENBLAS_NUM_THREADS = 2
unit: export PYTHONDONTWRITEBYTECODE =
# Coverage cannot see into compiled kernels, so their tests run once more as plain Python
# (which, unlike compiled code, warns of overflow: not a fault there).
unit: $(VENV)/.has-dev  ## tests and doctests, with coverage
	$(BIN)/pytest --cov $(COV) $(SLOWEST) $(PYTEST_ARGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest tests -m 'kernels and not long' --no-header -W ignore::RuntimeWarning --cov=src/outsample/_compiled $(COV) --cov-append $(PYTEST_ARGS)
	$(BIN)/coverage report

package: $(VENV)/.has-dev  ## wheel and source, installed where there is nothing else, and tried
	rm -rf build/package
	$(BIN)/python -m build --outdir build/package >/dev/null
	$(PYTHON) -m venv build/package/venv
	build/package/venv/bin/python -m pip install --quiet build/package/*.whl
	cd build/package && NUMBA_DISABLE_JIT=1 venv/bin/python -W ignore ../../tests/smoke.py

live: $(VENV)/.has-serve  ## a service, its page and a day of traffic, to be watched in a browser
	$(BIN)/python -m outsample_lab.stream.live

bench: $(VENV)/.has-bench  ## compare with other libraries
	$(BIN)/outsample bench

docs: $(VENV)/.has-docs  ## documentation in build/docs, with the gallery run
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

figures: $(VENV)/.has-dev  ## write the tables of the docs from RESULTS="accuracy.json novelty.json"
	$(BIN)/python -m outsample_lab.figures.write_figures $(RESULTS)

clean:  ## remove what the other targets made, except .venv
	rm -rf build dist .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src lab tests -name __pycache__ -prune -exec rm -rf {} +

# One stamp per extra: nothing is installed again until a pyproject.toml changes.
$(VENV)/.has-bench: pyproject.toml lab/pyproject.toml | $(BIN)/pip
	$(BIN)/python -m pip install --quiet --editable . --editable "./lab[bench]"
	@touch $@

$(VENV)/.has-%: pyproject.toml lab/pyproject.toml | $(BIN)/pip
	$(BIN)/python -m pip install --quiet --editable ".[$*]" --editable ./lab
	@touch $@

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
