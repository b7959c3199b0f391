"""HotpotQA, 2WikiMultihopQA and MuSiQue in the shapes they are published in."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError, UnknownNameError

HOTPOT: list[dict[str, Any]] = [
    {
        "_id": "h1",
        "question": "Were Ada and Charles born in one city?",
        "answer": "yes",
        "type": "comparison",
        "level": "hard",
        "supporting_facts": [["Ada", 0], ["Charles", 1], ["Ada", 1]],
        "context": [
            ["Ada", ["Ada was born in London.", " She wrote."]],
            ["Charles", ["A man.", " Born in\u00a0London."]],
        ],
    },
    {
        "_id": "h2",
        "question": "Who wrote?",
        "answer": "Ada",
        "type": "bridge",
        "level": "easy",
        "supporting_facts": [["Ada", 1]],
        # the same passage with other white space, and another one of the same title
        "context": [["Ada", ["Ada was born in London.", "She wrote."]], ["Charles", ["A king."]]],
    },
]


def hub_form(records: list[dict[str, Any]], *, ids: bool = True) -> list[dict[str, Any]]:
    """The same records as the Hub and HippoRAG give them: columns in place of pairs, and no ids in HippoRAG's."""
    changed = []
    for record in deepcopy(records):
        for field, names in (("context", ("title", "sentences")), ("supporting_facts", ("title", "sent_id"))):
            record[field] = dict(zip(names, (list(column) for column in zip(*record[field], strict=True)), strict=True))
        if not ids:
            del record["_id"]
        changed.append(record)
    return changed


def load(tmp_path: Path, records: object, name: str = "dev.json", **options: Any) -> Benchmark:
    path = tmp_path / name
    path.write_text(json.dumps(records))
    return load_benchmark(path, **options)


def gold_texts(benchmark: Benchmark) -> list[list[str]]:
    texts = {passage.id: passage.text for passage in benchmark.passages}
    return [[texts[passage_id] for passage_id in question.gold] for question in benchmark.questions]


def test_hotpotqa_contexts_are_pooled_and_supporting_facts_are_gold(tmp_path: Path) -> None:
    benchmark = load(tmp_path, HOTPOT)
    ada, charles, king = benchmark.passages

    assert (benchmark.name, benchmark.role) == ("dev", "report")
    assert [
        ada.text,
        charles.text,
        king.text,
    ] == ["Ada was born in London. She wrote.", "A man. Born in London.", "A king."]
    assert [(ada.id, charles.id), (ada.id,)] == [q.gold for q in benchmark.questions]
    first = benchmark.questions[0]
    assert (first.id, first.type, first.answer) == ("h1", "comparison", "yes")
    assert {
        "level": "hard",
        "context_ids": [ada.id, charles.id],
        "supporting_facts": [[ada.id, 0], [charles.id, 1], [ada.id, 1]],
    } == first.metadata


def test_a_gold_title_means_the_passage_in_the_questions_own_context(tmp_path: Path) -> None:
    records = deepcopy(HOTPOT)
    records[1]["supporting_facts"] = [["Charles", 0]]

    assert gold_texts(load(tmp_path, records)) == [
        ["Ada was born in London. She wrote.", "A man. Born in London."],
        ["A king."],
    ]


def test_the_hubs_form_is_the_same_benchmark(tmp_path: Path) -> None:
    assert load(tmp_path, HOTPOT).digest == load(tmp_path, hub_form(HOTPOT)).digest


def test_json_lines_are_the_same_benchmark(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text("\n".join(map(json.dumps, HOTPOT)))

    assert load(tmp_path, HOTPOT).digest == load_benchmark(path).digest


def test_records_without_ids_get_stable_ones(tmp_path: Path) -> None:
    bare = hub_form(HOTPOT, ids=False)
    first, second = load(tmp_path, bare).questions
    shuffled = load(tmp_path, bare[::-1])

    assert first.id != second.id
    assert [second, first] == list(shuffled.questions)
    assert load(tmp_path, bare).digest == shuffled.digest


def test_passage_ids_depend_on_the_content_only(tmp_path: Path) -> None:
    together = {passage.id for passage in load(tmp_path, HOTPOT).passages}

    assert {passage.id for passage in load(tmp_path, HOTPOT[1:]).passages} < together


def test_a_gold_passage_in_another_questions_context_is_found(tmp_path: Path) -> None:
    records = deepcopy(HOTPOT)
    records[1]["context"] = records[1]["context"][1:]

    assert gold_texts(load(tmp_path, records))[1] == ["Ada was born in London. She wrote."]


def test_test_files_without_gold_are_a_users_set(tmp_path: Path) -> None:
    blind = [
        {key: value for key, value in r.items() if key not in ("supporting_facts", "answer", "type")} for r in HOTPOT
    ]
    benchmark = load(tmp_path, blind)

    assert (
        benchmark.role,
        [q.gold for q in benchmark.questions],
        [q.answer for q in benchmark.questions],
    ) == ("user", [(), ()], [None, None])


def test_2wiki_evidences_are_kept_in_both_forms(tmp_path: Path) -> None:
    official = [{**HOTPOT[0], "evidences": [["Ada", "born in", "London"], ["Charles", "born in", "London"]]}]
    columns = {"fact": ["Ada", "Charles"], "relation": ["born in", "born in"], "entity": ["London", "London"]}
    from_hub = [{**hub_form(HOTPOT[:1])[0], "evidences": columns}]

    expected = load(tmp_path, official, "2wiki_train.json")

    assert official[0]["evidences"] == expected.questions[0].metadata["evidences"]
    assert expected.role == "tune"
    assert expected.questions == load(tmp_path, from_hub).questions


def musique(question_id: str = "2hop__1_2", **fields: Any) -> dict[str, Any]:
    return {
        "id": question_id,
        "question": "Who leads Ada's party?",
        "paragraphs": [
            {"idx": 0, "title": "Noise", "paragraph_text": "Nothing.", "is_supporting": False},
            {"idx": 1, "title": "Ada", "paragraph_text": "Ada is in the party.", "is_supporting": True},
            {"idx": 2, "title": "Party", "paragraph_text": "Bea leads it.", "is_supporting": True},
        ],
        "question_decomposition": [
            {"id": 1, "question": "Ada >> party", "answer": "party", "paragraph_support_idx": 1},
            {"id": 2, "question": "leader of #1", "answer": "Bea", "paragraph_support_idx": 2},
        ],
        "answer": "Bea",
        "answer_aliases": ["B."],
        "answerable": True,
        **fields,
    }


def load_lines(tmp_path: Path, *records: dict[str, Any]) -> Benchmark:
    path = tmp_path / "musique.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return load_benchmark(path)


def test_musique_supporting_paragraphs_are_gold(tmp_path: Path) -> None:
    benchmark = load_lines(tmp_path, musique())
    noise, ada, party = benchmark.passages
    (question,) = benchmark.questions

    assert (question.id, question.type, question.answer, question.aliases) == ("2hop__1_2", "2hop", "Bea", ("B.",))
    assert (ada.id, party.id) == question.gold
    assert {
        "answerable": True,
        "context_ids": [noise.id, ada.id, party.id],
        "decomposition": [
            {"question": "Ada >> party", "answer": "party", "passage_id": ada.id},
            {"question": "leader of #1", "answer": "Bea", "passage_id": party.id},
        ],
    } == question.metadata


def test_musique_unanswerable_twins_give_paragraphs_but_no_question(tmp_path: Path) -> None:
    twin = musique(answerable=False)
    twin["paragraphs"] = [{"idx": 0, "title": "Other", "paragraph_text": "Distracts.", "is_supporting": False}]
    twin["question_decomposition"][0]["paragraph_support_idx"] = None
    benchmark = load_lines(tmp_path, twin, musique())

    assert [question.id for question in benchmark.questions] == ["2hop__1_2"]
    assert [passage.title for passage in benchmark.passages] == ["Other", "Noise", "Ada", "Party"]


def spoiled(**fields: Any) -> list[dict[str, Any]]:
    """Two HotpotQA records, the second one with these fields in place of its own."""
    return [HOTPOT[0], {**HOTPOT[1], **fields}]


def without(field: str) -> list[dict[str, Any]]:
    return [HOTPOT[0], {key: value for key, value in HOTPOT[1].items() if key != field}]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (spoiled(_id="h1"), "dev.json, record 2: duplicate question '_id' 'h1', first used in record 1"),
        (spoiled(question=" "), "dev.json, record 2: field 'text' is empty"),
        (spoiled(question=None), "dev.json, record 2: field 'text' must be a string, not null"),
        (without("question"), "dev.json, record 2: field 'question' is missing (fields present: _id, answer, type"),
        (without("context"), "dev.json, record 2: field 'context' is missing"),
        (spoiled(context="Ada"), "dev.json, record 2: field 'context' must be a list, not a string"),
        (spoiled(context=[["Ada"]]), "dev.json, record 2: field 'context' must be a list of [title, [sentences]], but"),
        (
            spoiled(context=[["Ada", "text"]]),
            "dev.json, record 2: field 'context' must give each passage's sentences as a",
        ),
        (
            spoiled(context=[["Ada", [3]]]),
            "dev.json, record 2: field 'context sentence' must be a string, not the number 3",
        ),
        (spoiled(context=[[None, []]]), "dev.json, record 2: field 'context title' must be a string, not null"),
        (
            spoiled(context={"title": ["Ada"], "sentences": []}),
            "dev.json, record 2: field 'context' has 1 'title' but 0 'sentences': must be as many",
        ),
        (
            spoiled(context={"title": ["Ada"]}),
            "dev.json, record 2: field 'sentences' is missing (fields present: title)",
        ),
        (
            spoiled(supporting_facts=[["Ada", "1"]]),
            "dev.json, record 2: field 'supporting_facts' must give sentence indices",
        ),
        (spoiled(supporting_facts=3), "dev.json, record 2: field 'supporting_facts' must be a list, not the number 3"),
        (
            spoiled(supporting_facts=[["Bea", 0], ["Cy", 0]]),
            "dev.json: 2 supporting titles are not in any context: 'Bea' (record 2), 'Cy' (record 2). Use the",
        ),
        (
            [{**HOTPOT[0], "evidences": [["a", "b"]]}],
            "dev.json, record 1: field 'evidences' must be a list of [subject,",
        ),
        (
            [{**HOTPOT[0], "evidences": "a"}],
            "dev.json, record 1: field 'evidences' must be a list of triples, not a string",
        ),
        ([HOTPOT[0], 5], "dev.json, record 2: must be a JSON object with named fields, not the number 5"),
        ([], "dev.json: is empty: it must hold at least one record"),
        (
            [{"_id": "p", "text": "x"}],
            "dev.json, record 1: not a HotpotQA, 2WikiMultihopQA or MuSiQue record (fields: _id, text",
        ),
        (
            [musique(paragraphs=[3])],
            "dev.json, record 1: field 'paragraphs' must be a list of objects, but holds the number 3",
        ),
        ([musique(paragraphs=[{"title": "A"}])], "dev.json, record 1: field 'paragraph_text' is missing"),
        (spoiled(context=[["", [" "]]]), "dev.json, record 2: holds a passage with neither title nor text"),
        ([{"question": "Who?", "context": []}], "dev.json: the corpus is empty: no record brings a passage"),
        (
            [{**HOTPOT[0], "evidences": {"fact": 1}}],
            "dev.json, record 1: field 'fact' must be a list, not the number 1",
        ),
        (
            [musique(paragraphs=[{"idx": [], "title": "A", "paragraph_text": "x"}])],
            "dev.json, record 1: field 'paragraphs.idx' must be an integer, not a list",
        ),
        (
            [musique(question_decomposition=[{"paragraph_support_idx": []}])],
            "dev.json, record 1: field 'question_decomposition.paragraph_support_idx' must be an integer, not a list",
        ),
        ([musique(question_decomposition=2)], "dev.json, record 1: field 'question_decomposition' must be a list, not"),
        ([musique(answerable=False)], "dev.json: there are no questions"),
    ],
)
def test_refusals_name_file_record_and_field(tmp_path: Path, records: object, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, records)

    assert expected == str(caught.value).replace(f"{tmp_path}/", "")[: len(expected)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'[\n{"a": 1},\n{"b": 2\n]', "dev.json, line 4: not JSON (Expecting ',' delimiter at column 1)"),
        (b'[\n{"a": "\xff"}]', "dev.json, line 2: not UTF-8 at byte 9 of the file"),
        (b'{"a": 1', "dev.json, line 1: not JSON (Expecting ',' delimiter at column 8)"),
    ],
)
def test_broken_files_name_the_line(tmp_path: Path, data: bytes, expected: str) -> None:
    (tmp_path / "dev.json").write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_benchmark(tmp_path / "dev.json")

    assert expected == str(caught.value).replace(f"{tmp_path}/", "")[: len(expected)]


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    assert "evidences" in load(tmp_path, HOTPOT, format="2wiki").questions[0].metadata
    with pytest.raises(InputError, match="record 1: field 'paragraphs' is missing"):
        load(tmp_path, HOTPOT, format="musique")
    with pytest.raises(InputError, match="is a file, and format 'beir' is a folder"):
        load(tmp_path, HOTPOT, format="beir")
    with pytest.raises(InputError, match="is a folder, and format 'musique' is a single file"):
        load_benchmark(tmp_path, format="musique")
    with pytest.raises(UnknownNameError, match=r"unknown benchmark format 'hotpot'. Did you mean 'hotpotqa'\?"):
        load(tmp_path, HOTPOT, format="hotpot")
