"""`--extractor llm`, `--reference` and the strategies' model, as a user runs them, on a scripted server."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from tests.flows.cli.conftest import Hopbench, call, lines
from tests.support.llm_servers.scripted import Body, ScriptedServer, polite

from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.retrieval.llm.endpoint import refusal

DEAD = "http://127.0.0.1:9/v1"
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
    unasked = call(*new, "--completion-tokens", 9, home=home)
    assert (2, True) == (unasked.code, "--completion-tokens: no language model is asked" in unasked.err)
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


@pytest.mark.parametrize(
    ("flags", "refused"),
    [
        (["--llm", f"m@{DEAD}"], "graph build --llm: extractor rules asks no language model: add --extractor llm"),
        (["--llm", f"m@{DEAD}", "--gleaning", 1], "--llm, --gleaning: extractor rules asks"),
        (["--extractor", "spacy", "--completion-tokens", 9], "--completion-tokens: extractor spacy asks"),
        (["--extractor", "llm", "--llm", f"m@{DEAD}", "--triples", "t.jsonl"], "a graph of --triples t.jsonl asks"),
    ],
)
def test_a_graph_that_no_model_reads_refuses_a_model(
    flags: list[object], refused: str, hopbench: Hopbench, bench: Path
) -> None:
    done = hopbench("graph", "build", "--dataset", bench, "--no-prefect", *flags)
    assert (2, "") == (done.code, done.out)
    assert refused in done.err
    assert "leave " in done.err


def test_no_hint_names_a_model_for_a_graph_that_none_reads() -> None:
    named = GraphOptions(dataset="d", llm="m", reasoning_effort="low", completion_tokens=9, similar="exact")
    assert "hopbench graph build --dataset d --similar exact" == named.build_command()
    read = named.changed(extractor="llm")
    flags = "--extractor llm --similar exact --llm m --reasoning-effort low --completion-tokens 9"
    assert f"hopbench graph build --dataset d {flags}" == read.build_command()


def test_effort_budget_and_refusals_stand_in_the_results(bench: Path, tmp_path: Path) -> None:
    """A deployment that thinks, refuses max_tokens and temperature, and is asked to think little."""
    with ScriptedServer(says).running() as server:
        model = ["--llm", f"my-deployment@{server.url}", "--reasoning-effort", "low", "--completion-tokens", 3000]
        given = ["run", "--dataset", bench, "--strategies", "bm25", "--no-prefect", *model, "--out", tmp_path / "out"]
        done = call(*given, home=tmp_path / "home")
        assert 0 == done.code, done.err
        assert 1 == done.err.count("my-deployment")
        assert "refuses or ignores max_tokens (max_completion_tokens in its place), temperature (left out)" in done.err
        sent = server.requests[-1]
        assert ("low", 3000) == (sent["reasoning_effort"], sent["max_completion_tokens"])
        before = len(server.requests)
        again = call(*given[:-1], tmp_path / "again", home=tmp_path / "home")
        assert (0, before) == (again.code, len(server.requests))
        other = call(*given[:-1], tmp_path / "other", "--completion-tokens", 4000, home=tmp_path / "home")
        assert 0 == other.code, other.err
        assert len(server.requests) > before
    content = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert ("low", 3000) == (content["reader"]["reasoning_effort"], content["reader"]["completion_tokens"])
    assert "max_completion_tokens" in content["reader"]["adapted"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "reasoning effort low, completion tokens 3000, its endpoint refuses or ignores max_tokens" in page


MODES = ("think", "thinkend", "fence", "fencetext", "leading", "trailing", "reasoning", "bom", "nousage", "listwrap")
MODES += ("extra", "parts", "nullfr")


@pytest.fixture(scope="module")
def field_server(cases_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server of the cases from the field; its modes are the first part of the path."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(cases_dir / "endpoint_replies.py"), str(port)]
    with subprocess.Popen(command, cwd=tmp_path_factory.mktemp("field")) as process:
        try:
            while refusal(f"http://127.0.0.1:{port}") is not None:
                assert process.poll() is None
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("model", "mode"), [*(("m", mode) for mode in MODES), ("openai/gpt-5-mini", "gpt5"), ("my-deployment", "gpt5")]
)
def test_a_model_behind_any_endpoint_of_the_field_reads_the_graph(
    field_server: str, bench: Path, tmp_path: Path, model: str, mode: str
) -> None:
    named = ["--extractor", "llm", "--llm", f"{model}@{field_server}/{mode}/v1", "--no-prefect"]
    done = call("graph", "build", "--dataset", bench, *named, home=tmp_path / "home")
    assert 0 == done.code, done.err
    assert ("refuses or ignores" in done.err) == (mode == "gpt5")
    assert re.search(r"extract: \d+ calls \(0 from the cache, 0 failed\), [1-9]\d* \+ [1-9]\d* tokens", done.out)
    assert ("of thinking)" in done.out) == (mode in ("think", "thinkend"))


@pytest.mark.parametrize("mode", ["think", "nojson"])
def test_a_run_over_an_endpoint_of_the_field_answers(field_server: str, bench: Path, tmp_path: Path, mode: str) -> None:
    labels = ["--strategies", "bm25", "--no-prefect", "--llm", f"run@{field_server}/{mode}/v1"]
    done = call("run", "--dataset", bench, *labels, "--out", tmp_path / "out", home=tmp_path / "home")
    assert 0 == done.code, done.err
    answers = pd.read_parquet(tmp_path / "out" / "questions.parquet")["answer"]
    assert {"Norhaven"} == set(answers)


def test_an_error_in_a_200_of_the_field_is_incomplete_with_its_reason(
    field_server: str, bench: Path, tmp_path: Path
) -> None:
    named = ["--extractor", "llm", "--llm", f"m@{field_server}/error200/v1", "--no-prefect"]
    done = call("graph", "build", "--dataset", bench, *named, home=tmp_path / "home")
    assert 4 == done.code
    assert "Upstream provider overloaded" in done.err


def test_a_graph_that_cannot_be_read_is_incomplete_and_goes_on(bench: Path, tmp_path: Path) -> None:
    broken = {"500": 1.0}
    with ScriptedServer(says, faults=broken).running() as server:
        model = ["--dataset", bench, "--extractor", "llm", "--llm", f"m@{server.url}", "--no-prefect"]
        done = call("graph", "build", *model, home=tmp_path / "home")
        assert 4 == done.code
        assert "did not read 12 of 12 passages" in done.err
        server.faults = {}
        assert 0 == call("graph", "build", *model, home=tmp_path / "home").code
