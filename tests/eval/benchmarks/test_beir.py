"""BEIR folders: what loads, what is tolerated, and what each refusal says."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.benchmarks.questions import read_qrels
from hopbench.retrieval.support.errors import InputError

PASSAGES = [
    {"_id": "p1", "title": "Ada", "text": "Ada wrote notes."},
    {"_id": "p2", "title": "Babbage", "text": ""},
    {"_id": "p3", "title": " ", "text": "No title here."},
]
QUESTIONS = [
    {"_id": "q1", "text": "Who wrote notes?", "metadata": {"answer": "Ada", "type": "bridge", "hops": 2}},
    {"_id": "q2", "text": "Who built engines?", "metadata": {"answer": "Babbage", "answer_aliases": ["Charles"]}},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\tp1\t1\nq1\tp3\t2\nq2\tp2\t1\nq2\tp1\t0\n"


def jsonl(records: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A valid benchmark named `tiny`, for tests to spoil."""
    path = tmp_path / "tiny"
    (path / "qrels").mkdir(parents=True)
    (path / "corpus.jsonl").write_bytes(jsonl(PASSAGES))
    (path / "queries.jsonl").write_bytes(jsonl(QUESTIONS))
    (path / "qrels" / "test.tsv").write_text(QRELS)
    return path


def message(folder: Path) -> str:
    """The refusal, with the folder's path taken out so that the rest can be compared whole."""
    with pytest.raises(InputError) as caught:
        load_benchmark(folder)
    assert caught.value.exit_code == 2
    return str(caught.value).replace(f"{folder}/", "").replace(str(folder), "tiny")


def test_passages_questions_and_gold_are_read(folder: Path) -> None:
    benchmark = load_benchmark(folder)

    assert (benchmark.name, benchmark.role) == ("tiny", "report")
    assert [(p.id, p.title) for p in benchmark.passages] == [("p1", "Ada"), ("p2", "Babbage"), ("p3", "")]
    assert [q.gold for q in benchmark.questions] == [("p1", "p3"), ("p2",)]  # q2's p1 has score 0: judged, not gold


def test_metadata_is_normalised_and_the_rest_kept(folder: Path) -> None:
    first, second = load_benchmark(folder).questions

    assert (first.type, first.answer, first.aliases, dict(first.metadata)) == ("bridge", "Ada", (), {"hops": 2})
    assert (second.type, second.answer, second.aliases) == ("", "Babbage", ("Charles",))


def test_fields_beside_metadata_and_lists_of_answers_are_accepted(folder: Path) -> None:
    flat = {"id": 7, "question": "Who?", "answer": ["Ada", "A. L.", "Ada"], "level": "hard", "type": None}
    (folder / "queries.jsonl").write_bytes(jsonl([flat]))
    (folder / "qrels" / "test.tsv").write_text("7\tp1\t1\n")

    (question,) = load_benchmark(folder).questions

    assert (question.id, question.text, question.answer, question.aliases) == ("7", "Who?", "Ada", ("A. L.",))
    assert question.metadata == {"level": "hard"}


def test_bom_crlf_blank_lines_and_unicode_line_separators_change_nothing(folder: Path) -> None:
    separated = [*PASSAGES, {"_id": "p4", "title": "", "text": "one\u2028two"}]
    (folder / "corpus.jsonl").write_bytes(jsonl(separated))
    plain = load_benchmark(folder)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        path = folder / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n  \r\n"))

    assert plain == load_benchmark(folder)


def test_limit_keeps_the_first_questions_and_the_whole_corpus(folder: Path) -> None:
    limited = load_benchmark(folder, limit=1)

    assert ([q.id for q in limited.questions], len(limited.passages)) == (["q1"], 3)
    assert load_benchmark(folder) == load_benchmark(folder, limit=99)
    with pytest.raises(InputError, match=r"^limit is 0, must be at least 1"):
        load_benchmark(folder, limit=0)


def test_the_limit_does_not_hide_errors_behind_it(folder: Path) -> None:
    (folder / "queries.jsonl").write_bytes(jsonl([*QUESTIONS, {"_id": "q3", "text": " "}]))
    with pytest.raises(InputError, match="line 3: field 'text' is empty"):
        load_benchmark(folder, limit=1)


def test_unjudged_questions_are_left_out_with_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq2\tp2\t1\n")
    with caplog.at_level(logging.WARNING):
        benchmark = load_benchmark(folder)

    assert [q.id for q in benchmark.questions] == ["q2"]
    assert "1 of 2 questions have no gold and are left out" in caplog.text


def test_without_qrels_it_is_a_users_corpus(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels").rmdir()
    benchmark = load_benchmark(folder)

    assert (benchmark.role, [q.gold for q in benchmark.questions]) == ("user", [(), ()])


@pytest.mark.parametrize(
    "lines",
    [
        ("q1 0 p1 1", "q1  0  p2 2.0", "q2 Q0 p3 -1"),
        ("q1\t0\tp1\t1", "q1\t0\tp2\t2", "q2\tQ0\tp3\t-1"),
        ("qid\titer\tdocno\trel", "q1\t0\tp1\t1", "q1\t0\tp2\t2", "q2\t0\tp3\t-1"),
        ("qid iter docno rel", "q1 0 p1 1", "q1 0 p2 2", "q2 0 p3 -1"),
    ],
)
def test_the_four_columns_of_trec_judgements_are_read(tmp_path: Path, lines: tuple[str, ...]) -> None:
    file = tmp_path / "test.tsv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = [(each.question, each.passage, each.grade) for each in read_qrels(file)]
    assert found == [("q1", "p1", 1), ("q1", "p2", 2), ("q2", "p3", -1)]


def test_the_only_other_qrels_file_serves_and_several_are_refused(folder: Path) -> None:
    expected = load_benchmark(folder)
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "dev.tsv")
    assert expected == load_benchmark(folder)

    (folder / "qrels" / "train.tsv").write_text(QRELS)
    assert (
        message(folder)
        == "qrels: needs test.tsv or exactly one other .tsv file (found: dev.tsv, train.tsv): name one of them test.tsv"
    )


def line_17_is_cut(folder: Path) -> None:
    rows = [{"_id": f"p{n}", "title": "t", "text": "x"} for n in range(1, 20)]
    lines = jsonl(rows).splitlines(keepends=True)
    lines[16] = b'{"_id": "p17", "title": "t"\n'  # a lost brace
    (folder / "corpus.jsonl").write_bytes(b"".join(lines))


def corpus_is_a_folder(folder: Path) -> None:
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl").mkdir()


def qrels_is_a_file(folder: Path) -> None:
    (folder / "qrels").rename(folder / "old")
    (folder / "qrels").touch()


def put(name: str, *lines: str | bytes) -> Callable[[Path], object]:
    """A way to spoil a folder: `name` holds just these lines."""
    data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    return lambda folder: (folder / name).write_bytes(data)


OK = '{"_id": "p1", "title": "Ada", "text": "x"}'
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "malformed line 17": (
        line_17_is_cut,
        "corpus.jsonl, line 17: not JSON (Expecting ',' delimiter at column 28): correct or remove the line",
    ),
    "nested too deeply": (
        put("corpus.jsonl", OK, '{"_id":' + "[" * 100_000),
        "corpus.jsonl, line 2: not JSON that can be",
    ),
    "an array nested too deeply": (put("corpus.jsonl", "[" * 100_000), "corpus.jsonl: not JSON that can be read ("),
    "an endless number": (
        put("corpus.jsonl", OK, '{"_id": ' + "9" * 5000 + "}"),
        "corpus.jsonl, line 2: not JSON that",
    ),
    "not an object": (
        put("corpus.jsonl", OK, '"p2"'),
        "corpus.jsonl, line 2: must be a JSON object with named fields, not a",
    ),
    "no _id": (
        put("corpus.jsonl", OK, '{"title": "B", "text": "y"}'),
        "corpus.jsonl, line 2: field '_id' is missing (fields present: title, text)",
    ),
    "empty _id": (
        put("corpus.jsonl", '{"_id": " ", "text": "y"}'),
        "corpus.jsonl, line 1: field '_id' is empty: every record needs an id of its own",
    ),
    "_id of another type": (
        put("corpus.jsonl", '{"_id": true, "text": "y"}'),
        "corpus.jsonl, line 1: field '_id' must be a string, not true",
    ),
    "_id with a tab": (
        put("corpus.jsonl", r'{"_id": "a\tb", "text": "y"}'),
        r"corpus.jsonl, line 1: field '_id' is 'a\tb': ",
    ),
    "title of another type": (
        put("corpus.jsonl", '{"_id": "p1", "title": 5, "text": "y"}'),
        "corpus.jsonl, line 1: field 'title' must be a string, not the number 5",
    ),
    "title false is no empty title": (
        put("corpus.jsonl", '{"_id": "p1", "title": false, "text": "y"}'),
        "corpus.jsonl, line 1: field 'title' must be a string, not false",
    ),
    "text of another type": (
        put("corpus.jsonl", '{"_id": "p1", "title": "A", "text": ["y"]}'),
        "corpus.jsonl, line 1: field 'text' must be a string, not a list",
    ),
    "no text": (put("corpus.jsonl", '{"_id": "p1", "title": "A"}'), "corpus.jsonl, line 1: field 'text' is missing"),
    "a lone surrogate": (
        put("corpus.jsonl", r'{"_id": "p1", "text": "a\ud800"}'),
        r"corpus.jsonl, line 1: field 'text' holds the lone surrogate '\ud800', which is not a character: remove it",
    ),
    "duplicate passage": (
        put("corpus.jsonl", OK, "", '{"_id": "p2", "text": "x"}', OK),
        "corpus.jsonl, line 4: duplicate passage '_id' 'p1', first used in line 1: remove one",
    ),
    "a passage over 1 MiB": (
        put("corpus.jsonl", OK, json.dumps({"_id": "p2", "text": "x" * 10_000_000})),
        "corpus.jsonl, line 2: field 'text' is 10,000,000 bytes long, over the limit of 1,048,576 (1 MiB): split the",
    ),
    "over 1 MiB only in bytes": (  # 600,000 characters of 2 bytes
        put("corpus.jsonl", json.dumps({"_id": "p2", "text": "é" * 600_000}, ensure_ascii=False)),
        "corpus.jsonl, line 1: field 'text' is 1,200,000 bytes long",
    ),
    "not UTF-8": (  # line 1 takes 43 bytes with its end; the bad byte is the 24th of line 2
        put("corpus.jsonl", OK, b'{"_id": "p2", "title": "\xe9t\xe9", "text": "x"}'),
        "corpus.jsonl, line 2: not UTF-8 at byte 67 of the file: save the file as UTF-8",
    ),
    "UTF-16": (
        lambda folder: (folder / "corpus.jsonl").write_bytes(OK.encode("utf-16")),
        "corpus.jsonl, line 1: not UTF-8 at byte 0 of the file (it looks like UTF-16): save the file as UTF-8",
    ),
    "empty corpus": (
        put("corpus.jsonl", " ", ""),
        "corpus.jsonl: the corpus is empty: it must hold at least one passage",
    ),
    "no corpus": (
        lambda folder: (folder / "corpus.jsonl").unlink(),
        "tiny: no corpus.jsonl (or .parquet, .csv, .tsv) and no documents (.md, .html, .pdf, .txt); the folder holds "
        "qrels, queries.jsonl. A benchmark is a folder of corpus,",
    ),
    "no queries": (
        lambda folder: (folder / "queries.jsonl").unlink(),
        "tiny: no queries.jsonl (or .parquet, .csv, .tsv); the folder holds corpus.jsonl, qrels. It is a corpus "
        "without questions, which are needed here: write them into that file, or name another with --questions; ",
    ),
    "empty queries": (
        put("queries.jsonl", ""),
        "queries.jsonl: there are no questions: it must hold at least one (_id, text)",
    ),
    "question without words": (
        put("queries.jsonl", '{"_id": "q1", "text": "  "}'),
        "queries.jsonl, line 1: field 'text' is empty: a question needs words",
    ),
    "question without text": (
        put("queries.jsonl", '{"_id": "q1", "metadata": {}}'),
        "queries.jsonl, line 1: field 'text' is missing (fields present: _id, metadata)",
    ),
    "duplicate question": (
        put("queries.jsonl", '{"_id": "q1", "text": "a?"}', '{"_id": "q1", "text": "b?"}'),
        "queries.jsonl, line 2: duplicate question '_id' 'q1', first used in line 1: remove one",
    ),
    "metadata of another type": (
        put("queries.jsonl", '{"_id": "q1", "text": "a?", "metadata": []}'),
        "queries.jsonl, line 1: field 'metadata' must be an object, not a list",
    ),
    "answer of another type": (
        put("queries.jsonl", '{"_id": "q1", "text": "a?", "metadata": {"answer": {"year": 35}}}'),
        "queries.jsonl, line 1: field 'metadata.answer' must be a string, not an object",
    ),
    "an alias of another type": (
        put("queries.jsonl", '{"_id": "q1", "text": "a?", "metadata": {"answer_aliases": [null]}}'),
        "queries.jsonl, line 1: field 'metadata.answer_aliases' must be a string, not null",
    ),
    "type of another type": (
        put("queries.jsonl", '{"_id": "q1", "text": "a?", "metadata": {"type": 2}}'),
        "queries.jsonl, line 1: field 'metadata.type' must be a string, not the number 2",
    ),
    "qrels columns": (
        put("qrels/test.tsv", "query-id\tcorpus-id\tscore", "q1 p1 1"),
        "qrels/test.tsv, line 2: has 1 columns, must have 3 separated by tabs: query-id, corpus-id, score",
    ),
    "qrels score": (
        put("qrels/test.tsv", "q1\tp1\t1", "q2\tp2\thigh"),
        "qrels/test.tsv, line 2: column 'score' is 'high', must be a whole number from -1000000 to",
    ),
    "qrels score with a fraction": (
        put("qrels/test.tsv", "q1\tp1\t0.5"),
        "qrels/test.tsv, line 1: column 'score' is '0.5'",
    ),
    "qrels score nan": (put("qrels/test.tsv", "q1\tp1\tnan"), "qrels/test.tsv, line 1: column 'score' is 'nan'"),
    "qrels score beyond all": (
        put("qrels/test.tsv", "q1\tp1\t1e300"),
        "qrels/test.tsv, line 1: column 'score' is '1e300'",
    ),
    "unknown headings": (
        put("qrels/test.tsv", "topic\tdoc\trel", "q1\tp1\t1"),
        "qrels/test.tsv, line 1: the heading 'topic', 'doc', 'rel' is unknown: name the columns query-id, corpus-id, ",
    ),
    "headings in another order": (
        put("qrels/test.tsv", "corpus-id\tquery-id\tscore", "p1\tq1\t1"),
        "qrels/test.tsv, line 1: the heading 'corpus-id', 'query-id', 'score' is unknown",
    ),
    "a heading too many": (
        put("qrels/test.tsv", "query-id\tcorpus-id\tscore\tnote", "q1\tp1\t1\tsure"),
        "qrels/test.tsv, line 1: the heading 'query-id', 'corpus-id', 'score', 'note' is unknown",
    ),
    "qrels empty cell": (put("qrels/test.tsv", "q1\t\t1"), "qrels/test.tsv, line 1: column 'corpus-id' is empty"),
    "qrels contradict": (
        put("qrels/test.tsv", "q1\tp1\t1", "q1\tp1\t1", "q1\tp1\t0"),
        "qrels/test.tsv, line 3: column 'score' is 0, but line 1 gives the same pair 1: keep one",
    ),
    "qrels without gold": (put("qrels/test.tsv", "q1\tp1\t0"), "qrels/test.tsv: no line has a score above 0"),
    "qrels not UTF-8": (put("qrels/test.tsv", b"q1\tp\xff\t1"), "qrels/test.tsv, line 1: not UTF-8 at byte 4"),
    "unknown gold": (
        put("qrels/test.tsv", "q1\tx1\t1", "q1\tx2\t1", "q2\tx1\t1", "q2\tx3\t1", "q2\tx4\t1"),
        "qrels/test.tsv: 4 gold ids are not in the corpus: 'x1' (line 1), 'x2' (line 2), 'x3' (line 4), and 1 more. "
        "None of the gold is there: name the corpus that was judged.",
    ),
    "unknown question": (
        put("qrels/test.tsv", "q1\tp1\t1", "q9\tp1\t1"),
        "qrels/test.tsv: 1 question id is not among the questions: 'q9' (line 2). Add the questions or",
    ),
    "corpus is a folder": (
        corpus_is_a_folder,
        "corpus.jsonl: is a folder, not a file: write what it should give into a file, and name that",
    ),
    "qrels is a file": (
        qrels_is_a_file,
        "qrels: must be a folder that holds test.tsv, not a file",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_file_line_and_field(folder: Path, case: str) -> None:
    spoil, expected = REFUSED[case]
    spoil(folder)

    assert expected == message(folder)[: len(expected)]


def test_passages_without_title_and_text_keep_their_ids_and_are_a_finding(folder: Path, tmp_path: Path) -> None:
    empty = [{"_id": "e1", "text": ""}, {"_id": "e2", "title": " ", "text": " \n"}, {"_id": "e3", "text": None}]
    (folder / "corpus.jsonl").write_bytes(jsonl([*PASSAGES, *empty]))
    (folder / "qrels" / "test.tsv").write_text("q1\te1\t1\nq2\tp2\t1\n")
    for mapped in (None, tmp_path / "mapped"):
        benchmark = load_benchmark(folder, mapped=mapped)
        assert ("e1",) == benchmark.questions[0].gold
        assert [("e1", "", ""), ("e2", "", ""), ("e3", "", "")] == [
            (one.id, one.title, one.text) for one in benchmark.passages[3:]
        ]
        (finding,) = benchmark.findings
        assert (finding.what, finding.count) == ("passages have neither title nor text", 3)
        assert ("e1", "e2", "e3") == finding.examples


def test_an_empty_folder_says_what_a_benchmark_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder holds nothing\. A benchmark is a folder of corpus, queries"):
        load_benchmark(tmp_path)
