# Every target sets itself up: a .venv with the locked dependencies, made once and again when the lock changes.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
SECONDS ?= 300
HOURS   ?= 1
UV      := uv>=0.9,<1

.DEFAULT_GOAL := help
.PHONY: help demo test lint soak endure bench docs lock clean servers

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## a million keys move between workers, who come and go, while the stream flows: live, and as a picture
	@echo "--- Two workers, two processes: each number goes to the worker that its value names (examples/hello.py)"
	@$(BIN)/python examples/hello.py
	@echo "--- A word count whose state moves from worker 0 to worker 1 at time 1, while it counts (examples/wordcount.py)"
	@$(BIN)/python examples/wordcount.py
	@echo "--- NEXMark Q8: two million persons, half of one worker's state moves to the other and back, in three ways; then a third worker joins and leaves"
	@$(BIN)/python -m nexmark demo

# pyproject.toml tells pytest to run the packages' doctests as well; the tests include one that runs every example.
test: lint servers ## lint, strict types, doctests, every example, the whole test suite
	$(BIN)/python -m tests.together

lint: $(READY) ## ruff and mypy only
	$(BIN)/ruff check .
	$(BIN)/mypy

# The servers that tests start come with the lock, except PostgreSQL; and the browser does not. They are installed where
# that is ours to do (root on Debian); elsewhere their tests are skipped, and say so. An install that fails is told, and
# is no reason not to test.
servers:
	@if command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing postgresql, for its tests"; \
		export DEBIAN_FRONTEND=noninteractive; \
		timeout 300 sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends postgresql' >/dev/null \
			|| echo "postgresql could not be installed: its tests are skipped"; \
	else \
		echo "no PostgreSQL server here: its tests are skipped. Debian: apt-get install postgresql; macOS: brew install postgresql"; \
	fi
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing chromium, for the tests of the live page"; \
		export DEBIAN_FRONTEND=noninteractive; \
		timeout 300 sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium chromium-driver fonts-dejavu-core' >/dev/null \
			|| echo "chromium could not be installed: the tests of the page in a browser are skipped"; \
	else \
		echo "no Chromium here: the tests of the page in a browser are skipped. Debian: apt-get install chromium chromium-driver"; \
	fi

soak: $(READY) ## random cases for SECONDS (300 unless you say: make soak SECONDS=3600), or CASES of each kind
	$(BIN)/python -m tests.soak --seconds $(SECONDS) $(if $(CASES),--cases $(CASES))

endure: $(READY) ## a run with its troubles for HOURS (1 unless you say), and a page about it, endure/report.html
	$(BIN)/python -m bench.endure --hours $(HOURS)

bench: $(READY) ## every benchmark, at full length
	$(BIN)/python -m bench run all

docs: $(READY) ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open build/site/index.html"

# Keeps every pin that still fits pyproject.toml; `make lock UPGRADE=--upgrade` takes the newest of everything.
lock: $(BIN)/python ## resolve pyproject.toml into requirements.lock anew (needs the network)
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet '$(UV)'
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url $(UPGRADE) \
		--custom-compile-command 'make lock' --extra dev --output-file requirements.lock pyproject.toml

clean: ## remove the .venv and everything built or cached
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: Python 3.11 or newer is needed, and '$(PYTHON)' is not that." >&2; \
		echo "       Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
