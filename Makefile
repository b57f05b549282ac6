# Everything a developer runs. The environment is made on first use, every version pinned by infra/constraints.txt.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONSTRAINTS := infra/constraints.txt
PIP_VERSION := $(shell sed -n 's/^pip==//p' $(CONSTRAINTS))

.PHONY: setup demo test bench lint coverage bounds constraints clean

setup: $(VENV)/.complete

$(VENV)/.complete: pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"Python 3.11 or later is needed, $(PYTHON) is {sys.version.split()[0]}")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check pip==$(PIP_VERSION)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --build-constraint $(CONSTRAINTS) --editable . --group dev
	@touch $@

# Three models of 336,776 flights, explained by the nightly flow.
demo: setup
	$(BIN)/python -m infra.demo

test: setup
	$(BIN)/python -m pytest

# Rows per second against the libraries' own contributions and predictions.
bench: setup
	$(BIN)/python -m tests.bench

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Kernels as plain Python, every line of them run.
coverage: setup
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/kernels --cov

# Kernels with every index checked, in a cache of their own.
bounds: setup
	cache=$$(mktemp -d) && trap 'rm -rf "$$cache"' EXIT && \
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$$cache $(BIN)/python -m pytest tests/kernels tests/pipeline/test_attributions.py

# Resolve every version anew, for all Pythons at once.
constraints: setup
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --upgrade \
		--no-header --no-annotate --output-file $(CONSTRAINTS)

clean:
	rm -rf $(VENV) build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
