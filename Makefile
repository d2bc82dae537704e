PYTHON ?= .venv/bin/python

.PHONY: check test format

check: ## everything a change must pass
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest

test: ## the tests alone
	$(PYTHON) -m pytest

format: ## rewrite the style
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .
