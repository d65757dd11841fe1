PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test test-slow lint adversarial clean

demo: $(STAMP)  ## set up, then make a LLaMA-style block faster
	$(BIN)/agentforge optimize examples/llama_block.py

test: $(STAMP)  ## set up, then run the tests
	$(BIN)/python -m pytest -n auto --dist loadscope -m "not slow and not timing and not gpu"
	$(BIN)/python -m pytest -m "timing and not slow and not gpu"

test-slow: $(STAMP)  ## the tests that take long
	$(BIN)/python -m pytest -m "slow and not gpu"

lint: $(STAMP)  ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(STAMP): pyproject.toml constraints.txt
	./scripts/system-packages
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
