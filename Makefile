PYTHON ?= .venv/bin/python

.PHONY: check quick test exhaustive format lock locked

check: ## everything a change must pass
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest

quick: ## the tests of everyday work
	$(PYTHON) -m pytest -q -m quick

test: ## the tests alone
	$(PYTHON) -m pytest

exhaustive: ## every setting and preset on 2 and 4 ranks, all rows of data sets
	$(PYTHON) -m pytest -m exhaustive

format: ## rewrite the style
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

lock: ## pin the development environment anew, with hashes; needs uv
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --upgrade \
		--override .ci/without-torch.txt --output-file .ci/requirements-dev.txt

locked: ## install exactly what is pinned; torch first, in the build that the machine needs
	$(PYTHON) -m pip install "torch>=2.11,<2.14"
	$(PYTHON) -m pip install --no-deps --require-hashes -r .ci/requirements-dev.txt
	$(PYTHON) -m pip install --no-deps -e .
