# Only make and Python 3.11 or newer are needed; everything else, Kafka included, is installed into .venv.
BIN := .venv/bin
INSTALLED := .venv/.installed
# What a pipe's first command says counts.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
# Where the environment forbids Python to keep what it compiled, each process of the tests would compile all again.
unexport PYTHONDONTWRITEBYTECODE
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
# Of the interpreters on this machine, the first that is new enough.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	if $$python -c '$(NEW_ENOUGH)' 2>/dev/null; then echo $$python; break; fi; done)

.PHONY: help install python kernel tested tooled programs tools demo demo-geo test test-stories test-laws test-kernel test-long test-twin quick check lint style mypy types doctest fix reference docs pictures lock wheel wheels clean
.PHONY: bench bench-accuracy bench-decay bench-places bench-few-users bench-presence bench-kernel bench-growth bench-release bench-keys bench-idle bench-live audit-privacy mutants golden test-deploys test-operators test-orders test-lanes test-cluster fuzz
.DEFAULT_GOAL := help

help:
	@echo 'make demo      install, then stream real purchases through a real Kafka and look at the releases'
	@echo 'make demo-geo  the same with simulated buses: speeds by place and hour, on a map'
	@echo 'make install   install what is needed to run shoal into .venv: Kafka, the kernel where there is cargo, .venv/bin/shoal'
	@echo 'make kernel    build the kernel, the hot path in Rust (see docs/explanation/kernel.md), and say why if that fails'
	@echo 'make tools     install what tests, benchmarks and pages need: peers, MkDocs, Chromium, Prometheus, kcat, jq (programs with apt, as root)'
	@echo 'make quick     lint, types and the tests that your changes reach and that need no broker, with little effort (BASE=HEAD~3: since that commit)'
	@echo 'make quick P=mechanisms/slot'
	@echo '               the same with all tests of a folder'
	@echo 'make test      format, lint, types, imports, doctests, tests, coverage; tests/README.md says which test catches what'
	@echo 'make test-twin stream, privacy and kills without the kernel, by its Python twin (some minutes)'
	@echo 'make test-long all that takes long, a line for each part (some hours; ARGS="laws mutants": these only)'
	@echo 'make check     format, lint, types, imports and doctests'
	@echo 'make fix       repair what can be repaired: format and lint'
	@echo 'make pictures  draw the pictures of docs/explanation/algorithms again'
	@echo 'make reference write the pages of the docs that programs make, the alert rules and the dashboard'
	@echo 'make docs      the site of the documents, into site/ (ARGS=serve: show it on http://127.0.0.1:8000 while you write)'
	@echo 'make bench     shoal beside Kafka Streams, Quix Streams, Bytewax and Faust, growth, latency (three quarters of an hour on a slow machine; ARGS=--quick: some minutes)'
	@echo 'make bench-accuracy'
	@echo '               errors of all algorithms, and of others, on the same inputs (a quarter of an hour; ARGS=--quick: a minute)'
	@echo 'make bench-decay'
	@echo '               all mechanisms for windows and decays against their formulas (nine minutes; ARGS=--quick: half a minute)'
	@echo 'make bench-places'
	@echo '               places and slots: errors per cell, users in many cells, few users, speed (eight minutes; ARGS=--quick: some seconds)'
	@echo 'make bench-few-users'
	@echo '               few users with several values: error, users needed, corrupt users (half a minute; ARGS=--quick: some seconds)'
	@echo 'make bench-presence'
	@echo '               what protecting presence costs, beside relation values and other mechanisms (some minutes; ARGS=--quick: half a minute)'
	@echo 'make bench-keys'
	@echo '               what many keys cost where presence is protected (half an hour; ARGS=--quick: a minute)'
	@echo 'make bench-kernel'
	@echo '               bound with and without the kernel, no broker (a minute; ARGS=--quick: some seconds)'
	@echo 'make bench-growth'
	@echo '               what events and users cost from 100,000 to ten million users (some minutes; ARGS=--quick: a minute)'
	@echo 'make bench-release'
	@echo '               release without a broker, by rows and by groups (some minutes; ARGS=--quick: a minute)'
	@echo 'make bench-idle'
	@echo '               what idle partitions cost in bytes, without events and with some (a minute)'
	@echo 'make bench-live'
	@echo '               what a worker costs that is not behind, and how late releases are, with bars that fail (half an hour; ARGS=--quick: some minutes)'
	@echo 'make mutants   break copies of the mathematics, one line at a time; which test notices? (an hour)'
	@echo 'make audit-privacy'
	@echo '               the largest privacy loss of 5,000 random configurations (an hour of a core; ARGS="--configurations 300 --jobs 2")'
	@echo 'make test-cluster'
	@echo '               three brokers under workers, killed, frozen and restarted, with TLS and rights too (16 minutes)'
	@echo 'make test-deploys'
	@echo '               old and new configurations, kills, retirements and the way back, at length (ten minutes)'
	@echo 'make test-operators'
	@echo '               rights and offsets that are changed under workers (some minutes)'
	@echo 'make test-orders'
	@echo '               file runs, workers, kills, outages and restores in hundreds of orders (some minutes)'
	@echo 'make test-lanes'
	@echo '               ten million mutated records in the kernel and in its twin (some minutes; ARGS="--seed 7 --records 100000")'
	@echo 'make fuzz      the kernel on bytes that coverage leads to (20 minutes; ARGS="--minutes 60 --target json"; needs nightly Rust)'
	@echo 'make wheel     build the wheel into dist/, the same bytes for the same commit'
	@echo 'make wheels    the same, and the wheel of the kernel, for any Linux with glibc 2.17 or newer (needs cargo)'
	@echo 'make golden    store the bytes of this version as those that the next one must produce (see CONTRIBUTING.md)'
	@echo
	@echo 'Type first:  make demo'

# What a user needs to run shoal: its packages, Kafka with its Java, and the kernel where there is Rust. The kernel is
# compiled beside the downloads, and once for each state of its sources on a machine (distribution/kernel.py).
install: $(INSTALLED)
	@$(KERNEL) install || echo 'the kernel could not be built (see above): Python does the same, slower'

KERNEL := $(BIN)/python -m distribution.kernel
# Of what an index offers, only files whose hashes are locked are installed; build tools of sources are not locked.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
LOCKS_demo := core geo demo
LOCKS_test := $(LOCKS_demo) postgres test
LOCKS_tools := $(LOCKS_test) tools
LOCKED = $(PIP) --require-hashes --no-deps $(LOCKS_$(1):%=--requirement requirements/%.lock)

# Last of all comes the stamp: whatever is interrupted is done again, whatever is done is instant.
$(INSTALLED): pyproject.toml $(wildcard requirements/*.lock shoal/agents/broker/*.lock)
	@$(MAKE) --no-print-directory python
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@rm -f .venv/.has-*
	@$(KERNEL) build & kernel=$$!; trap "kill $$kernel 2>/dev/null" INT TERM; \
	{ $(call LOCKED,$(EXTRA)) && $(PIP) --no-deps --editable . && $(BIN)/python -m shoal.agents.broker.jars; }; status=$$?; wait $$kernel; exit $$status
	touch $@ .venv/.has-$(EXTRA)

python:
	@test -n '$(PYTHON)' || { echo 'shoal needs Python 3.11 or newer: install one, or name it: make install PYTHON=/path/to/python3'; exit 1; }
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo 'shoal needs Python 3.11 or newer; $(PYTHON) is older'; exit 1; }

kernel: $(INSTALLED)
	@$(KERNEL) install

# What `make test` needs beside that. In a fresh clone both are one call of pip. A rehearsal makes later starts of
# Kafka faster.
TESTED := .venv/.tested
EXTRA := demo
tested: EXTRA := test
tested: $(TESTED) kernel

$(TESTED): $(INSTALLED)
	test -e .venv/.has-test || $(call LOCKED,test)
	$(BIN)/python -m shoal.agents.broker.rehearsal
	touch $@

# What only `make test-long`, benchmarks and generated pages need: peers, documentation, builders of wheels.
TOOLED := .venv/.tooled
tooled: EXTRA := tools
tooled: $(TOOLED) kernel

$(TOOLED): $(INSTALLED)
	test -e .venv/.has-tools || $(call LOCKED,tools)
	$(BIN)/python -m shoal.agents.broker.rehearsal
	touch $(TESTED) $@

demo: install
	$(BIN)/shoal demo

demo-geo: install
	$(BIN)/shoal demo --geo

check: lint doctest

lint: style types

style: tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# mypy's cache of the last run on this machine is kept for new checkouts; `make test-long` does without it.
MYPY_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/shoal/mypy
mypy: tested
	@test -e .mypy_cache || { test -e $(MYPY_CACHE) && cp -R $(MYPY_CACHE) .mypy_cache; } || true
	$(BIN)/mypy
	@mkdir -p $(dir $(MYPY_CACHE)) && rm -rf $(MYPY_CACHE).new && cp -R .mypy_cache $(MYPY_CACHE).new \
		&& rm -rf $(MYPY_CACHE) && mv $(MYPY_CACHE).new $(MYPY_CACHE) || true

types: mypy
	$(BIN)/lint-imports

doctest: tested
	$(BIN)/python -m pytest --quiet --doctest-modules --ignore=shoal/migrations shoal benchmarks

# Tests of the page need a real browser, those of metrics a real Prometheus, those of recipes a real kcat, which are
# packages of the system: they are installed where that is possible.
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable
programs:
	@missing=; found=; for name in $(BROWSERS); do command -v $$name >/dev/null && found=$$name; done; \
	[ -n "$$found" ] || missing=chromium; { command -v prometheus && command -v promtool; } >/dev/null || missing="$$missing prometheus"; \
	for name in kcat jq; do command -v $$name >/dev/null || missing="$$missing $$name"; done; \
	[ -n "$$missing" ] || exit 0; \
	as_root=; [ "$$(id -u)" = 0 ] || as_root='sudo -n'; export DEBIAN_FRONTEND=noninteractive; \
	{ $$as_root apt-get update -qq && $$as_root apt-get install -qq --yes --no-install-recommends $$missing >/dev/null; } \
		|| { echo "tests need programs that are missing, and they cannot be installed from here: install $$missing"; exit 1; }

# Everything for `make test-long`, benchmarks and generated pages.
tools: tooled programs

# Coverage counts branches, and what worker processes run. The mathematics and what crosses a boundary: all of it.
test: python
	@$(STEP) start
	@$(STEP) install
	@$(MAKE) --no-print-directory tested programs
	@$(STEP) style
	@$(MAKE) --no-print-directory style
	@$(STEP) tests
	rm -rf $(COVERAGE) && mkdir $(COVERAGE)
	SHOAL_TEST_EFFORT=$(TEST_EFFORT) SHOAL_TEST_COVERAGE=$(COVERAGE) $(MAKE) --no-print-directory --jobs=3 --keep-going types test-stories test-laws test-kernel
	@$(STEP) coverage
	$(BIN)/python -m tests.support.coverage $(COVERAGE) mechanisms=100 models=100 stream=95 agents=90
	@$(STEP) end

STEP = $(PYTHON) -m tests.support.progress

# At once: the tests with a broker mostly wait, the others compute, and step back for them. A file stays in one process,
# and so do the brokers and tables that its tests share; the longest stories come first. Types are checked beside them.
PYTEST := -m pytest --quiet --dist=loadfile
COVERAGE := $(CURDIR)/.coverage
TEST_EFFORT := 0.4
WITH_BROKERS := tests/kafka tests/agents tests/cli tests/test_releases_page.py

test-stories:
	@$(BIN)/python -u $(PYTEST) -n3 --no-loadscope-reorder -m 'kafka and not long' $(WITH_BROKERS) | sed -u 's/^/brokers: /'

test-laws:
	@nice -n 10 $(BIN)/python -u $(PYTEST) -n2 -m 'not kafka and not long' --doctest-modules --ignore=shoal/migrations --ignore=tests/long shoal benchmarks tests \
		| sed -u 's/^/others:  /'

test-kernel:
	@nice -n 10 $(KERNEL) test | sed -u 's/^/kernel:  /'

# Where no kernel is installed, as in a second job of CI, and where one is: the twin does all that the kernel does.
test-twin: $(TESTED)
	SHOAL_KERNEL=off $(BIN)/python -m tests.golden
	SHOAL_KERNEL=off SHOAL_TEST_EFFORT=$(QUICK_EFFORT) $(BIN)/python $(PYTEST) -n2 -m 'not long' $(TWINS)

TWINS := tests/stream tests/privacy tests/agents/test_lane.py tests/kafka/test_equality.py tests/kafka/test_trimming.py
QUICK_EFFORT := 0.1

# The tests that the changes since the merge base reach (BASE=COMMIT: since that commit), or those of a folder
# (P=mechanisms/slot): without brokers, and with little effort.
QUICK := --quiet --dist=loadfile -n2 -m 'not kafka and not slow and not long'
quick: mypy
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	SHOAL_TEST_EFFORT=$(QUICK_EFFORT) $(BIN)/python -m $(if $(P),pytest $(QUICK) tests/$(P),tests.support.impact --base '$(BASE)' --run $(QUICK))

# What takes long, in files and marks that plain pytest does not collect. All of it, with a line for each part;
# ARGS="laws mutants": only these.
test-long: tools
	$(BIN)/python -m tests.long $(ARGS)

# Three brokers under workers, killed, frozen and restarted; three with TLS and rights; other versions of Kafka; compaction.
test-cluster: tested
	$(BIN)/python -m pytest -s $(ARGS) tests/long/cluster_*.py

# Histories of deploys: two hundred on real rules, seven of real workers on Kafka; and workers that come and go.
test-deploys: tested
	$(BIN)/python -m pytest -q $(ARGS) tests/long/deploys.py tests/long/workers.py

# Rights and offsets that are changed under workers.
test-operators: tested
	$(BIN)/python -m pytest -q $(ARGS) tests/long/operators.py

# File runs, workers, kills, outages and restores in many more orders than `make test` tries.
test-orders: tested
	$(BIN)/python -m pytest -q $(ARGS) tests/long/orders.py

# Mutated records and batches in both lanes; whatever differs is an error.
test-lanes: kernel
	$(BIN)/python -m tests.long.lanes $(ARGS)

# The kernel's readers and writers, each some minutes, under AddressSanitizer.
fuzz: tested
	$(BIN)/python -m tests.long.fuzz $(ARGS)

fix: tested
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: tooled
	$(BIN)/python -m docs.generate.configuration > docs/reference/configuration.md
	$(BIN)/python -m docs.generate.commands > docs/reference/commands.md
	$(BIN)/python -m docs.generate.sql > docs/reference/sql.md
	$(BIN)/python -m docs.generate.schemas
	$(BIN)/python -m docs.generate.topics > docs/reference/topics.md
	$(BIN)/python -m docs.generate.alerts
	$(BIN)/python -m docs.generate.grafana
	$(BIN)/python -m docs.generate.pictures
	$(BIN)/python -m docs.generate.epsilon_table --write
	$(BIN)/python -m docs.generate.library --write
	$(BIN)/python -m docs.generate.contributions_table --write

# The pictures of docs/explanation/algorithms; ARGS="counters sharp": these only.
pictures: tooled
	$(BIN)/python -m docs.generate.pictures $(ARGS)

# The variable silences what the theme's makers say of its successor.
docs: tooled
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs $(or $(ARGS),build) --strict

# Other systems are installed into .bench, which `make clean` removes.
bench: kernel
	$(BIN)/python -m benchmarks.speed $(ARGS)

bench-accuracy: tooled
	$(BIN)/python -m benchmarks.accuracy $(ARGS)

bench-decay: tooled
	$(BIN)/python -m benchmarks.decay $(ARGS)

bench-places: tooled
	$(BIN)/python -m benchmarks.places $(ARGS)

bench-few-users: tooled
	$(BIN)/python -m benchmarks.few_users $(ARGS)

bench-presence: tooled
	$(BIN)/python -m benchmarks.presence $(ARGS)

# Both lanes of bound, without a broker.
bench-kernel: kernel
	$(BIN)/python -m benchmarks.kernel $(ARGS)

# Both lanes as users become more, beside what the machine takes for one random read and write.
bench-growth: kernel
	$(BIN)/python -m benchmarks.growth $(ARGS)

# Release, without a broker.
bench-release: tooled
	$(BIN)/python -m benchmarks.release $(ARGS)

bench-keys: tooled
	$(BIN)/python -m benchmarks.shown_keys $(ARGS)

bench-idle: tooled
	$(BIN)/python -m benchmarks.idle $(ARGS)

# Needs a quiet machine. Kafka Streams is installed into .bench, which `make clean` removes.
bench-live: kernel
	$(BIN)/python -m benchmarks.live $(ARGS)

# Random configurations of every family, none of which may lose more than its epsilon.
# ARGS='--configurations 300 --seed 7 --family slots --jobs 2 --json'.
audit-privacy: tested
	$(BIN)/python -m tests.privacy.auditor $(ARGS)
# Each mutant must be caught by a test; ARGS='--family noise', ARGS=--quick, ARGS=--json.
mutants: tested
	$(BIN)/python -m tests.mutants $(ARGS)

# The stored bytes of tests/golden, from this version. `python -m tests.golden` only says what differs.
golden: tested
	$(BIN)/python -m tests.golden --write

# After a change of dependencies: the newest that pyproject.toml allows, written down.
lock:
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(PIP) uv packaging
	$(BIN)/python -m distribution.locks
	$(MAKE) tooled
	$(BIN)/python -m distribution.sbom

# The time in it is that of the commit: who builds it again from the same commit has the same bytes.
wheel: tooled
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(BIN)/python -m hatchling build --target wheel --directory dist
	sha256sum dist/shoal-*.whl

# The kernel's: for any Python from 3.11 on. Zig links against an old C library. Another processor, whose part of Rust
# `rustup target add` brings: make wheels TARGET=aarch64-unknown-linux-gnu.
TARGET ?= x86_64-unknown-linux-gnu
WHEELS := .venv/wheels
wheels: wheel
	test -x $(WHEELS)/bin/maturin || { $(BIN)/python -m venv $(WHEELS) \
		&& $(WHEELS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/wheels.lock; }
	PATH="$(CURDIR)/$(WHEELS)/bin:$$PATH" SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
		RUSTFLAGS="--remap-path-prefix=$(CURDIR)=/shoal --remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=/cargo" \
		maturin build --quiet --release --locked --zig --target $(TARGET) --compatibility manylinux_2_17 \
		--manifest-path kernel/Cargo.toml --out dist
	sha256sum dist/shoal_kernel-*.whl

clean:
	rm -rf .venv .bench build dist *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .test-long .make-test.json
