PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-user test-slow plugin lint format coverage docs adversarial clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(STAMP)  ## set up, then make a LLaMA-style model faster
	$(BIN)/agentforge optimize examples/llama_block.py

# With slow tests, the order is that of tests/conftest.py: their modules first.
WHICH := $(if $(SLOW),, and not slow)
ORDER := $(if $(SLOW),--no-loadscope-reorder)

test: $(STAMP)  ## set up, then run the tests (SLOW=1: also those that take long)
	$(BIN)/python -m pytest -n 2 --dist loadscope $(ORDER) -m "not timing and not gpu$(WHICH)" $(MEASURED)
	$(BIN)/python -m pytest -m "timing and not gpu$(WHICH)"

test-slow: $(STAMP)  ## the tests that take long
	$(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder -m "slow and not timing and not gpu"
	$(BIN)/python -m pytest -m "slow and timing and not gpu"

# Arithmetic: it is the same for every user.
CHECKS     := properties task_strength gradients trained_weights
ARITHMETIC := tests/referee/inputs tests/referee/comparison tests/referee/timing/test_sequential.py \
              $(CHECKS:%=tests/referee/checks/test_%.py)

test-user: $(STAMP)  ## the referee's tests by a user without rights, also if root runs this
	$(BIN)/python -m tests.ordinary $(BIN)/python -m pytest -q -p no:cacheprovider -n 2 --dist loadscope \
	  -m "not slow and not timing and not gpu" $(ARITHMETIC:%=--ignore=%) tests/isolation tests/referee

PLUGIN_PYTHON ?= $(BIN)/python

plugin: $(STAMP)  ## install examples/plugin and run its tests (PLUGIN_PYTHON: another environment)
	$(PLUGIN_PYTHON) -m pip install --quiet --no-deps ./examples/plugin
	cd examples/plugin && $(abspath $(PLUGIN_PYTHON)) -m pytest -q -p no:cacheprovider --rootdir . tests

lint: $(STAMP)  ## ruff, mypy --strict, import-linter, deptry, words, sizes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/python tools/check_words.py
	$(BIN)/python tools/check_sizes.py

docs: $(STAMP)  ## build the documentation site into site/, in strict mode
	$(BIN)/python -m tools.docs_reference
	$(BIN)/zensical build --strict --clean

COVERED := schema store knowledge search loop llm
coverage: MEASURED := $(COVERED:%=--cov=agentforge.%) --cov-report=term:skip-covered
coverage: test  ## the fast tests with the line coverage of packages that run in their own process, and a floor

format: $(STAMP)  ## let ruff rewrite the files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

adversarial: $(STAMP)  ## run the referee on the adversarial corpus: catch rate, false-positive rate
	$(BIN)/python benchmarks/adversarial/run.py

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "AgentForge needs Python 3.11 or newer: add PYTHON=python3.12, or the one that you have"; exit 1; }
	@command -v g++ >/dev/null || { apt-get update -q && apt-get install -yq g++; } \
	  || { echo "AgentForge needs g++: install it with your package manager"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, pathlib, sysconfig; pathlib.Path(sysconfig.get_path("include"), "Python.h").stat()' \
	  2>/dev/null || { apt-get update -q && apt-get install -yq python3-dev python3-venv; } \
	  || echo "without Python's headers torch.compile fails: install them (python3-dev) with your package manager"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable ".[dev]"
# pip would compile with one process. Some packages have files that no Python compiles: their errors are no failure.
	$(BIN)/python -W ignore -m compileall -qq -j 2 $(VENV)/lib || true
	touch $@

clean:  ## remove the environment and all build outputs
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache site .coverage
