# Each target sets up what it needs, once: Python 3.11 or newer, make and a network are
# enough. `make help` lists the targets.

PYTHON ?=
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# A stamp says that the environment has what pyproject.toml asks for at this level.
BASE := $(VENV)/.tenure-base
DEMO := $(VENV)/.tenure-demo
TEST := $(VENV)/.tenure-test
CHECK := $(VENV)/.tenure-check
E2E := $(VENV)/.tenure-e2e

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test chaos check lint types format bench matrix wheel-test clean
.PHONY: e2e e2e-light

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo '  PYTHON=python3.12   the interpreter of a new .venv'
	@echo '  ARGS="..."          is passed on, as in: make test ARGS="-k fence"'

demo: $(DEMO) ## watch a run lose data, and the detector prove it
	@$(BIN)/tenure demo $(ARGS)

test: $(TEST) ## run the tests on the sources
	$(BIN)/pytest $(ARGS)

chaos: $(TEST) ## stop and kill competing processes for a minute
	TENURE_CHAOS_SECONDS=$${TENURE_CHAOS_SECONDS:-60} \
	TENURE_CHAOS_PAUSES=$${TENURE_CHAOS_PAUSES:-2000} \
	$(BIN)/pytest tests/runtime/chaos -s $(ARGS)

check: lint types ## everything that reads the sources without running them

lint: $(CHECK)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

types: $(CHECK)
	$(BIN)/mypy
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

format: $(CHECK) ## let ruff arrange the sources
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(TEST) ## measure what safety and telemetry cost
	$(BIN)/python -m benchmarks $(ARGS)

matrix: $(TEST) ## play the stories on every version of agent-framework
	$(BIN)/python tests/matrix/run.py $(ARGS)

e2e: $(E2E) ## send telemetry to real backends, and ask them; MLflow takes 850 MB
	@.ci/backends mlflow
	$(BIN)/pytest tests/e2e -m e2e $(ARGS)

e2e-light: $(E2E) ## the same without MLflow
	$(BIN)/pytest tests/e2e -m "e2e and not mlflow" $(ARGS)

wheel-test: $(CHECK) ## build the wheel and test it where no source is in reach
	.ci/wheel-test $(ARGS)

clean: ## remove the environment, what was built, and every cache
	rm -rf $(VENV) .venvs dist build .coverage .hypothesis
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BASE):
	@.ci/venv $(VENV) $(PYTHON)
	@touch $@

$(DEMO): pyproject.toml $(BASE)
	@echo 'Installing tenure and what its demonstration needs into $(VENV) (once)'
	@$(PIP) --editable '.[demo]'
	@touch $@

$(TEST): pyproject.toml $(BASE)
	@echo 'Installing tenure and what its tests need into $(VENV) (once)'
	@$(PIP) --editable . --group test
	@.ci/browser
	@touch $@ $(DEMO)

$(E2E): $(TEST)
	@echo 'Installing what the tests against real backends need (once)'
	@$(PIP) --group e2e
	@.ci/backends prometheus
	@touch $@

$(CHECK): $(TEST)
	@echo 'Installing what checks the sources into $(VENV) (once)'
	@$(PIP) --group check
	@touch $@
