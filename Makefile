# Bare `make` lists the targets. Every target sets up what it needs; .venv lives in the checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?=
KEEP ?=
CLUSTER ?=
TIMES ?= 20

# Tests start hundreds of processes; without compiled modules each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo dashboard screenshots test test-repeated test-slow e2e e2e-kind e2e-envtest alerts coverage dst mutation conformance lint ha fuzz soak explore reference-long goals bench performance manifests docs clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## create .venv and install volcano_py with everything its tests need

$(VENV)/.ready: pyproject.toml
	@echo "Setting up $(VENV) (once; about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit("volcano_py needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11 setup") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@$(BIN)/python -m tests.kubectl
	@$(BIN)/python -m compileall -q volcano_py
	@touch $@

# The dashboard's packages are as many as all others: only what needs them installs them.
$(VENV)/.dashboard: $(VENV)/.ready
	@echo "Installing the extra [dashboard] with what its tests need (once)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dashboard-dev]'
	@touch $@

# Compiles the test modules once: each process of the first run would do it.
$(VENV)/.tests: $(VENV)/.dashboard
	@for part in "tests/scheduler tests/sandbox" "tests --ignore=tests/scheduler --ignore=tests/sandbox"; do \
	  $(BIN)/python -m pytest -q --collect-only $$part > /dev/null & done; wait
	@touch $@

# The demo needs a third of the packages that the tests need.
$(VENV)/.demo: pyproject.toml
	@test -e $(VENV)/.ready || echo "Setting up $(VENV) for the demo (once; half a minute)"
	@test -e $(VENV)/.ready || $(PYTHON) -c 'import sys; sys.exit("volcano_py needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11 demo") if sys.version_info < (3, 11) else None'
	@test -e $(VENV)/.ready || { $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[sandbox]'; }
	@touch $@

demo: $(VENV)/.demo ## show a gang job scheduled on an embedded cluster (KEEP=1 leaves the cluster up)
	@$(BIN)/volcano-py demo $(if $(KEEP),--keep)

dashboard: setup $(VENV)/.dashboard ## the demo with its dashboard; the cluster and the page stay up
	@$(BIN)/volcano-py demo --keep

test: setup $(VENV)/.tests ## run the test suite
	@# four processes for two processors: many tests wait for a server most of the time
	@$(BIN)/python -m pytest -m "not slow" -n 4

test-repeated: setup $(VENV)/.tests ## run the test suite TIMES times in a row (20), until one run fails; prints the count
	@for run in $$(seq $(TIMES)); do echo "==> run $$run of $(TIMES)"; \
	  $(MAKE) --no-print-directory test || { echo "run $$run failed, $$((run - 1)) before it passed"; exit 1; }; done; \
	  echo "$(TIMES) runs in a row without a failure"

# Suites that compute, without servers and timers, in two processes: they use what those that wait leave.
COMPUTING_1 := tests/dst tests/oracle
COMPUTING_2 := tests/reference tests/differential tests/simulate tests/scheduler
test-slow: setup $(VENV)/.tests ## run the suites that need a cluster or minutes
	@# -s: they print what they have covered
	@# each folder in a process of its own: what hypothesis draws depends on which modules are loaded
	@computing() { failed=0; for folder in $$*; do \
	    nice -n 19 $(BIN)/python -m pytest -s -m slow --durations=5 $$folder || failed=1; done; return $$failed; }; \
	  computing $(COMPUTING_1) > $(VENV)/computing-1.txt 2>&1 & first=$$!; \
	  computing $(COMPUTING_2) > $(VENV)/computing-2.txt 2>&1 & second=$$!; \
	  $(BIN)/python -m pytest -rs -m slow --durations=15 $(addprefix --ignore=,$(COMPUTING_1) $(COMPUTING_2)); failed=$$?; \
	  wait $$first || failed=1; wait $$second || failed=1; \
	  cat $(VENV)/computing-1.txt $(VENV)/computing-2.txt; exit $$failed

e2e: setup ## the acceptance suite on the sandbox, or on a cluster: make e2e CLUSTER=<kubeconfig>
	@# one process on a cluster: the cases share the scheduler's ConfigMap, and restore it
	@CLUSTER=$(CLUSTER) $(BIN)/python -m pytest -n $(if $(CLUSTER),1,2) --dist loadfile tests/acceptance

e2e-kind: setup ## the acceptance suite on a kind cluster with our chart (KUBERNETES=v1.36.1; requires docker)
	@PATH="$(abspath $(BIN)):$$PATH" .ci/e2e-kind

e2e-envtest: setup ## the acceptance suite on kube-apiserver and etcd of KUBEBUILDER_ASSETS, with hollow nodes
	@$(BIN)/python -m tests.acceptance.envtest $(ARGUMENTS)

alerts: setup ## Prometheus's promtool (PROMTOOL=<program>, or on PATH) judges the chart's alerts and dashboard
	@$(if $(PROMTOOL),PROMTOOL=$(PROMTOOL)) $(BIN)/python -m tests.chart.promtool

coverage: setup ## branch coverage of the decision core by its quick tests; fails below 90 %
	@COVERAGE_FILE=.pytest_cache/coverage $(BIN)/python -m pytest -n 2 -m "not slow" \
	  tests/scheduler tests/scenarios tests/simulate tests/reference --cov

dst: setup ## simulate the whole system under faults, once for each seed: make dst SEEDS=100
	@$(BIN)/python -m tests.dst --quiet --jobs $(or $(JOBS),1) --seeds $(or $(SEEDS),20) --first $(or $(FIRST),1)

mutation: setup ## how many small faults, put into gang, drf, proportion, capacity, preempt and reclaim, the tests find
	@$(BIN)/python -m tests.mutation $(if $(SAMPLE),--sample $(SAMPLE))

conformance: setup ## compare with recorded answers: make conformance DATA=<folder>
	@$(BIN)/python -m tests.conformance $(if $(DATA),--data $(DATA))

screenshots: setup $(VENV)/.dashboard ## take the pictures of the dashboard in headless Chromium
	@$(BIN)/python -m tests.dashboard.screenshots

lint: setup ## ruff, mypy, import contracts, Dockerfile, YAML; prints the longest modules
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/hadolint Dockerfile
	@$(BIN)/yamllint -d '{extends: relaxed, rules: {line-length: disable}}' conf crds .github tests/scenarios tests/chart/values
	@echo "Longest modules (lines):"
	@find volcano_py -name '*.py' | xargs wc -l | sort -rn | sed -n '2,9p'

ha: setup ## leaders that fail in all ways, and rolling upgrades, with real processes; prints the table (3 minutes)
	@$(BIN)/python -m tests.ha $(ARGUMENTS)

fuzz: setup ## new input for all that reads data of others: make fuzz MINUTES=5; prints a table, fails on a fault
	@$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),5) $(ARGUMENTS)

soak: setup ## PODS pods through the sandbox (1,000,000: hours), and whether memory and latency stay flat; writes soak.svg
	@$(BIN)/python -m benchmarks soak --pods $(or $(PODS),1000000)

explore: setup ## run the property tests on new random examples, for what the steady ones miss
	@HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -n 2 tests/scheduler tests/kube/test_http1.py

reference-long: setup ## compare 20,000 random clusters with the reference scheduler
	@REFERENCE_CASES=20000 $(BIN)/python -m pytest -s -m slow tests/reference

goals: setup ## measure the goals for a cycle, with numpy and with the compiled kernels: make goals RUNS=3
	@$(BIN)/python -m benchmarks goals --runs $(or $(RUNS),1)

bench: setup ## run the decision benchmarks and print their table
	@$(BIN)/python -m benchmarks decision

performance: setup ## measure how a cycle grows, and draw the plots of docs/performance.md
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[plots]'
	@$(BIN)/python -m benchmarks growth --plots docs/images

manifests: setup ## generate what the chart takes from the code, and render it into deploy/volcano.yaml
	@$(BIN)/python -m charts.generate
	@echo "kubectl apply --server-side -f deploy/volcano.yaml"

constraints: setup $(VENV)/.dashboard ## write the versions of all packages that the tests ran with
	@$(BIN)/python -m pip freeze --exclude-editable | grep -v " @ " > packaging/constraints.txt

docs: setup ## generate the reference pages and build the site in site/ (SERVE=1 serves it, and follows changes)
	@$(BIN)/python docs/generate.py
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	@$(BIN)/zensical build --strict --clean
	@echo "The site is in site/: open site/index.html, or make docs SERVE=1"
	@$(if $(SERVE),$(BIN)/zensical serve)

clean: ## remove .venv and caches
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
