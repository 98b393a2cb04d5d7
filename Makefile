# `make demo` and `make test` are all a newcomer needs. Everything lives in .venv; nothing else is touched.
# uv does the installing where it is found, pip otherwise.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
UV := $(shell command -v uv 2>/dev/null)

.PHONY: help env demo test lint types schemas docs slow engines bench-search bench-client bench-power lock clean
.DEFAULT_GOAL := help

help: ## What there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/' | expand -t 22

env: $(VENV)/.ready ## The environment: .venv with everything of requirements.lock

$(VENV)/.ready: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: name one with make PYTHON=..."; exit 1; }
	@echo "Installing into $(VENV), about a minute"
ifdef UV
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
else
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --upgrade pip
	$(BIN)/python -m pip install -qq --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
endif
	@touch $@

demo: env ## Measure the embedded engine, build a site of it, say where it is
	$(BIN)/tokenwatt-site demo

test: env lint types ## Linters, types, import contracts and every test that is not slow
	@printf 'lint and types\t%s\n' "$$(date +%s)" >> "$${TOKENWATT_STAGES:-/dev/null}"
	$(BIN)/python -m pytest --cov $(ARGS)

lint: env ## Ruff and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: env ## mypy and pyright, both strict
	$(BIN)/mypy
	$(BIN)/basedpyright

schemas: env ## Write schemas/ from the models
	$(BIN)/python -m tokenwatt_site.documents.schema schemas

docs: env ## Write docs/spec.md, docs/commands.md and docs/hardware.md from the code and content
	$(BIN)/python -m tokenwatt_site.documents.reference docs/spec.md
	$(BIN)/python -m tokenwatt_site.documents.hardware_table content/hardware docs/hardware.md
	$(BIN)/python -m tokenwatt_site.cli.reference docs/commands.md

slow: env ## The tests that take minutes
	$(BIN)/python -m pytest -m slow $(ARGS)

engines: env ## The tests against real engines, long ones too
	$(BIN)/python -m pytest tests/real -m "real and not gpu" $(ARGS)

bench-client: env ## Load generators beside ours, 20 minutes; installs several GB into .cache
	$(BIN)/python benchmarks/client run --envs .cache/peers --rounds 3

bench-power: env ## Reading eight GPUs of a stub beside Zeus, 4 minutes
	python3 -m venv .cache/zeus && .cache/zeus/bin/pip install -q zeus==0.16.0
	$(BIN)/python -m benchmarks.power --zeus .cache/zeus/bin/python --rounds 3

bench-search: env ## Searches against servers of known limits, hours; stop and resume at will
	$(BIN)/python -m benchmarks.search_policy run --shape cal --seeds 1-300
	$(BIN)/python -m benchmarks.search_policy run --seeds 1-100
	$(BIN)/python -m benchmarks.search_policy table

lock: env ## Refresh requirements.lock (needs uv: pip install uv)
	uv pip compile pyproject.toml --universal --upgrade --generate-hashes --group dev --extra llamacpp --extra amd \
	  --no-annotate --no-emit-index-url --custom-compile-command "make lock" -o requirements.lock

clean: ## Remove what was made: the environment, caches and output
	rm -rf $(VENV) .cache .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache dist site
