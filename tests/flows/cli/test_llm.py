"""`--extractor llm`, `--reference` and the strategies' model, as a user runs them, on a scripted server."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.flows.cli.conftest import Hopbench, call, lines
from tests.support.llm_servers.scripted import Body, ScriptedServer, polite

KEY = "sk-planted-llm-4713"


def says(body: Body) -> str:
    """A passage's title is related to Los Angeles; questions name Johnny Depp; everything else is the plainest JSON."""
    prompt, text = (part["content"] for part in body["messages"][:2])
    if "write down the facts" in prompt:
        titles = re.findall(r"Passage (\d+): (.*)", text)
        told = [
            {"passage": int(number), "entities": things(title), "triples": [fact(title)]} for number, title in titles
        ]
        return json.dumps({"passages": told})
    return json.dumps({"entities": ["Johnny Depp"]}) if "named things" in prompt else polite(body)


def things(title: str) -> list[dict[str, str]]:
    kinds = {title: "thing", "Los Angeles": "city"}
    return [{"name": name, "type": kind, "description": f"{name} is a {kind}."} for name, kind in kinds.items()]


def fact(title: str) -> dict[str, object]:
    ends = {"subject": title, "object": "Los Angeles"}
    return {**ends, "relation": "near", "description": f"{title} is near Los Angeles.", "weight": 5, "tags": ["near"]}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(says).running() as running:
        yield running


def test_a_model_builds_the_graph_and_serves_the_strategies(
    server: ScriptedServer, bench: Path, tmp_path: Path
) -> None:
    home, out, reference = tmp_path / "home", tmp_path / "out", tmp_path / "reference.jsonl"
    near = {"passage_id": "p02", "subject": "Los Angeles", "relation": "has", "object": "Tim Burton"}
    far = {"passage_id": "p02", "subject": "Tim Burton", "relation": "born in", "object": "Burbank"}
    reference.write_text(lines([near, far]), encoding="utf-8")
    model = ["--dataset", bench, "--extractor", "llm", "--llm", f"m@{server.url}", "--no-prefect"]
    key = {"OPENAI_API_KEY": KEY}
    built = call("graph", "build", *model, "--reference", reference, home=home, environment=key)
    assert (0, "") == (built.code, built.err)
    # 12 titles near Los Angeles: 12 pairs found, 1 of the 2 wanted; 13 entities, 2 of the 3 wanted.
    assert "relations  precision 0.083  recall 0.500  (1 in both, 12 found, 2 in the reference)" in built.out
    assert re.search(
        r"extract: \d+ calls \(0 from the cache, 0 failed\), \d+ \+ \d+ tokens, price not known", built.out
    )
    read = sum("write down the facts" in str(body) for body in server.requests)
    run = call("run", *model, "--strategies", "vector,entity_expansion", "--out", out, home=home, environment=key)
    assert (0, "") == (run.code, run.err)
    assert read == sum("write down the facts" in str(body) for body in server.requests)  # the graph was there
    strategies = json.loads((out / "results.json").read_text(encoding="utf-8"))["strategies"]
    # The reader answers 4 questions for either label; stage 1 asks as often, stage 3 where entities are few.
    assert 4 == strategies["vector"]["llm_calls"]
    assert strategies["entity_expansion"]["llm_calls"] >= 8
    assert strategies["entity_expansion"]["tokens"] > strategies["vector"]["tokens"]
    assert strategies["entity_expansion"]["latency_without_model"]
    assert "latency_without_model" not in strategies["vector"]
    assert "entity_expansion: latency leaves out what its language model takes" in run.out
    _assert_explained_as_run(server, home, out)
    with closing(sqlite3.connect(home / "calls.db")) as ledger:
        purposes = {purpose for (purpose,) in ledger.execute("SELECT DISTINCT purpose FROM calls")}
    assert {"extract", "entities"} <= purposes
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not [file for file in files if KEY.encode() in file.read_bytes()]
    assert KEY not in built.out + built.err + run.out + run.err


def _assert_explained_as_run(server: ScriptedServer, home: Path, out: Path) -> None:
    """From what the cache has, without a key; what it has not is refused, and --llm asks for it."""
    before = len(server.requests)
    known = call("explain", "q1", "--run", out, "--strategy", "entity_expansion", home=home)
    assert (0, "") == (known.code, known.err)
    assert f"language model: m@{server.url}; its replies in the run" in known.out
    assert "Johnny Depp" in known.out  # q1 does not name him: the model does
    new = ["explain", "Who was born in Burbank?", "--run", out, "--strategy", "entity_expansion"]
    refused = call(*new, home=home)
    assert (4, before) == (refused.code, len(server.requests))
    assert f"not kept: the cache has no reply to it; --llm m@{server.url} asks the model" in refused.err
    asked = call(*new, "--llm", f"m@{server.url}", home=home)
    assert (0, "") == (asked.code, asked.err)
    assert len(server.requests) > before


def test_a_check_of_synthetic_questions_opens_the_model_that_reads_the_graph(
    server: ScriptedServer, bench: Path, tmp_path: Path
) -> None:
    model = ("--extractor", "llm", "--llm", f"m@{server.url}", "--budget", 1)
    given = ("--questions", 2, "--seeds", 1, "--strategies", "bm25,vector")
    done = call("synthesize", "--check", bench, *model, *given, home=tmp_path / "home")
    assert 0 == done.code, done.err
    assert "tiny: 4 real questions, 2 synthetic, 2 labels" in done.out
    assert "the price of m is not known; --budget cannot cap what it costs" in done.err


def test_the_extractor_needs_a_model(hopbench: Hopbench, bench: Path) -> None:
    done = hopbench("graph", "build", "--dataset", bench, "--extractor", "llm", "--no-prefect")
    assert 2 == done.code
    assert "--llm MODEL[@URL]" in done.err


def test_a_graph_that_cannot_be_read_is_incomplete_and_goes_on(bench: Path, tmp_path: Path) -> None:
    broken = {"500": 1.0}
    with ScriptedServer(says, faults=broken).running() as server:
        model = ["--dataset", bench, "--extractor", "llm", "--llm", f"m@{server.url}", "--no-prefect"]
        done = call("graph", "build", *model, home=tmp_path / "home")
        assert 4 == done.code
        assert "did not read 12 of 12 passages" in done.err
        server.faults = {}
        assert 0 == call("graph", "build", *model, home=tmp_path / "home").code
