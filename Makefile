# What a contributor types. Each works in the virtualenv that is active; `make install` fills it.

.PHONY: install test lint slow bench fuzz docs lock

install:  ## evalcore and what its tests and checks need
	pip install -e ".[dev]" -c .ci/dev.lock

test:  ## the quick tests: at most six minutes on two cores
	pytest -n auto

lint:  ## style, layers and types
	ruff check .
	ruff format --check .
	lint-imports
	mypy

slow:  ## the tests that are not needed at every change
	pytest -n auto -m slow tests

bench:  ## both libraries side by side: ratios are what counts
	python -m bench

fuzz:  ## changed inputs for every reader, for ten minutes
	python -m tests.hostile fuzz --seconds 600

docs:  ## the pages that are made from tables, and the site in site/ (pip install -e ".[docs]")
	python -m tests.docs --write
	mkdocs build --strict

lock:  ## the versions that are installed, as those with which the checks last passed
	pip freeze --exclude-editable > .ci/dev.lock
