# `make help` lists what there is. Everything is installed into .venv; nothing outside this
# folder is touched but the per-user cache of the real control plane (make e2e).
.DELETE_ON_ERROR:
SHELL := /bin/bash

PYTHON ?= python3
KUBERNETES ?= 1.37.1
CONFORMANCE ?= ../shared/conformance
ARGS ?=

bin := .venv/bin
installed := .venv/.installed
pure := policy extender/cells extender/room extender/runs extender/queue timemachine
# Each process of the tests starts databases of its own: more than a few do not help.
parallel := --numprocesses auto --maxprocesses 4 --dist worksteal
# Modules have control planes of their own, and wait more than they compute.
two := --numprocesses 2 --dist loadfile --no-loadscope-reorder
packages := bench certs cli extender kube policy service simulation state timemachine webhook

# Tests start many processes: compiled once, each starts in three quarters of the time.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache

.PHONY: run test histories starvation e2e extender-chaos history-chaos zoo conformance bench verify help lint types tests hashseeds reference lock clean

help: ## List the commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

run: $(installed) ## Install what is needed and run everything on this machine (ARGS=--help for flags)
	@exec $(bin)/cellgate run $(ARGS)

test: $(installed) lint types tests hashseeds ## Install what is needed and run all checks but e2e

histories: $(installed) ## Play random histories of engine, planner and more, 10,000 of each (HISTORIES=1000 for fewer)
	HYPOTHESIS_PROFILE=histories $(bin)/python -m pytest $(parallel) $(ARGS) \
	  tests/property/test_engine.py tests/property/test_planner.py tests/property/test_waking.py \
	  tests/property/test_following.py tests/property/test_rebuilding.py \
	  tests/property/test_simulation.py tests/property/test_run_recording.py

starvation: $(installed) ## Play adversarial arrivals, 1,000 histories of each strategy: no gang waits longer than its bound
	HYPOTHESIS_PROFILE=histories HISTORIES=$(or $(HISTORIES),1000) $(bin)/python -m pytest $(parallel) $(ARGS) \
	  tests/property/test_no_starvation.py

e2e: $(installed) ## Run the tests on a real control plane (needs Go once; KUBERNETES=1.35.8 for an older one)
	@KUBERNETES=$(KUBERNETES) $(bin)/python -m tests.controlplane.binaries
	KUBERNETES=$(KUBERNETES) $(bin)/python -m pytest tests/e2e $(two) $(ARGS)

zoo: $(installed) ## Run workloads of every kind at random on a real control plane (ARGS="--minutes 30 --seed 7")
	@KUBERNETES=$(KUBERNETES) $(bin)/python -m tests.controlplane.binaries
	KUBERNETES=$(KUBERNETES) $(bin)/python -m tests.zoo $(or $(ARGS),--minutes 30)

conformance: $(installed) ## Play HiveD's scenarios over HTTP against the extender (CONFORMANCE=DIR: where they are)
	@test -f $(CONFORMANCE)/run.py || { echo "make: $(CONFORMANCE) has no run.py; set CONFORMANCE=DIR" >&2; exit 2; }
	cd $(CONFORMANCE) && CELLGATE=$(CURDIR)/$(bin)/cellgate \
	  KUBE_BIN="$$(cd $(CURDIR) && KUBERNETES=$(KUBERNETES) $(bin)/python -m tests.controlplane.binaries)" \
	  $(CURDIR)/$(bin)/python run.py --target targets/cellgate.json ../reference/hived-vectors/$(or $(ARGS),*.json)

bench: $(installed) ## Measure, and compare with the budgets in bench/budgets.yaml
	$(bin)/python -m bench all $(ARGS)

extender-chaos: $(installed) ## 600 gangs while extender, scheduler, API server and Postgres are killed: none is lost or double
	EXTENDER_GANGS=100 $(bin)/python -m pytest tests/e2e/test_extender_chaos.py $(ARGS)

history-chaos: $(installed) ## 500 gangs while leaders, webhooks and Postgres are killed: each is in the history once
	HISTORY_GANGS=500 $(bin)/python -m pytest -rP tests/e2e/test_history.py $(ARGS)

verify: export HYPOTHESIS_PROFILE := deep
verify: test ## Everything CI runs but e2e: deep property tests, short benchmarks, a clean tree
	$(bin)/python -m bench all --quick
	@git diff --exit-code --stat && test -z "$$(git status --porcelain)" || { echo "verify: the tree is not clean" >&2; git status --short >&2; exit 1; }

lint: $(installed)
	$(bin)/ruff format --check .
	$(bin)/ruff check .

types: $(installed)
	$(bin)/mypy $(packages) tests

tests: $(installed)
	$(bin)/python -m pytest tests --ignore=tests/e2e $(parallel) $(ARGS)

# Iteration over a set must never reach a decision: the pure packages run under two hash seeds. The
# first run has few examples and measures branch coverage, whose floor is in pyproject.toml.
hashseeds: $(installed)
	@rm -rf build/coverage
	PYTHONHASHSEED=1 HYPOTHESIS_PROFILE=brief $(bin)/coverage run -m pytest -q -m pure $(parallel) tests
	@$(bin)/coverage combine --quiet
	@total=$$($(bin)/coverage report --format=total) && echo "branch coverage of $(pure): $$total %" || { $(bin)/coverage report; exit 1; }
	PYTHONHASHSEED=2 HYPOTHESIS_PROFILE=fast $(bin)/python -m pytest -q -m pure $(parallel) tests

reference: $(installed) ## Write docs/policy-reference.md and docs/metrics.md anew, from the code
	$(bin)/python -c 'from policy.reference import format_reference as text; print(text(), end="")' > docs/policy-reference.md
	$(bin)/python -m tests.support.documents.metrics_page > docs/metrics.md

lock: ## Resolve the dependencies anew into requirements.lock
	$(PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet uv
	build/lock/bin/uv pip compile pyproject.toml --extra embedded --group dev --group browser --universal \
	  --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --quiet --upgrade --output-file requirements.lock

clean: ## Remove what the other commands made in this folder
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(installed): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11; set PYTHON=python3.x" >&2; exit 2; }
	@echo "Installing into .venv (once, about a minute) …"
	@$(PYTHON) -m venv .venv
	@$(bin)/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock
	@$(bin)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
