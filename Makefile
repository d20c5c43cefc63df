# Every target makes what it needs first: a fresh clone with Python 3.11+ and make is enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help venv demo test test-slow e2e check format bench docs pictures clean lock proto

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

venv: $(STAMP) ## make .venv with dray (editable) and the development tools

$(STAMP): pyproject.toml requirements/dev.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dray needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: venv ## run the main job and show what happens
	@$(BIN)/dray demo

test: venv ## run the tests (the slow ones have a target of their own)
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-slow: venv ## run the tests that take minutes
	$(BIN)/python -m pytest -q -m slow

e2e: venv ## run scheduler and controllers against any cluster: make e2e KUBECONFIG=FILE
	DRAY_E2E_KUBECONFIG=$(abspath $(KUBECONFIG)) $(BIN)/python -m pytest -q tests/e2e/test_any_cluster.py

check: venv ## format, lint, types, layers, docs
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory docs

format: venv ## put the code into shape
	$(BIN)/ruff format src tests bench
	$(BIN)/ruff check --fix src tests bench

docs: venv ## build the documentation into build/docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs

pictures: venv ## draw the pictures of README and documentation anew, from a cluster that really runs
	$(BIN)/python docs/pictures/draw.py

bench: venv ## run the benchmarks; they print ratios and never fail on time
	@for file in bench/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

lock: venv ## write requirements/dev.txt anew from pyproject.toml
	$(BIN)/python requirements/lock.py

clean: ## remove everything that make made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

proto: venv ## generate the gRPC code anew from src/dray/proto/*.proto
	$(BIN)/python -m grpc_tools.protoc -Isrc --python_out=src --pyi_out=src --grpc_python_out=src src/dray/proto/*.proto
