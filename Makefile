.PHONY: setup demo test lint clean
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

setup: $(STAMP)

# One stamp file: setting up twice, or from demo and then test, does the work once.
$(STAMP): pyproject.toml requirements/dev.txt requirements/uv.txt
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

demo: setup
	$(BIN)/hopbench nightly

test: setup
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .hopbench $(VENV)
