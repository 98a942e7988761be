# Everything on a fresh Debian or Ubuntu with Python >= 3.11: `make run` opens the app, `make test` is what CI does.

PY := .venv/bin/python
DENO := .venv/bin/deno
JAVASCRIPT := specviz/views/web/race_view tests/support
export DENO_NO_UPDATE_CHECK := 1
ARGS ?=
# tiny models take one core each; the real one and the browser want the machine to themselves
SIDE_BY_SIDE = OMP_NUM_THREADS=1 $(PY) -m pytest --numprocesses auto --maxprocesses 4

.PHONY: all help run test test-all lint format records model browser gallery drafts gpu-check clean

all: test

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

run: .venv/run.stamp model ## the app in the browser; make run ARGS="--port 8080"
	$(PY) app.py $(ARGS)

test: lint model browser ## lint and all quick tests
	$(SIDE_BY_SIDE) -m "not slow and not embedded and not browser"
	$(PY) -m pytest -m "not slow and (embedded or browser)"

test-all: lint model browser ## lint and all tests, the long grids too
	$(SIDE_BY_SIDE) -m "not embedded and not browser"
	$(PY) -m pytest -m "embedded or browser"

lint: .venv/dev.stamp ## check the rules and the format of Python and JavaScript
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(DENO) lint
	$(DENO) fmt --check
	$(DENO) check --quiet $(JAVASCRIPT)

format: .venv/dev.stamp ## fix what ruff and deno can fix
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(DENO) lint --fix
	$(DENO) fmt

records: .venv/run.stamp ## generate the JavaScript types of the trace's records
	@$(PY) -m specviz.views.web.race_view.record_types

model: .venv/run.stamp ## fetch the embedded model, once
	@$(PY) scripts/fetch_model.py embedded

browser: .venv/dev.stamp ## find Chromium for the browser tests, or install it
	@$(PY) scripts/browser.py --install

gallery: .venv/run.stamp ## record the gallery's runs again, with the real models
	@$(PY) scripts/record_gallery.py

drafts: .venv/run.stamp model ## make the bundled drafts again, by the commands on their cards (hours)
	@for card in assets/drafts/*/card.json; do \
		command=$$($(PY) -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"])' "$$card") && \
		echo "$$command" && PATH="$(CURDIR)/.venv/bin:$$PATH" sh -c "$$command" || exit 1; \
	done

gpu-check: .venv/run.stamp ## exactness and every ratio on a CUDA machine, in under four minutes
	@$(PY) scripts/gpu_check.py

clean: ## remove the environment and the tools' caches; fetched models stay
	rm -rf .venv .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/run.stamp: requirements.txt
	@sh scripts/environment.sh requirements.txt $@

.venv/dev.stamp: requirements-dev.txt .venv/run.stamp
	@sh scripts/environment.sh requirements-dev.txt $@
