# `make help` lists the targets. TORCH="<pip requirement>" takes another PyTorch build.
PARAMS ?= params/demo.yaml
AEGIS := .venv/bin/aegis
STAMP := .venv/.stamp

.PHONY: help study experiments test test-engines lint bench render lab clean
.DEFAULT_GOAL := help

help:  ## Show this help
	@grep -hE '^[a-z.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

study: $(STAMP)  ## Everything: environment, weights, the demo study, the site
	@scripts/system_packages.sh
	@$(AEGIS) fetch $(PARAMS)
	@$(AEGIS) run $(PARAMS)
	@$(AEGIS) render --with-originals --run $(basename $(notdir $(PARAMS)))

experiments: $(STAMP)  ## What appendices D, E, M and N compute on top of the demo study
	@$(AEGIS) run params/experiments.yaml
	@$(AEGIS) render --with-originals --run demo

test: $(STAMP)  ## Linters, types, layers and the whole test suite
	@scripts/system_packages.sh test
	@$(AEGIS) fetch
	@$(MAKE) --no-print-directory lint
	@.venv/bin/python -m pytest

test-engines: $(STAMP)  ## F5-TTS and NeMo in environments of their own, random weights (slow)
	@for name in f5 nemo; do test -e envs/$$name/bin/python || $(AEGIS) engine install $$name; done
	@.venv/bin/python -m pytest -m environment tests/test_environments.py

lint: $(STAMP)  ## Style, types, layers, spelling, security; AUDIT=1 asks for advisories (network)
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
	@.venv/bin/lint-imports
	@.venv/bin/codespell
	@.venv/bin/bandit --quiet --recursive --configfile pyproject.toml aegis scripts bench
	@test -z "$(AUDIT)" || .venv/bin/python scripts/audit.py

bench: $(STAMP)  ## Speed and memory against the bare engines (JSON in bench/)
	@.venv/bin/python bench/run.py

render: $(STAMP)  ## The site of the newest run
	@$(AEGIS) render

lab: $(STAMP)  ## JupyterLab in notebooks/
	@$(AEGIS) lab

clean:  ## Remove the environment, the site and caches (not runs, not weights)
	rm -rf .venv _site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache *.egg-info

$(STAMP): pyproject.toml scripts/setup_venv.sh
	@echo "Making .venv (a few minutes)"
	@scripts/setup_venv.sh
	@touch $@
