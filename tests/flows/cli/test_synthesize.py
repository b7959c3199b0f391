"""`hopbench synthesize` as a user runs it: rules, a model, halves that feed a sweep and training, bad input."""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.flows.cli.conftest import Done, call, lines
from tests.support.llm_servers.scripted import Body, ScriptedServer, polite
from tools.docs.pages import write_trust as write_table
from tools.hopworld.write import write_benchmark

import hopbench
from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.synthesize.quality import Quality
from hopbench.eval.synthesize.write import STATEMENT, Origin, statements_of
from hopbench.flows.studies.synthesize import UNFINISHED, ToWrite, write_sets

FILES = ("corpus.jsonl", "provenance.jsonl", "qrels/test.tsv", "queries.jsonl")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synthesize") / "world"
    write_benchmark(folder, 9, 200, 12)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("synthesize-home")


@pytest.fixture(scope="module")
def halves(world: Path, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets of 6 questions from a folder with nothing but corpus.jsonl."""
    folder = tmp_path_factory.mktemp("synthesize-made")
    (folder / "world").mkdir()  # of the labelled set's name: they share a graph
    (folder / "world" / "corpus.jsonl").write_bytes((world / "corpus.jsonl").read_bytes())
    given = ("--dataset", folder / "world", "--out", folder / "made", "--questions", 6, "--role", "halves")
    done = call("synthesize", *given, home=home)
    assert (0, "") == (done.code, done.err)
    return folder / "made"


def rows(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_halves_are_data_sets_with_roles_and_provenance_that_no_loader_reads(halves: Path) -> None:
    sets = {name: load_benchmark(halves / name) for name in ("tune", "report")}
    assert {"tune": "tune", "report": "report"} == {name: one.role for name, one in sets.items()}
    evidence = [{gold for question in one.questions for gold in question.gold} for one in sets.values()]
    assert not evidence[0] & evidence[1]
    for name, one in sets.items():
        assert [question.id for question in one.questions] == [row["_id"] for row in rows(halves / name / FILES[1])]
        assert set() == {key for question in one.questions for key in question.metadata}
        path = rows(halves / name / "provenance.jsonl")[0]
        assert {"type", "path", "sentences", "quoted", "replaced", "left_out"} < path.keys()


def test_a_folder_holds_all_sets_or_none(halves: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tune = load_benchmark(halves / "tune")
    origin = Origin(corpus="c", corpus_digest="d", by="rules", seed=0, role="tune", dropped={}, check=Quality([], 0))
    empty: list[dict[str, object]] = [{} for _ in tune.questions]
    sets = [ToWrite(name, tune, empty, origin) for name in ("tune", "report")]
    out = tmp_path / "made"
    (out / UNFINISHED / "tune").mkdir(parents=True)  # of a process that was killed
    (out / UNFINISHED / "tune" / "corpus.jsonl").touch()
    with pytest.raises(ValueError, match="shorter"):  # the second cannot be written
        write_sets(out, [sets[0], replace(sets[1], provenances=[])], 12)
    assert [] == list(out.iterdir())
    assert [out / "tune", out / "report"] == [each.folder for each in write_sets(out, sets, 12)]
    assert {"tune", "report"} == {each.name for each in out.iterdir()}


def test_markdown_without_titles_becomes_a_set(home: Path, tmp_path: Path) -> None:
    notes = (
        "We met Ilse Brandt in Port Osric about the ferry. She wants the Kestrel repaired before winter.",
        "The Talvik yard builds hulls from larch. Its foreman, Oren Skaal, learned the trade in Norrby.",
        "Norrby is two days north by train. The market there sells larch boards every Thursday.",
        "Captain Oda Lind has sailed the Kestrel since 2011. Before that she taught navigation in Port Osric.",
        "Oren Skaal repaired the lighthouse lamp in 2018. The parts came from Velmar Glassworks.",
    )
    (tmp_path / "notes").mkdir()
    for number, text in enumerate(notes):
        (tmp_path / "notes" / f"note-{number}.md").write_text(text)
    done = call("synthesize", "--dataset", tmp_path / "notes", "--out", tmp_path / "made", "--questions", 4, home=home)
    assert 0 == done.code, done.err
    made = load_benchmark(tmp_path / "made")
    assert all(len(question.gold) > 1 for question in made.questions)
    assert "made" in (tmp_path / "made" / "README.md").read_text()
    assert not any("note" in question.text for question in made.questions)


@pytest.mark.soak
def test_a_half_tunes_a_sweep_that_the_other_half_scores(halves: Path, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(
        f"datasets: [{halves / 'tune'}]\nreport_on: {halves / 'report'}\nsearch: grid\n"
        "strategy: pagerank\ngrid: {restart: [0.2, 0.5]}\n"
    )
    swept = call("sweep", file, "--out", tmp_path / "swept", "--no-prefect", home=home)
    assert 0 == swept.code, swept.err
    assert (tmp_path / "swept" / "best.yaml").is_file()


def test_only_a_synthetic_set_carries_the_statement(halves: Path, world: Path, tmp_path: Path) -> None:
    assert [STATEMENT] == statements_of(halves / "report")
    assert [] == statements_of(world)
    (tmp_path / "README.md").write_text("---\n: no card [\n---\n")
    assert [] == statements_of(tmp_path)


@pytest.mark.soak
def test_a_report_says_how_far_to_trust_a_synthetic_set(halves: Path, home: Path, tmp_path: Path) -> None:
    given = ("--dataset", halves / "report", "--strategies", "bm25", "--out", tmp_path / "run", "--no-prefect")
    ran = call("run", *given, home=home)
    assert 0 == ran.code, ran.err
    assert STATEMENT.split(",")[0] in " ".join((ran.out + ran.err).split())
    assert "made by a program" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_hoprank_learns_from_a_half(halves: Path, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "weights.json"
    given = ("--folds", 0, "--rounds", 0, "--passes", 1, "--out", file)
    done = call("train", "hoprank", "--dataset", halves / "tune", *given, home=home)
    assert 0 == done.code, done.err
    assert {"tune"} == set(json.loads(file.read_text())["provenance"]["learned_from"])


def test_a_check_compares_with_real_questions_and_writes_the_table(world: Path, home: Path, tmp_path: Path) -> None:
    file, page = tmp_path / "check.json", tmp_path / "page.md"
    given = ("--questions", 4, "--seeds", 2, "--strategies", "bm25,vector", "--out", file)
    done = call("synthesize", "--check", world, *given, home=home)
    assert 0 == done.code, done.err
    assert re.search(r"^Kendall's tau +-?[01]\.\d{3} +\[", done.out, re.MULTILINE)
    check = json.loads(file.read_text())
    assert 2 == len(check["agreements"])
    assert all(each["regret"] >= 0 and 0 <= each["verdicts"] <= 1 for each in check["agreements"])
    page.write_text("before\n<!-- figures of trust -->\nold\n<!-- /figures of trust -->\nafter\n")
    write_table([str(page), str(file)])
    text = page.read_text()
    assert "| world | 200 | 12 / 4 |" in text
    assert "old" not in text


def test_python_writes_the_same_bytes(
    halves: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPBENCH_HOME", str(home))
    corpus = hopbench.open(halves.parent / "world")
    folders = corpus.synthesize(tmp_path / "made", 6, role="halves")
    assert [tmp_path / "made" / "tune", tmp_path / "made" / "report"] == folders
    for folder in folders:
        for name in FILES:
            assert (halves / folder.name / name).read_bytes() == (folder / name).read_bytes()


def writes(body: Body) -> str:
    """A question of its own for each path; it knows an answer only where it has no passage and is asked for London."""
    if "one question for a test" in str(body["messages"][0]["content"]):
        number = zlib.crc32(body["messages"][1]["content"].encode())
        return json.dumps({"question": f"What became of number {number} in the end?", "answer": "nothing"})
    return json.dumps({"answer": "unknown"}) if "few words" in str(body["messages"][0]["content"]) else polite(body)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(writes).running() as running:
        yield running


def made(server_url: str, world: Path, home: Path, out: Path, *more: object, model: str = "m") -> Done:
    given = ("--dataset", world, "--out", out, "--questions", 3, "--llm", f"{model}@{server_url}", *more)
    return call("synthesize", *given, home=home, environment={"OPENAI_API_KEY": "sk-planted"})


def test_a_model_words_the_paths_once_and_a_dry_run_asks_nothing(
    server: ScriptedServer, world: Path, home: Path, tmp_path: Path
) -> None:
    dry = made(server.url, world, home, tmp_path / "dry", "--dry-run")
    assert (0, 0) == (dry.code, len(server.requests)), dry.err
    assert "synthesize:write" in dry.out
    assert not (tmp_path / "dry").exists()
    done = made(server.url, world, home, tmp_path / "made")
    assert 0 == done.code, done.err
    asked = len(server.requests)
    texts = [str(row["text"]) for row in rows(tmp_path / "made" / "queries.jsonl")]
    assert 3 == len(texts)
    assert all(text.startswith("What became of number") for text in texts)
    again = made(server.url, world, home, tmp_path / "again")
    assert (0, asked) == (again.code, len(server.requests)), again.err  # every reply is in the cache


def test_questions_that_need_no_evidence_are_dropped(world: Path, home: Path, tmp_path: Path) -> None:
    known: dict[str, str] = {}

    def knows(body: Body) -> str:
        """It remembers the answer of each question that it wrote, and says it without any passage."""
        prompt, text = (str(part["content"]) for part in body["messages"][:2])
        if "one question for a test" not in prompt:
            return json.dumps({"answer": known[text.rpartition("Question: ")[2]]})
        written = json.loads(writes(body))
        known[written["question"]] = written["answer"] = (re.findall(r"^Answer: (.*)$", text, re.MULTILINE) or ["x"])[0]
        return json.dumps(written)

    with ScriptedServer(knows).running() as running:
        done = made(running.url, world, home, tmp_path / "made", model="know-all")
    assert 2 == done.code
    assert "no question is left: " in done.err
    assert "the model knows it without any passage (" in done.err


@pytest.mark.soak
def test_a_real_small_model_is_asked_through_the_gate(
    small_model_url: str, world: Path, home: Path, tmp_path: Path
) -> None:
    from tests.support.llm_servers.small_model import MODEL

    given = ("--dataset", world, "--out", tmp_path / "made", "--questions", 1, "--types", "bridge")
    done = call("synthesize", *given, "--llm", f"{MODEL}@{small_model_url}", home=home)
    # It is too small to write good questions: what it wrote is a set, or was dropped with the reasons.
    assert done.code == 0 or (done.code == 2 and "no question is left: " in done.err), done.err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "name a corpus with --dataset, or a labelled set with --check"),
        (("--dataset", "hopworld"), "--out is missing"),
        (("--dataset", "hopworld", "--out", "x", "--types", "brigde"), "Did you mean 'bridge'?"),
        (("--dataset", "hopworld", "--out", "x", "--role", "user"), "unknown role 'user'"),
        (("--dataset", "hopworld", "--out", "x", "--by", "ragas"), "--by ragas asks a language model"),
        (("--dataset", "hopworld", "--out", "x", "--budget", "1"), "no language model is asked"),
        (("--dataset", "hopworld", "--out", "x", "--dry-run"), "--dry-run estimates what a language model costs"),
        (("--check", "hopworld", "--dry-run", "--by", "ragas"), "so --dry-run, --by cannot be used: leave them out"),
        (("--check", "hopworld", "--llm", "m@http://localhost:1", "--budget", "1"), "so --budget, --llm cannot be"),
    ],
)
def test_what_cannot_be_made_is_refused_before_any_work(
    given: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("synthesize", *given, home=tmp_path / "home")
    assert (2, True) == (done.code, message in " ".join(done.err.split())), done.err
    assert not (tmp_path / "home").exists()


def test_a_folder_that_holds_something_and_a_set_without_gold_are_refused(tmp_path: Path, home: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    full = call("synthesize", "--dataset", "hopworld", "--out", tmp_path / "full", home=home)
    assert (2, True) == (full.code, "holds something already" in full.err)
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "corpus.jsonl").write_text(
        lines([{"_id": "a", "title": "Ed Wood", "text": "Ed Wood was born in Merrow."}])
    )
    bare = call("synthesize", "--check", tmp_path / "bare", home=home)
    assert (2, True) == (bare.code, "no question has gold passages" in bare.err)


def filled(schema: Body, types: Body) -> object:
    """The plainest value of a schema whose lists and mappings hold something: RAGAS finds nothing to ask otherwise."""
    if "$ref" in schema:
        return filled(types[schema["$ref"].rpartition("/")[2]], types)
    if isinstance(schema.get("additionalProperties"), dict):
        return {"thing": filled(schema["additionalProperties"], types)}
    if schema.get("type") == "object":
        return {name: filled(part, types) for name, part in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return [filled(schema["items"], types)]
    return {"string": "thing", "integer": 5}.get(str(schema.get("type")), True)


@pytest.mark.soak
def test_ragas_generator_asks_through_the_same_gate(
    world: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "outside"))

    def says(body: Body) -> str:
        schema = body["response_format"]["json_schema"]["schema"]
        value = filled(schema, schema.get("$defs", {}))
        assert isinstance(value, dict)
        if "query" in value:
            value["query"] = f"Who is number {zlib.crc32(str(body['messages']).encode())}?"
        return json.dumps(value)

    draws = random.getstate()
    with ScriptedServer(says).running() as running:
        done = made(running.url, world, home, tmp_path / "made", "--by", "ragas", model="ragas")
    assert 0 == done.code, done.err
    assert not (tmp_path / "outside").exists()  # RAGAS would keep a user id there
    assert "hopbench: warning: the price of ragas is not known\n" == done.err
    assert [] == [each for each in caplog.records if each.name.startswith("ragas")]
    assert draws == random.getstate()
    benchmark = load_benchmark(tmp_path / "made")
    assert benchmark.questions
    assert all(question.gold and "synthesizer" in question.type for question in benchmark.questions)
    assert all("ragas" == row["by"] for row in rows(tmp_path / "made" / "provenance.jsonl"))
