"""`hopbench check-data`, a folder of documents in every command, and docs/your-data.md word for word."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.flows.cli.conftest import Hopbench, lines, write_benchmark
from tests.support.documents import write_documents, write_questions
from tests.support.places import ROOT

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.benchmarks.beir import set_role
from hopbench.eval.benchmarks.beir import write_benchmark as write_folder
from hopbench.eval.benchmarks.passages import read_passage
from hopbench.eval.data_check import check_data
from hopbench.eval.metrics import all_metrics
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text import Language
from hopbench.retrieval.types import Passage, Source

PAGE = (ROOT / "docs" / "your-data.md").read_text(encoding="utf-8")


@pytest.fixture
def ferry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's folder, in the working folder."""
    monkeypatch.chdir(tmp_path)
    return write_documents(tmp_path / "ferry")


def test_the_page_shows_what_check_data_prints(ferry: Path, hopbench: Hopbench) -> None:
    done = hopbench("check-data", "ferry")
    assert (0, "") == (done.code, done.err)
    shown = PAGE.split("ferry` prints:\n\n")[1]
    assert [line.rstrip() for line in done.out.splitlines()] == [line[4:] for line in shown.splitlines()]


def test_the_commands_of_the_page_run(ferry: Path, hopbench: Hopbench) -> None:
    shown = [
        line.strip()
        for line in PAGE.splitlines()
        if re.match("    hopbench (check-data|run|explain) .*ferry( |$)", line)
    ]
    assert 5 == len([line for line in shown if "with-mine" not in line])
    for line in shown:
        if "with-mine" not in line:
            words = shlex.split(line)[1:]
            done = hopbench(*words, *(["--no-prefect"] if words[0] == "run" else []))
            assert (0, "") == (done.code, done.err), line
    assert (ferry / "queries.jsonl").read_text().splitlines()[0] in PAGE
    assert load_benchmark("ferry").digest == load_benchmark("ferry-passages").digest
    assert "tune" == load_benchmark("ferry").role
    results = json.loads(Path("first/results.json").read_text())
    assert {"bm25", "pagerank", "hoprank"} == set(results["strategies"])


def test_a_corpus_alone_builds_and_explains_and_says_where_questions_are_needed(
    ferry: Path, hopbench: Hopbench
) -> None:
    (ferry / "queries.jsonl").unlink()
    assert 0 == hopbench("graph", "build", "--dataset", "ferry", "--no-prefect").code
    assert 0 == hopbench("graph", "info", "--dataset", "ferry").code
    done = hopbench("explain", "Who owns the yard?", "--dataset", "ferry", "--strategy", "pagerank")
    assert 0 == done.code
    assert "Talvik yard" in done.out
    done = hopbench("explain", "m1", "--dataset", "ferry", "--strategy", "pagerank")
    assert (2, True) == (done.code, "has no questions of its own" in done.err)
    done = hopbench("run", "--dataset", "ferry", "--out", "out", "--no-prefect")
    assert (2, "") == (done.code, done.out)
    assert "a corpus without questions, which are needed here" in done.err
    assert "no questions" in hopbench("check-data", "ferry").out

    write_questions(Path("asked.jsonl"))
    flags = ("--strategies", "bm25", "--out", "out", "--no-prefect", "--no-ragas")
    assert 0 == hopbench("run", "--dataset", "ferry", "--questions", "asked.jsonl", *flags).code
    assert 3 == json.loads(Path("out/results.json").read_text())["benchmark"]["questions"]
    assert 0 == hopbench("report", "out").code  # the run's settings name the file


def test_questions_quote_their_evidence_by_file(ferry: Path, hopbench: Hopbench) -> None:
    shown = next(line.strip() for line in PAGE.splitlines() if '"evidence"' in line and line.startswith("    {"))
    (ferry / "queries.jsonl").unlink()
    Path("asked.jsonl").write_text(f"{shown}\n")
    header, row = re.search(r"\n    (id,question.*)\n    (.*)\n", PAGE).groups()  # type: ignore[union-attr]
    Path("asked.csv").write_text(f"{header}\n{row}\n")
    gold = []
    for name in ("asked.jsonl", "asked.csv"):
        assert 0 == hopbench("check-data", "ferry", "--questions", name).code
        gold.append([set(one.gold) for one in load_benchmark("ferry", questions=Path(name)).questions])
    assert [[{"handbook.md#ships", "web/talvik.html"}]] * 2 == gold
    Path("asked.jsonl").write_text(re.sub('"quote": "[^"]*"', '"quote": "no such words"', shown) + "\n")
    done = hopbench("check-data", "ferry", "--questions", "asked.jsonl")
    assert 2 == done.code
    assert 2 == done.out.count("fault: asked.jsonl, line 1: a quote of ")
    assert "2 faults listed above" in done.err


def test_files_left_out_are_warned_of_by_every_command(ferry: Path, hopbench: Hopbench) -> None:
    (ferry / "scan.pdf").write_bytes(b"%PDF-")
    said = "scan.pdf is damaged, or no PDF"
    built = hopbench("graph", "build", "--dataset", "ferry", "--no-prefect")
    assert f"warning: {said}" in built.out
    flags = ("--strategies", "bm25", "--out", "out", "--no-prefect", "--no-ragas")
    assert f"warning: {said}" in " ".join(hopbench("run", "--dataset", "ferry", *flags).out.split())
    assert said in Path("out/report.html").read_text()
    (ferry / "old.txt").write_bytes("Größe und Füße, schöne Flüsse über Städte".encode("latin-1"))
    found = {
        one["what"]: one["remedy"] for one in json.loads(hopbench("check-data", "ferry", "--json").out)["findings"]
    }
    assert any(what.startswith(said) and remedy.startswith("export") for what, remedy in found.items())
    assert any(what.startswith("old.txt is not UTF-8 and was read as") for what in found)


@pytest.mark.parametrize("name", ["cell", "heading", "listitem", "p5001", "quote"])
def test_long_blocks_are_written_whole(name: str, cases_dir: Path, tmp_path: Path, hopbench: Hopbench) -> None:
    (tmp_path / "docs").mkdir()
    text = (cases_dir / "markdown" / f"{name}.md").read_text()
    (tmp_path / "docs" / "a.md").write_text(text)

    assert 0 == hopbench("check-data", tmp_path / "docs", "--out", tmp_path / "out").code

    rows = [json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()]
    found = Counter(word for row in rows for word in re.findall(r"\w+", f"{row['title']} {row['text']}"))
    assert Counter(re.findall(r"\w+", text)) <= found
    assert text.count("Ardmore") == sum(row["text"].count("Ardmore") for row in rows)


def test_code_links_and_ids_are_written(cases_dir: Path, tmp_path: Path, hopbench: Hopbench) -> None:
    assert 0 == hopbench("check-data", cases_dir / "code-and-links", "--out", tmp_path / "out").code

    written = [json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()]
    rows = {row["_id"]: row for row in written}
    assert {"a.md#loop", "a.md#open-it", "other.md#pool"} == set(rows)
    code = "```python\ndef f(x):\n    if x:\n        return 1\n    return 2\n```"
    assert f"Text.\n{code}\nSee the pool." == rows["a.md#loop"]["text"]
    assert [{"text": "the pool", "target": "other.md#pool"}] == rows["a.md#loop"]["links"]
    assert ["Open (T)", "Body."] == [rows["a.md#open-it"][field] for field in ("title", "text")]
    assert ["a.md#loop"] == [key for key, row in rows.items() if "links" in row]


def test_what_is_left_out_on_purpose_is_counted(ferry: Path, hopbench: Hopbench) -> None:
    (ferry / "more.md").write_text(
        "---\ntitle: 1984\n---\nText.<!-- a comment --> ![](x.png)\n\n<p hidden>not seen</p>\n"
    )
    found = json.loads(hopbench("check-data", "ferry", "--json").out)["findings"]
    assert {
        "front matter left out on purpose (5 words)": (2, ["handbook.md", "more.md"]),
        "comments left out on purpose (2 words)": (1, ["more.md"]),
        "images without alternative text left out on purpose (0 words)": (1, ["more.md"]),
        "hidden elements left out on purpose (2 words)": (1, ["more.md"]),
        "styles left out on purpose (5 words)": (1, ["web/talvik.html"]),
        "navigation left out on purpose (1 word)": (1, ["web/talvik.html"]),
        "scripts left out on purpose (1 word)": (1, ["web/talvik.html"]),
        "text outside the main content left out on purpose (1 word)": (1, ["web/talvik.html"]),
        "page titles other than the heading left out on purpose (4 words)": (1, ["web/talvik.html"]),
    } == {one["what"]: (one["count"], one["examples"]) for one in found if "on purpose" in one["what"]}
    assert "1984" in {passage.title for passage in load_benchmark("ferry").passages}
    assert "comments left out on purpose (2 words)" in " ".join(hopbench("check-data", "ferry").out.split())


def test_findings_about_many_files_are_grouped_and_the_next_command_is_named(
    ferry: Path, tmp_path: Path, hopbench: Hopbench
) -> None:
    for number in range(4):
        (ferry / f"empty {number}.md").write_text("")
        (ferry / f"broken-{number}.md").write_text(f"---\nno: [x{number}\n---\nText.\n\n{{{{ version }}}}\n")
    told = json.loads(hopbench("check-data", ferry, "--json").out)
    found = {one["what"]: (one["count"], one["examples"]) for one in told["findings"]}
    assert (4, ["empty 0.md", "empty 1.md", "empty 2.md"]) == found["files are empty"]
    (whose,) = [what for what in found if what.startswith("files whose front matter is not YAML")]
    assert 4 == found[whose][0]
    as_written = "variables, expressions and includes that a site fills in left as they are written (12 words)"
    assert 4 == found[as_written][0]

    run = f"hopbench run --dataset {ferry} --strategies all,all:tuned --out ferry-run"
    assert [run] == told["next"]
    assert f"next: {run}" == hopbench("check-data", ferry).out.splitlines()[-1]
    (ferry / "queries.jsonl").unlink()
    out = tmp_path / "out"
    assert [f"next: hopbench annotate {out}", f"  or: hopbench synthesize --dataset {out} --out out-questions"] == (
        hopbench("check-data", ferry, "--out", out).out.splitlines()[-2:]
    )
    asked = write_questions(tmp_path / "asked.jsonl")
    (command,) = json.loads(hopbench("check-data", ferry, "--questions", asked, "--json").out)["next"]
    assert f" --questions {asked} " in command


def test_the_json_has_every_metric_and_command(bench: Path, hopbench: Hopbench) -> None:
    told = json.loads(hopbench("check-data", bench, "--json").out)
    assert ("tiny", "report", []) == (told["name"], told["role"], told["faults"])
    assert list(all_metrics()) == list(told["metrics"])
    assert {"needs": ["gold passages"], "questions": 4} == told["metrics"]["all_gold@10"]
    assert {"needs": ["answers", "--llm"], "questions": 4} == told["metrics"]["answer_em"]
    assert 12 == told["content"]["passages"]["count"]
    assert all(command["works"] for command in told["commands"].values())


def test_without_gold_and_answers_it_says_what_each_metric_needs(
    bench: Path, tmp_path: Path, hopbench: Hopbench
) -> None:
    asked = tmp_path / "asked.csv"
    asked.write_text("id,question\na,Who was born in Burbank?\n")
    told = json.loads(hopbench("check-data", bench, "--questions", asked, "--json").out)
    assert "user" == told["role"]
    assert 0 == told["metrics"]["all_gold@10"]["questions"]
    assert 1 == told["metrics"]["faithfulness"]["questions"]
    assert [True, True, False, False] == [command["works"] for command in told["commands"].values()]
    assert "no question has gold passages" in hopbench("check-data", bench, "--questions", asked).out


def test_all_faults_are_listed(tmp_path: Path, hopbench: Hopbench) -> None:
    folder = write_benchmark(tmp_path / "made")
    with (folder / "corpus.jsonl").open("a") as corpus:
        corpus.write('{"_id": "p01", "text": "again"}\nno json\n{"_id": "x"}\n')
    with (folder / "queries.jsonl").open("a") as queries:
        queries.write('{"_id": "q9", "text": ""}\n')
    done = hopbench("check-data", folder)
    assert 2 == done.code
    told = [line.removeprefix(f"fault: {folder}/") for line in done.out.splitlines()]
    beginnings = (
        "corpus.jsonl, line 13: duplicate passage '_id' 'p01'",
        "corpus.jsonl, line 14: not JSON",
        "corpus.jsonl, line 15: field 'text' is missing",
        "queries.jsonl, line 5: field 'text' is empty",
    )
    assert list(beginnings) == [line[: len(begin)] for begin, line in zip(beginnings, told, strict=True)]
    assert "4 faults listed above" in done.err
    assert 4 == len(json.loads(hopbench("check-data", folder, "--json").out)["faults"])


def test_unknown_ids_of_judgements_are_both_listed(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "made")
    with (folder / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q1\tnowhere\t1\nq77\tp01\t1\n")
    (question,) = check_data(str(folder)).faults
    assert "1 question id is not among the questions: 'q77' (line 11)" in question
    (folder / "qrels" / "test.tsv").write_text("q1\tnowhere\t1\nq77\tnowhere\t1\n")
    question, gold = check_data(str(folder)).faults
    assert "1 question id is not among the questions: 'q77' (line 2)" in question
    assert "1 gold id is not in the corpus: 'nowhere' (line 1)" in gold


def test_likely_mistakes_are_found(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "made")
    with (folder / "corpus.jsonl").open("a") as corpus:
        same = json.loads((folder / "corpus.jsonl").read_text().splitlines()[0])
        corpus.write(lines([{**same, "_id": "again"}, {"_id": "bare", "title": "Bare", "text": " "}]))
        corpus.write(lines([{"_id": "long", "title": "Long", "text": "It is. " * 500}]))
    with (folder / "queries.jsonl").open("a") as queries:
        queries.write(
            lines([{"_id": "q5", "text": "who founded the company that made beetlejuice", "answer": "Nobody"}])
        )
        queries.write(lines([{"_id": "q6", "text": "Without gold?"}]))
    with (folder / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q5\tp06\t1\n")
    found = {one.what: (one.count, one.examples) for one in check_data(str(folder)).findings}
    assert {
        "passages repeat another's title and text": (1, ("again",)),
        "passages have a title and no text": (1, ("bare",)),
        "passages have over 1,200 tokens": (1, ("long",)),
        "questions have no gold and are left out": (1, ("q6",)),
        "questions are asked twice": (1, ("q5",)),
        "only 5 questions": (1, ()),
        "answers stand in none of their gold passages": (1, ("q5",)),
    } == found


def test_questions_that_labels_were_tuned_on_are_known(tmp_path: Path) -> None:
    (asked,) = load_benchmark("hopworld-tune", limit=1).questions
    folder = write_benchmark(tmp_path / "made")
    with (folder / "queries.jsonl").open("a") as queries:
        queries.write(lines([{"_id": "tuned", "text": asked.text.upper()}]))
    with (folder / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("tuned\tp06\t1\n")
    (overlap,) = [one for one in check_data(str(folder)).findings if "hopworld-tune" in one.what]
    assert 1 == overlap.count
    assert "pagerank" in overlap.what


def test_a_language_that_is_not_english_is_told(tmp_path: Path) -> None:
    text = "Die Werft liegt in Norhafen und wurde von der Familie des Reeders gegründet. " * 3
    (tmp_path / "a.md").write_text(text)
    (found,) = check_data(str(tmp_path)).findings
    assert "the corpus is German" == found.what
    assert "take --embedder multilingual (pip install 'hopbench[multilingual]')" in found.remedy


@pytest.mark.parametrize(
    ("code", "embedder", "expected"),
    [
        ("ja", "wordllama", "--embedder multilingual (pip install"),
        ("mul", "minilm:x", "minilm knows English alone: take --embedder multilingual"),
        ("hi", "wordllama", "--embedder fastembed:intfloat/multilingual-e5-large"),
    ],
)
def test_an_embedder_that_knows_the_language_is_recommended(code: str, embedder: str, expected: str) -> None:
    assert expected in Language(code).meaning(embedder)


def test_an_embedder_that_knows_the_language_is_left_alone() -> None:
    assert not [code for code in ("en", "und", "de", "ja") if "take" in Language(code).meaning("multilingual:use-v3@1")]
    assert "multilingual does not know Hindi: take" in Language("hi").meaning("multilingual:use-v3@1")
    assert "take" not in Language("hi").meaning("openai:embed@host")


@pytest.mark.parametrize(
    "card",
    [
        "",
        "# About\n\nText.\n",
        "---\npretty_name: Tiny\nhopbench:\n  role: report\nlicense: mit\n---\n# About\n\nText.\n",
    ],
)
def test_a_role_is_written_beside_what_the_card_says(tmp_path: Path, card: str, hopbench: Hopbench) -> None:
    folder = write_benchmark(tmp_path / "made")
    if card:
        (folder / "README.md").write_text(card)
    for said, role in (("tune", "tune"), ("report", "report"), ("tuning", "tune")):
        done = hopbench("check-data", folder, "--set-role", said)
        assert (0, True) == (done.code, f"made · role {role}, for " in done.out)
        assert role == load_benchmark(folder).role
    written = (folder / "README.md").read_text()
    assert card.rpartition("---\n")[2] == written.rpartition("---\n")[2]
    assert ("license: mit" in card) == ("license: mit" in written)


def test_roles_that_cannot_be_set(bench: Path, tmp_path: Path, hopbench: Hopbench) -> None:
    assert "unknown role 'train'. Known: report, tune" in hopbench("check-data", bench, "--set-role", "train").err
    assert "is shipped with HopBench" in hopbench("check-data", "hopworld", "--set-role", "tune").err
    file = tmp_path / "a.json"
    file.write_text("[]")
    assert "is no folder, and the role is written in" in hopbench("check-data", file, "--set-role", "tune").err
    (tmp_path / "README.md").write_text("---\nhopbench: {role: tune, more: 1}\n---\n")
    with pytest.raises(InputError, match="says more than a role"):
        set_role(tmp_path, "tune")
    (tmp_path / "README.md").write_bytes(b"\xff")
    with pytest.raises(InputError, match="is not UTF-8 at byte 0: save it"):
        set_role(tmp_path, "tune")
    (tmp_path / "README.md").unlink()
    (tmp_path / "README.md").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="is a link, and what it leads to is not changed"):
        set_role(tmp_path, "tune")


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(str.strip)
passages = st.lists(
    st.builds(Passage, words, words, words, st.builds(Source, st.none() | st.integers(0, 99), words.map(str.strip))),
    min_size=1,
    max_size=5,
    unique_by=lambda passage: passage.id,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=passages, answer=words, number=st.integers(0))
def test_what_is_written_is_read_back(
    made: list[Passage], answer: str, number: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    gold = (made[number % len(made)].id,)
    asked = BenchmarkQuestion(
        "q", "Who?", "bridge", answer, ("another",) if answer != "another" else (), gold, {"hops": 2}
    )
    folder = tmp_path_factory.mktemp("made") / "set"
    write_folder(Benchmark("set", tuple(made), (asked,)), folder)
    read = load_benchmark(folder)
    assert (tuple(made), (asked,)) == (read.passages, read.questions)
    with pytest.raises(InputError, match="holds something already"):
        write_folder(read, folder)


def test_every_field_of_the_page_is_read() -> None:
    from hopbench.eval.benchmarks.fields import Place

    record = {"id": 1, "title": "T", "text": "x", "metadata": {"page_number": 3}}
    assert Passage("1", "T", "x", Source(3)) == read_passage(record, Place("corpus.jsonl", "line", 1))
    for field in ("page_number", "document_id", "document_name", "answer_aliases", "gold", "query-id"):
        assert f"`{field}`" in PAGE


def test_links_are_counted_and_those_that_lead_nowhere_are_named(tmp_path: Path, hopbench: Hopbench) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text(
        "# A\n\n[b](b.md#size), [gone](gone.md), [out](https://example.org).", encoding="utf-8"
    )
    (folder / "b.md").write_text("# B\n\nText.\n\n## Size\n\nTen.")
    done = hopbench("check-data", str(folder), "--json")
    told = json.loads(done.out)
    note = "between passages; 1 lead out of the corpus, 1 to no document here"
    assert {"count": 1, "note": note} == told["content"]["links"]
    assert [["'gone.md' in a.md"]] == [one["examples"] for one in told["findings"] if "links lead" in one["what"]]
