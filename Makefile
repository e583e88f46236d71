# Each target does its own set-up: only Python >= 3.11, pip and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development
DOCUMENTATION := $(VENV)/.documentation
TYPES := $(BIN)/mypy && $(BIN)/lint-imports && $(BIN)/python tests/import_cycles.py

# Compiled kernels are cached by the text of all kernels: Numba itself does not notice a change in a called module.
export NUMBA_CACHE_DIR := $(CURDIR)/.cache/numba/$(shell cat src/lurking/kernels/*.py src/lurking/kernels/cpu/*.py src/lurking/kernels/cpu/*/*.py | cksum | cut -d' ' -f1)

CASES ?= tests/oracle/data

.PHONY: demo test test-long conformance lint style types bench bench-growth docs clean

demo: $(RUNTIME)  ## the main job on a bundled real data set, ending in a table and a picture
	$(BIN)/lurking demo --out out

test: style  ## everything that must hold; types and layers are checked while the tests run, and printed after them
	@mkdir -p .cache
	@($(TYPES)) > .cache/types.log 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -n auto --dist worksteal; tests=$$?; \
	wait $$types; types=$$?; \
	cat .cache/types.log; \
	test $$tests -eq 0 && test $$types -eq 0

test-long: $(DOCUMENTATION)  ## statistical checks that take long, left out of "make test"
	$(BIN)/python -m pytest -n auto --dist worksteal -m long

conformance: $(DEVELOPMENT)  ## compare every number of the reference cases in CASES with the library
	PYTHONPATH=tests $(BIN)/python -m conformance $(CASES)

lint: style types  ## style, types, layers, import cycles

style: $(DEVELOPMENT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEVELOPMENT)
	$(TYPES)

bench: $(DEVELOPMENT)  ## speed against peers, in an environment of their own
	$(BIN)/python benchmarks/make_peers.py
	$(BIN)/python benchmarks/run.py

bench-growth: $(DEVELOPMENT)  ## how an E-step grows with rows, columns, states and tree width, and a roofline
	$(BIN)/python benchmarks/make_peers.py
	$(BIN)/python benchmarks/growth.py

docs: $(DOCUMENTATION)  ## run every code block of the documentation, then build it into site/
	$(BIN)/python -m pytest tests/docs -m "long or not long"
	$(BIN)/mkdocs build --strict --quiet

clean:  ## remove everything that was built
	rm -rf $(VENV) .bench-venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis site out

$(RUNTIME): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("lurking needs Python 3.11 or newer; run: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(DEVELOPMENT): $(RUNTIME)
	$(PIP) -e ".[dev]"
	@touch $@

$(DOCUMENTATION): $(DEVELOPMENT)
	$(PIP) -e ".[dev,docs]"
	@touch $@
