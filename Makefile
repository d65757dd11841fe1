PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test test-slow lint format adversarial benchmarks clean

demo: $(STAMP)  ## set up, then make a LLaMA-style model faster
	$(BIN)/agentforge optimize examples/llama_block.py

test: $(STAMP)  ## set up, then run the tests
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow and not timing and not gpu"
	$(BIN)/python -m pytest -m "timing and not slow and not gpu"

test-slow: $(STAMP)  ## the tests that take long
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "slow and not timing and not gpu"
	$(BIN)/python -m pytest -m "slow and timing and not gpu"

lint: $(STAMP)  ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

adversarial: $(STAMP)  ## judge the adversarial corpus: catch rate, false-positive rate
	$(BIN)/python benchmarks/adversarial/run.py

$(STAMP): pyproject.toml constraints.txt
	@command -v g++ >/dev/null || { apt-get update -q && apt-get install -yq g++; } \
	  || { echo "AgentForge needs g++: install it with your package manager"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
