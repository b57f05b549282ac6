# Everything a developer runs. The environment is made on first use, every version pinned by infra/constraints.txt.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONSTRAINTS := infra/constraints.txt
BENCH_PYTHON ?= $(or $(wildcard $(shell pyenv prefix $$(pyenv latest 3.12 2>/dev/null) 2>/dev/null)/bin/python3.12),python3.12)
BENCH_VENV ?= .venv-bench
QSHAP_PYTHON ?= $(or $(wildcard $(shell pyenv prefix $$(pyenv latest 3.11 2>/dev/null) 2>/dev/null)/bin/python3.11),python3.11)
QSHAP_VENV ?= .venv-qshap
INFRA_VENV ?= .venv-infra
CLOUDS_VENV ?= .venv-clouds
SPARK_VENV ?= .venv-spark
AZURITE_VERSION := 3.35.0
WHEEL_PYTHON ?= $(PYTHON)
WHEEL_VENV ?= .venv-wheel
WORKER_VENV ?= .venv-worker
REHEARSAL_VENV ?= .venv-rehearsal
PIP_VERSION := $(shell sed -n 's/^pip==//p' $(CONSTRAINTS))
UV_VERSION := $(shell sed -n 's/^uv==//p' $(CONSTRAINTS))

# What tests start are hundreds of processes, which would compile this package each for itself; and pytest all tests, in every process of its own.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-quick test-more faults infra clouds spark bench bench-r2 papers variants scale golden lint platforms coverage cuda bounds fuzz frames mutants versions supported licences wheel release worker docs docs-outputs constraints hashes audit clean

setup: $(VENV)/.complete

# Packages into an environment, by uv, which is ten times as fast as pip, or by pip where uv finds no packages, since it does not read pip's
# configuration: $(call install,folder,arguments). Compiled where one works, as pip does it: many a process may import them where Python may not write.
# What one command runs in compiles what it imports, a fraction.
define install
	$(BIN)/uv pip install --quiet $(if $(filter $(VENV),$(1)),--compile-bytecode) --python $(1)/bin/python $(2) || \
	{ $(1)/bin/pip install --quiet --disable-pip-version-check pip==$(PIP_VERSION) && $(1)/bin/pip install --quiet --disable-pip-version-check $(2); }
endef

# An environment of this project, editable and with all extras, and one dependency group: $(call environment,folder,python,oldest version,group).
define environment
	@$(2) -c 'import sys; sys.exit(sys.version_info < ($(subst .,$(comma) ,$(3))) and f"Python $(3) or later is needed, $(2) is {sys.version.split()[0]}")'
	$(2) -m venv $(1)
	test -x $(BIN)/uv || $(1)/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(call install,$(1),--constraint $(CONSTRAINTS) --build-constraint $(CONSTRAINTS) --editable '.[all]' --group $(4))
	@touch $(1)/.complete
endef
comma := ,

$(VENV)/.complete: pyproject.toml $(CONSTRAINTS)
	$(call environment,$(VENV),$(PYTHON),3.11,dev)

$(BENCH_VENV)/.complete: pyproject.toml $(CONSTRAINTS) | setup
	$(call environment,$(BENCH_VENV),$(BENCH_PYTHON),3.12,bench)

$(QSHAP_VENV)/.complete: pyproject.toml $(CONSTRAINTS) | setup
	$(call environment,$(QSHAP_VENV),$(QSHAP_PYTHON),3.11,qshap)

$(INFRA_VENV)/.complete: pyproject.toml $(CONSTRAINTS) | setup
	$(call environment,$(INFRA_VENV),$(PYTHON),3.11,infra)

$(SPARK_VENV)/.complete: pyproject.toml $(CONSTRAINTS) | setup
	$(call environment,$(SPARK_VENV),$(PYTHON),3.11,spark)

# Azurite runs where there is Node.
$(CLOUDS_VENV)/.complete: pyproject.toml $(CONSTRAINTS) | setup
	$(call environment,$(CLOUDS_VENV),$(PYTHON),3.11,clouds)
	! command -v npm >/dev/null || npm install --silent --no-audit --no-fund --prefix $(CLOUDS_VENV) azurite@$(AZURITE_VERSION) || { rm $@; exit 1; }

# Three models of 336,776 flights, explained by the nightly flow.
demo: setup
	$(BIN)/python -m infra.demo

# Everything, or TESTS="tests/pipeline -k store"; a file of tests is one process's, so many at a time, and PROCESSES=0 runs them in pytest's own.
# Twice as many as there are processors, since many tests wait.
PROCESSES ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) \* 2)
test: setup
	$(BIN)/python -m pytest $(if $(TESTS),,-m "not more") --numprocesses $(PROCESSES) --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(TESTS)

# What `make test` leaves out where no TESTS are named: more cases of what it holds on a few, larger ones, the same on clusters of processes.
test-more: setup
	$(BIN)/python -m pytest -m more --numprocesses 2 --dist loadfile --no-loadscope-reorder $$(grep -rlE '\bmore\(|mark\.more\b' tests --include='test_*.py')

# What one runs while working, a minute and a half: no servers, clusters or pages, the middle case of each test, few drawn examples.
test-quick: setup
	$(BIN)/python -m pytest --quick --numprocesses $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(TESTS)

# A week of nights, and every fault of stores (moto and, where Debian's Ceph is installed, a real one), workers, schedulers, clients, flows, hosts (root,
# iproute2 and nftables), clocks (libfaketime), tables of nights and of Compose's topology, with many seeds; an hour.
# Killed at every step of what writes there, which `make test` does at one step in a few.
KILLED := tests/pipeline/forgetting/test_forget.py tests/pipeline/runs/publish
faults: setup
	$(BIN)/python -m pytest tests/faults tests/flows/test_week.py $(KILLED) --long $(FAULTS)

# The files of infra by the tools of those who read them: hadolint, the schemas of Compose, Kubernetes and Dask's operator, Prefect, systemd, Slurm.
infra: $(INFRA_VENV)/.complete
	$(INFRA_VENV)/bin/python -m pytest tests/infra $(INFRA)

# Google's and Azure's stores, by emulators of them.
clouds: $(CLOUDS_VENV)/.complete
	PATH="$(CURDIR)/$(CLOUDS_VENV)/node_modules/.bin:$$PATH" $(CLOUDS_VENV)/bin/python -m pytest tests/pipeline/stores/dialects/test_clouds.py tests/pipeline/stores/test_contract.py

# Data frames of Spark, on this machine; skipped where there is no Java. A real Spark and a real server of MLflow's alone, in a minute:
# SPARK="-k 'values_of_a_run or of_spark or by_rest'".
spark: $(SPARK_VENV)/.complete
	PATH="$(CURDIR)/$(SPARK_VENV)/bin:$$PATH" $(SPARK_VENV)/bin/python -m pytest tests/pipeline/serving $(SPARK)

# Rows per second beside the newest of what else there is, which needs Python 3.12, and beside qshap, which needs 3.11: BENCH="--cases xgboost-100x6",
# BENCH=--marginal. BENCH=--quick is a minute of it in the environment of development, where there are no peers; nor does BENCH=--forecasts need any.
quick := $(filter --quick --forecasts,$(BENCH))
bench: $(if $(quick),setup,$(BENCH_VENV)/.complete $(QSHAP_VENV)/.complete)
	$(if $(quick),$(BIN),$(BENCH_VENV)/bin)/python -m tests.bench $(BENCH)
	$(if $(BENCH),,$(QSHAP_VENV)/bin/python -m tests.bench.r2)

# The decomposition of R^2 alone, beside qshap.
bench-r2: $(QSHAP_VENV)/.complete
	$(QSHAP_VENV)/bin/python -m tests.bench.r2 $(BENCH)

# The papers' figures as numbers, theirs and ours: fails where a claim does not hold, of what is printed where the data are the paper's, of orderings
# where they are others. Some of them in a minute: PAPERS=--quick; one author's: PAPERS="--only gap".
papers: setup
	$(BIN)/python -m tests.papers $(PAPERS)

# Every kind of model beside what its own library says of the same rows, into docs/variants.json; half a minute.
variants: setup
	$(BIN)/python -m tests.variants

# A thousand workers that only wait, at a real Dask scheduler: what it and a run's client take, into docs/scale.json; six minutes. Other sizes, as
# workers, parts and seconds of each, print only: SCALE="100x1000x1 1000x5000x10".
scale: setup
	$(BIN)/python -m tests.scale $(SCALE)

# Models written anew by every version of each library, each in an environment of its own, which needs pyenv's Pythons 3.8, 3.10 and 3.12 and 15 GB:
# VERSIONS="/where/environments/go xgboost-1.7.6".
VERSIONS ?= build/versions
versions: setup
	$(BIN)/python -m tests.versions $(VERSIONS)

# Chosen tests with other Pythons, and with the oldest and the newest packages that pyproject.toml takes, each in an environment of its own of 3 GB, into
# docs/supported.json; Pythons are pyenv's. Some of them: SUPPORTED="/where/environments/go oldest newest".
SUPPORTED ?= build/supported
supported: setup
	$(BIN)/python -m tests.supported $(SUPPORTED)

# Numbers that must stay, of every method, game and library, into tests/golden/numbers.json: says which have changed. A quarter of a minute.
golden: setup
	$(BIN)/python -m tests.golden

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/validate-pyproject pyproject.toml
	$(BIN)/pre-commit validate-config

# Packages for other systems at the versions that are pinned, types as they are on macOS and Windows, and what they lack hidden from a run; four minutes.
SYSTEMS := x86_64-pc-windows-msvc aarch64-apple-darwin aarch64-unknown-linux-gnu
platforms: setup
	for system in $(SYSTEMS); do $(BIN)/uv pip install --quiet --dry-run --only-binary :all: --python-platform $$system --target build/elsewhere \
		--constraint $(CONSTRAINTS) -r pyproject.toml --extra all || exit 1; done
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32
	$(BIN)/python -m pytest tests/platforms

# Kernels as plain Python, every line of them run.
coverage: setup
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/kernels --cov -m "not again" --hypothesis-profile covered

# The card's kernels on a card; the other tests let threads play one.
cuda: setup
	$(call install,$(VENV),--constraint $(CONSTRAINTS) 'numba-cuda[cu13]')
	NUMBA_ENABLE_CUDASIM=0 $(BIN)/python -m pytest tests/kernels/cuda tests/pipeline/cluster/test_card.py

# Kernels with every index checked, in a cache of their own; the card's have no such check. BOUNDS=--quick: every kernel still, on half as many data.
bounds: setup
	cache=$$(mktemp -d) && trap 'rm -rf "$$cache"' EXIT && NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$$cache \
	$(BIN)/python -m pytest tests/kernels tests/pipeline/in_memory/explain/test_attribute.py --ignore tests/kernels/cuda $(BOUNDS)

# Damaged model files, ten thousand of every format: FUZZ="--mutations 500"; and every change of manifests and plans, where FUZZ is not given.
fuzz: setup
	$(BIN)/python -m tests.fuzz $(FUZZ)
	$(if $(FUZZ),,$(BIN)/python -m tests.tampering)
	$(if $(FUZZ),,$(BIN)/python -m tests.forged --changes 200)

# Random data sets in random types, against the libraries' own predictions: FRAMES="--runs 500".
frames: setup
	$(BIN)/python -m tests.frames $(FRAMES)

# Small changes of the code, each of which the tests of its module should notice: MUTANTS="--mutants 50 --only pipeline/runs".
mutants: setup
	$(BIN)/python -m tests.mutants $(MUTANTS)

# Published weaknesses of all that is pinned, which needs the network.
audit: setup
	$(call install,$(VENV),--constraint $(CONSTRAINTS) --group audit)
	$(BIN)/pip-audit --strict --disable-pip --no-deps --require-hashes --requirement infra/hashes.txt

# Licences of all that the package brings, or some extras alone: EXTRAS="s3 delta". Fails where one is unknown or not allowed.
licences: setup
	$(BIN)/python -m infra.licences $(EXTRAS)

# The wheel and what it needs itself, in an environment of its own: files of all libraries are explained there, and what is missing is one line.
wheel: setup
	rm -rf dist $(WHEEL_VENV)
	$(BIN)/python -m hatchling build -t wheel
	$(WHEEL_PYTHON) -m venv $(WHEEL_VENV)
	$(call install,$(WHEEL_VENV),--constraint $(CONSTRAINTS) dist/*.whl)
	$(BIN)/python -m tests.wheel $(WHEEL_VENV)

# A release, but for uploading it: packages built twice to the same bytes and checked, notes, files that others' services read; installed from an index
# of its own into an environment of its own, where README's commands are typed, and which its bill of materials lists. Three minutes.
release: setup
	$(call install,$(VENV),--constraint $(CONSTRAINTS) --group release)
	rm -rf build/release
	$(BIN)/python -m infra.release build/release
	$(BIN)/twine check --strict build/release/*.whl build/release/*.tar.gz
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	rm -rf $(REHEARSAL_VENV)
	$(PYTHON) -m venv $(REHEARSAL_VENV)
	$(BIN)/python -m tests.rehearsal build/release $(REHEARSAL_VENV)

# What a Dask worker needs whose data lie in S3, and nothing else: files of all libraries are explained, checked and compared there, to the same bytes.
worker: setup
	rm -rf $(WORKER_VENV)
	$(PYTHON) -m venv $(WORKER_VENV)
	$(BIN)/python -m hatchling build -t wheel -d $(WORKER_VENV)
	$(call install,$(WORKER_VENV),--constraint $(CONSTRAINTS) "$$(echo $(WORKER_VENV)/*.whl)[s3]")
	$(BIN)/python -m tests.worker $(WORKER_VENV)

# The documentation in build/docs/html, every page read anew, since options are read from code; a warning is an error. Its pictures of reports are
# drawn anew where the demo's flights and models are.
docs: setup
	$(BIN)/python -m docs.pictures
	$(BIN)/python -m docs.live
	$(BIN)/sphinx-build -b html -E -W --keep-going docs build/docs/html

# Let pages say what their commands and blocks of Python print now: PAGES="docs/tutorial.md".
docs-outputs: setup
	$(BIN)/python -m tests.docs $(PAGES)

# Resolve every version anew, for all Pythons at once; with UPGRADE= those that are pinned already stay.
UPGRADE ?= --upgrade
constraints: setup
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --group bench --group qshap --group infra --group clouds --group spark --group release --group image --group audit --universal --python-version 3.11 $(UPGRADE) \
		--no-header --no-annotate --output-file $(CONSTRAINTS)
	$(MAKE) hashes

# The files of these versions that images take. Apart from the constraints, since pip, given one hash, wants one of all that it installs.
hashes: setup
	$(BIN)/uv pip compile --quiet pyproject.toml --extra all --group image --constraint $(CONSTRAINTS) --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --output-file infra/hashes.txt

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(QSHAP_VENV) $(INFRA_VENV) $(CLOUDS_VENV) $(SPARK_VENV) $(WHEEL_VENV) $(WORKER_VENV) $(REHEARSAL_VENV) build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
