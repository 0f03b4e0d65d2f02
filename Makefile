# dialgym: every task of a developer. `make` alone lists them; each sets up what it needs.
#
#   VENV     where the virtual environment lies          (.venv)
#   PYTHON   the interpreter it is made from             (the first Python 3.11 to 3.14 found)
#   TORCH    what to install as PyTorch, before the rest (the pin in constraints.txt)
#            e.g. TORCH="torch==2.13.0 --index-url URL" to choose the CPU or a CUDA build
#   ROOM     the rooms that test runs alone: a folder of tests/dialgym, tests/agents or tests, e.g. ROOM=views
#   ARGS     further arguments of test, nightly, bench, soak and dist, e.g. ARGS="-k wordle"

VENV ?= .venv
PYTHON ?= $(firstword $(foreach p,python3 python3.11 python3.12 python3.13 python3.14,\
  $(shell $(p) -c $(PYTHON_CHECK) 2>/dev/null && echo $(p))))
TORCH ?= $(shell grep '^torch==' constraints.txt)
EXTRAS := agents,rewards,data,distributed,lm,ui,web,zoo,docs,dev
FREE := none
DOORS := agents,data,lm,rewards,web,dev
TINKER_FREE := transformers|tokenizers|huggingface_hub

PYTHON_CHECK := 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet
INSTALLED := $(VENV)/.installed
PINS := $(shell cat pyproject.toml constraints.txt | cksum)
INSTALLED_PINS := $(shell sed -n 1p $(INSTALLED) 2>/dev/null)
INSTALLED_FROM := $(shell test -d "$$(sed -n 2p $(INSTALLED) 2>/dev/null)" && sed -n 2p $(INSTALLED))
NUMERIC := $(addprefix tests/agents/,models policies buffers decoding online offline distributed \
  reward_model) tests/dialgym/rewards tests/learning
ROOMS := $(foreach r,$(ROOM),$(wildcard tests/dialgym/$(r) tests/agents/$(r) tests/$(r)))
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal

# Targets run the code of this checkout, whichever one is installed in the environment.
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))

.DEFAULT_GOAL := help
.PHONY: help setup run test nightly audit bench tables soak dist doors docs publish-docs release format lint type freeze clean distclean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(INSTALLED)  ## build the virtual environment (done once, and again when a pin changes)

run: $(INSTALLED)  ## the main job: train a small GPT with PPO, score it beside scripted policies, report
	$(BIN)/dialgym train --config examples/first_training.yml --force
	$(BIN)/dialgym benchmark
	$(BIN)/dialgym report

test: $(INSTALLED)  ## run the tests, but for the slow ones; those of one room with ROOM=
	@test -z "$(ROOM)" || test -n "$(ROOMS)" || { echo "make test: no room $(ROOM) in tests/dialgym," \
	  "tests/agents or tests"; exit 1; }
	$(PYTEST) -m "not slow" $(ROOMS) $(ARGS)

nightly: $(INSTALLED)  ## run all tests, the numeric ones once for each instruction set of the CPU
	$(PYTEST) --hypothesis-profile=nightly $(ARGS)
	for level in $$($(BIN)/python -m tests.support.cpu); do echo "ATEN_CPU_CAPABILITY=$$level"; \
	  ATEN_CPU_CAPABILITY=$$level $(PYTEST) $(NUMERIC) -m "not slow" || exit 1; done
	@echo "not looked at here: known vulnerabilities and licences of the packages (make audit)"

# pip-audit has an environment of its own: its packages are not those that are pinned.
audit: $(INSTALLED)  ## list licences of the pinned packages, and their known vulnerabilities
	@test -x .audit-venv/bin/pip-audit || { $(PYTHON) -m venv .audit-venv && \
	  .audit-venv/bin/pip install --disable-pip-version-check --quiet pip-audit; } || true
	$(BIN)/python scripts/audit.py .audit-venv/bin/pip-audit

bench: $(INSTALLED)  ## measure the speed of the environments, of the optimal policy and of training
	$(BIN)/python -m benchmarks.environments $(ARGS)
	$(BIN)/python -m benchmarks.training

tables: $(INSTALLED)  ## make the tables of the committed rows again, and compare them with docs/results
	$(BIN)/python -m benchmarks.tables --check

soak: $(INSTALLED)  ## attack what may not break: bad inputs, kills, damaged files (20 CPU-minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.soak --write $(ARGS)

dist: $(INSTALLED)  ## build wheel and sdist, and try both in clean environments of each Python
	$(BIN)/python scripts/check_dist.py $(ARGS)

# OpenEnv and verifiers do not install together, and the Tinker cookbook wants an older transformers,
# so there are three environments of doors. Gradio, which OpenEnv needs, wants an older tomlkit.
doors:  ## build environments with the libraries of the doors, and run tests/doors in each
	$(MAKE) VENV=.doors-venv EXTRAS=$(DOORS),openenv,skyrl,trl,textarena FREE=tomlkit setup
	$(MAKE) VENV=.verifiers-venv EXTRAS=$(DOORS),verifiers FREE=pillow setup
	$(MAKE) VENV=.tinker-venv EXTRAS=$(DOORS),tinker FREE='$(TINKER_FREE)' setup
	for venv in .doors-venv .verifiers-venv .tinker-venv; do OMP_NUM_THREADS=1 $$venv/bin/pytest tests/doors \
	  $(ARGS) || exit 1; done

docs: $(INSTALLED)  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

publish-docs: $(INSTALLED)  ## build the documentation of this version beside the earlier ones, in the branch gh-pages
	PATH="$(abspath $(BIN)):$$PATH" NO_MKDOCS_2_WARNING=1 $(BIN)/mike deploy --update-aliases \
	  $$($(BIN)/python -c "import dialgym; print('.'.join(dialgym.__version__.split('.')[:2]))") latest
	$(BIN)/mike set-default latest

# The version stands in dialgym/versions.py alone; what is tagged is what CI has passed.
release: $(INSTALLED)  ## run what CI runs, and tag this commit with its version
	@test -z "$$(git status --porcelain)" || { echo "make release: commit or remove what git status lists"; exit 1; }
	.ci/run
	git tag -a "v$$($(BIN)/python -c 'import dialgym; print(dialgym.__version__)')" -m "dialgym $$($(BIN)/python -c 'import dialgym; print(dialgym.__version__)')"
	@echo "git push --tags publishes it"

format: $(INSTALLED)  ## sort imports, mend what can be mended, format
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

lint: $(INSTALLED)  ## check style, format and the direction of the imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

type: $(INSTALLED)  ## check the types
	$(BIN)/mypy

freeze:  ## resolve the newest admitted versions in a fresh environment and pin them
	rm -rf .freeze-venv
	$(PYTHON) -m venv .freeze-venv
	.freeze-venv/bin/pip install --quiet $(TORCH)
	.freeze-venv/bin/pip install --quiet '.[$(EXTRAS)]'
	.freeze-venv/bin/python scripts/freeze_constraints.py constraints.txt
	rm -rf .freeze-venv

clean:  ## remove what builds, tests and checks leave behind
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find dialgym agents benchmarks tests examples scripts docs -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## clean, and remove the virtual environments and the runs
	rm -rf $(VENV) .ci-venv .freeze-venv .audit-venv .doors-venv .verifiers-venv .tinker-venv runs logs

# The environment is due when the pins say something else than what was installed; which of the files
# is newer says nothing, as a clone or a checkout touches them all. An environment that another
# checkout has set up is used as it is, and moved here by `make setup` alone.
DUE := $(filter-out $(INSTALLED_PINS),$(PINS))
ifeq ($(INSTALLED_FROM),)  # never, or from a folder that is gone
DUE += yes
else ifneq ($(INSTALLED_FROM),$(CURDIR))
DUE += $(filter setup,$(MAKECMDGOALS))
endif
ifneq ($(strip $(DUE)),)
.PHONY: $(INSTALLED)
endif

# PyTorch goes in first and alone: the ranges of the other packages then find it there. Asked for
# by a range, pip would take the newest build, on Linux several gigabytes of CUDA. All are held to the
# pins but those of FREE, a regular expression of names: other versions of them are wanted.
$(INSTALLED):
	@test -n "$(PYTHON)" || { echo "make setup: no Python 3.11 to 3.14 found (tried python3," \
	  "python3.11 ... python3.14). Install one, or name it: make setup PYTHON=/path/to/python3"; \
	  exit 1; }
	@test -z "$(INSTALLED_FROM)" || test "$(INSTALLED_FROM)" = "$(CURDIR)" || \
	  test -n "$(filter setup,$(MAKECMDGOALS))" || { echo "make: $(VENV) was set up in" \
	  "$(INSTALLED_FROM), with other pins than those of this checkout. Name an environment of its" \
	  "own (VENV=...), or install this checkout there: make setup VENV=$(VENV)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) $(TORCH)
	grep -vE '^($(FREE))==' constraints.txt > $(VENV)/constraints.txt
	$(PIP) -c $(VENV)/constraints.txt -e '.[$(EXTRAS)]'
	@printf '%s\n' "$(PINS)" "$(CURDIR)" > $@
