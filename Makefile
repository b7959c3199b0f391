.PHONY: setup demo test soak lint docs findings counts bench neo4j neo4j-stop up down clean
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

setup: $(STAMP)

# One stamp file: setting up twice, or from demo and then test, does the work once. Compiled here, so that no command
# has to, also where Python may not write bytecode: half of the first run's time would go into it.
$(STAMP): pyproject.toml requirements/dev.txt requirements/no-deps.txt requirements/uv.txt
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/uv.txt
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -r requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -r requirements/no-deps.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

demo: setup
	$(BIN)/hopbench nightly

# Four workers, also on two processors: a worker waits for servers now and then. Bytecode is kept, also where the
# environment says not to: the tests start many processes, each of which would compile the project again.
test soak: export PYTHONDONTWRITEBYTECODE =
test: setup
	$(BIN)/python -m pytest -n 4

# What is long by nature: a real model as judge, whole real sets, and the sweep that is killed again and again, 20 times
# where the tests do it once; the properties on examples that are new each time; then 20 unchanged nights beside four busy
# processes, without an alarm, and 5 in which a label is three times as slow, each found.
soak: setup
	$(BIN)/python -m pytest -m soak
	$(BIN)/python -m pytest -n 3 -m hypothesis --hypothesis-profile=soak
	$(BIN)/python -m tests.support.soak_nights --nights 20 --planted 5

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation as a site, in build/site; broken links and anchors are errors.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Behaviour of real libraries, each shown by a script (findings/README.md); needs the package index.
findings:
	set -e; for script in findings/*.sh; do echo "== $$script"; bash $$script; done

# How large the code is, and how much of it a small run executes.
counts: setup
	$(BIN)/python -m tools.counts

# What each strategy costs, how it grows with the corpus (the largest world has 100,000 passages), and what one more
# trial of a sweep costs, on HotpotQA where it is at hand.
HOPBENCH_BENCHMARKS ?= ../shared/benchmarks
DEV := $(wildcard $(HOPBENCH_BENCHMARKS)/hotpotqa-dev500)
bench: setup
	$(BIN)/python -m tools.costs --trials-on $(or $(DEV),hopworld)

# A real Neo4j without Docker (Java 17, Maven), for this checkout alone. It ends with the calling terminal, with the
# process PARENT=PID, or by neo4j-stop.
neo4j: setup
	$(BIN)/python -m tools.neo4j_server start $(PARENT)

neo4j-stop: setup
	$(BIN)/python -m tools.neo4j_server stop

# Neo4j, MLflow and Prefect in containers; their credentials stand in .env.
.env:
	@echo "copy .env.example to .env and set its passwords" >&2; exit 1

up: .env
	docker compose up --detach --wait

down: .env
	docker compose down

clean:
	rm -rf .hopbench $(VENV)
