# Every target makes the environment it needs; nothing is reinstalled while its pins are unchanged.
#
#   make PYTHON=/path/to/python3.12 test     another interpreter (3.11 or newer)
#   make test PYTEST_ARGS="tests/sdk -x"     further arguments for pytest
#   make bench PROGRAM=benchmarks/sdk/hot_path.py BENCH_ARGS="--help"

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for candidate in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo "$$candidate"; break; }; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Three workers, since tests wait for browsers and servers; compiled once for all processes they start.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo docs test test-quick test-long test-breaks test-integrations check bench format requirements chromium frameworks clean

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.server ## a server on a fresh database and a fleet of simulated agents, until Ctrl-C
	@exec $(BIN)/toolfault demo $(DEMO_ARGS)

test: $(VENV)/.dev chromium frameworks ## every test but the long ones
	$(PYTEST) -m "not long" --durations 20 $(PYTEST_ARGS)

test-quick: $(VENV)/.dev ## the fast tests: no browser, no PostgreSQL
	$(PYTEST) -m "not long and not slow and not browser and not postgres" $(PYTEST_ARGS)

test-long: $(VENV)/.dev chromium ## only the long ones: full matrices, kills, disks, outages; frameworks are below
	$(PYTEST) --dist worksteal -m "long" --ignore tests/integrations --timeout 3600 --durations 20 $(PYTEST_ARGS)

test-integrations: $(VENV)/.dev ## every agent framework, newest and oldest version; makes their environments
	$(BIN)/python -m tests.integrations.environments
	$(BIN)/python -m tests.integrations.exporters.environments
	$(BIN)/python -m pytest tests/integrations -m "long or not long" $(PYTEST_ARGS)

test-breaks: $(VENV)/.dev chromium frameworks ## break the product on purpose, once per promise; the tests must notice
	$(BIN)/python tests/breaks/run.py $(BREAKS_ARGS)

check: $(VENV)/.dev ## format, lint, types, import contracts, and that the planted breaks fit the code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tests/breaks/run.py --check

docs: $(VENV)/.dev ## the documentation as a site, in build/site; any warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.dev ## measure: PROGRAM=benchmarks/...; without it, list the programs
ifdef PROGRAM
	$(BIN)/python $(PROGRAM) $(BENCH_ARGS)
else
	@grep -l "^def main" benchmarks/*/*.py
endif

format: $(VENV)/.dev ## format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

requirements: $(VENV)/.dev ## pin requirements/*.in anew, keeping what still fits
	cd requirements && ./compile ../$(BIN)/uv

clean: ## remove the environment, builds and caches
	rm -rf $(VENV) build dist sdk/dist demo/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Made anew only where its list changed. Without a network the tests that need one are skipped and
# say so; with CI=true they fail.
frameworks: $(VENV)/.dev
	@$(BIN)/python -m tests.integrations.environments --quick || true

# A browser is wanted, never required: without one the browser tests are skipped and say so.
chromium:
	@found() { for name in chromium chromium-browser google-chrome; do \
		command -v $$name >/dev/null 2>&1 && return; done; return 1; }; \
	install() { apt-get install -y -qq --no-install-recommends "$$1"; }; \
	export DEBIAN_FRONTEND=noninteractive; \
	if command -v chromium-headless-shell >/dev/null 2>&1 || { [ -z "$$CI" ] && found; }; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "Installing Chromium for the browser tests."; \
		{ install chromium-headless-shell || { apt-get update -qq && install chromium-headless-shell; } \
		|| found || install chromium; } >/dev/null 2>&1 \
		|| echo "Chromium could not be installed: the browser tests will be skipped."; \
	elif ! found; then \
		echo "No Chromium found (install it with your package manager): the browser tests will be skipped."; \
	fi

$(VENV)/.made:
	@if [ -z "$(PYTHON)" ]; then \
		echo "toolfault needs Python 3.11 or newer and found none." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; fi
	@$(PYTHON) -m venv $(VENV) || { \
		echo "$(PYTHON) cannot make environments; on Debian or Ubuntu: apt-get install python3-venv" >&2; \
		exit 1; }
	@touch $@

$(VENV)/.server: requirements/build.txt requirements/server.txt pyproject.toml sdk/pyproject.toml demo/pyproject.toml | $(VENV)/.made
	@echo "Installing toolfault into $(VENV) (once; about a minute)."
	@$(PIP) install --quiet --require-hashes -r requirements/build.txt -r requirements/server.txt
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable ./sdk --editable ./demo --editable .
	@touch $@

# dev.txt contains every pin of server.txt and build.txt, hence the server's stamp is touched too.
$(VENV)/.dev: requirements/dev.txt pyproject.toml sdk/pyproject.toml demo/pyproject.toml | $(VENV)/.made
	@echo "Installing toolfault and the development tools into $(VENV) (once; some minutes)."
	@$(PIP) install --quiet --require-hashes -r requirements/dev.txt
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable ./sdk --editable ./demo --editable .
	@touch $@ $(VENV)/.server
