# The two commands a newcomer needs: `make demo` and `make test`.  Each builds the environment by itself.
#   make test ARGS="-k session -x"        arguments for pytest
#   make test VENV=.venv-3.12 PYTHON=python3.12

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=

BIN   := $(VENV)/bin
STAMP := $(VENV)/.stamp
PIP   := $(BIN)/python -m pip --disable-pip-version-check -q -q install -c constraints.txt
CODE  := runtime codegen generated

# Suites with a target of their own.
APART := conformance interop bench

.DEFAULT_GOAL := help
.PHONY: help setup demo test generate check drift lint format types imports conformance interop bench requirements clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP) ## Build the environment in .venv (again only when the dependencies change)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: Python 3.11 or newer is needed, and '$(PYTHON)' is `$(PYTHON) -V 2>&1`." >&2; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Building $(VENV) with `$(PYTHON) -V` (about a minute) ..."
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); echo "error: '$(PYTHON) -m venv' failed; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation -e '.[codegen,rich,dev]'
	@touch $@

demo: setup ## Show the chain from schema to typed calls
	@$(BIN)/python docs/examples/demo.py $(ARGS)

test: setup ## Run the unit suite
	$(BIN)/python -m pytest tests $(APART:%=--ignore=tests/%) -n auto $(ARGS)

generate: setup ## Make generated/ from schema/ and print what changed
	@$(BIN)/python -m typedmcp_codegen generate $(ARGS)

check: drift lint types imports ## Run every check that runs no test: drift, lint, types, imports

drift: setup ## Compare generated/ with what schema/ gives
	@$(BIN)/python -m typedmcp_codegen generate --check

lint: setup ## Run ruff's rules and its format check
	@$(BIN)/ruff check; rules=$$?; $(BIN)/ruff format --check && exit $$rules

format: setup ## Apply ruff's fixes and its format
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

types: setup ## Run mypy and pyright, both strict
	@$(BIN)/mypy; mypy=$$?; $(BIN)/pyright --pythonpath $(BIN)/python && exit $$mypy

imports: setup ## Check which package may import which
	$(BIN)/lint-imports --no-logo

conformance: setup ## Run the official conformance suite against the everything server
	$(BIN)/python -m pytest tests/conformance $(ARGS)

interop: setup ## Talk to other MCP libraries, each in an environment of its own
	$(BIN)/python -m pytest tests/interop $(ARGS)

bench: setup ## Measure, beside other libraries in the same run
	$(BIN)/python tests/bench/bench.py $(ARGS)

requirements: setup ## Print which requirements no test names
	@$(BIN)/python tests/requirements.py $(ARGS)

clean: ## Remove environments, caches and build results
	rm -rf tests/interop/.peers tests/bench/.peer tests/conformance/.suite
	rm -rf .venv .venv-* build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find $(CODE) tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
