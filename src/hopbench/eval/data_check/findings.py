"""What a data set holds, in counts, and what in it is likely a mistake or makes figures weaker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from hopbench.eval.benchmarks import load_triples
from hopbench.eval.benchmarks.beir import find_questions
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.metrics.containment import contains_answer, scorable_answers
from hopbench.eval.types import Benchmark, Finding, Omission, fitted_on
from hopbench.retrieval.fitted import question_hash
from hopbench.retrieval.graph.construction.plan import passages_language
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text import ENGLISH, UNKNOWN, Language, sampled
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import MAX_TOKENS

TRIPLE_FILES = ("triples.jsonl", "kg/triples.jsonl")


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing counted, and what is to be known of it."""

    name: str
    count: int
    note: str = ""


def contents(benchmark: Benchmark, questions: Path | None = None) -> list[Fact]:
    """The counts, passages first; what a set has none of stands there with 0."""
    return [*_corpus_facts(benchmark), *_question_facts(benchmark)]


def _corpus_facts(benchmark: Benchmark) -> Iterator[Fact]:
    passages = benchmark.passages
    tokens = [count_tokens(passage.text) for passage in passages]
    spread = f"{_range(tokens)} tokens each, the median has {median(tokens):,.0f}"
    yield Fact("passages", len(passages), spread)
    sources = benchmark.sources.values()
    yield Fact("documents", len({one.document_id for one in sources if one.document_id}), "distinct document_id")
    yield Fact("page numbers", sum(one.page_number is not None for one in sources), "passages with page_number")
    yield Fact(
        "titles", sum(bool(passage.title) for passage in passages), "passages with a title, which names an entity"
    )
    language = language_of(benchmark)
    yield Fact("language", len(sampled(len(passages))), f"passages read: {language.name}; {language.meaning()}")
    file = triples_file(benchmark)
    note = "no triples.jsonl or kg/triples.jsonl" if file is None else f"--triples {file}"
    yield Fact("ready triples", _count_triples(benchmark, file), note)


def _question_facts(benchmark: Benchmark) -> Iterator[Fact]:
    questions = benchmark.questions
    yield Fact("questions", len(questions))
    gold = [question.gold.size for question in questions if question.gold]
    spread = f"{_range(gold)} passages each; {sum(n == 1 for n in gold)} have one" if gold else ""
    yield Fact("with gold", len(gold), spread)
    sets = [len(question.gold.sets) for question in questions if len(question.gold.sets) > 1]
    yield Fact("alternatives", len(sets), f"{_range(sets)} gold sets each; the best one counts" if sets else "")
    grades = Counter(
        grade for question in questions for grade in (question.gold.grades or dict.fromkeys(question.gold, 1)).values()
    )
    listed = ", ".join(f"{count:,} of grade {grade}" for grade, count in sorted(grades.items(), reverse=True))
    yield Fact("judgements", sum(grades.values()), listed)
    answered = [question for question in questions if question.answer is not None]
    shown = sum(bool(scorable_answers(question.answers)) for question in answered)
    yield Fact(
        "with an answer", len(answered), f"{shown} that a text can show, others are yes or no" if answered else ""
    )
    types = Counter(question.type for question in questions if question.type)
    named = ", ".join(f"{count} {name}" for name, count in islice(types.most_common(), 5))
    yield Fact("with a type", sum(types.values()), named + (", …" if len(types) > 5 else ""))


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def language_of(benchmark: Benchmark) -> Language:
    """The language that a graph of the corpus is built with, unless --language names another."""
    return passages_language(benchmark.passages)


def triples_file(benchmark: Benchmark) -> Path | None:
    """The first of `TRIPLE_FILES` that stands in the data set's folder."""
    places = [benchmark.folder / name for name in TRIPLE_FILES] if benchmark.folder else []
    return next((place for place in places if place.is_file()), None)


def _count_triples(benchmark: Benchmark, file: Path | None) -> int:
    try:
        return len(load_triples(file, benchmark.titles)) if file else 0
    except InputError:
        return 0  # the findings have the reason


FEW_QUESTIONS = 50


def findings(benchmark: Benchmark, questions: Path | None = None) -> list[Finding]:
    """All that was found, the corpus's first."""
    corpus = (_unread, _omitted, _texts, _language, _triple_findings)
    found = [finding for check in corpus for finding in check(benchmark)]
    found += _left_out(benchmark, questions)
    if benchmark.questions:
        found += [*_question_findings(benchmark), *_gold(benchmark), *_answers(benchmark), *_overlaps(benchmark)]
    return found


def _finding(what: str, examples: Iterable[str], remedy: str) -> Iterator[Finding]:
    named = list(examples)
    if named:
        yield Finding(what, len(named), tuple(named[:3]), remedy)


def _unread(benchmark: Benchmark) -> Iterator[Finding]:
    yield from benchmark.findings
    for warning in benchmark.warnings:
        what, _, remedy = warning.rpartition(": ")
        yield Finding(what, 1, (), remedy)


def _omitted(benchmark: Benchmark) -> Iterator[Finding]:
    """What documents leave out on purpose, by kind."""
    kinds: dict[str, list[Omission]] = {}
    for one in benchmark.omissions:
        kinds.setdefault(one.kind, []).append(one)
    remedy = "if questions ask for it, write it into the text"
    for kind, found in kinds.items():
        words, parts = sum(one.words for one in found), sum(one.parts for one in found)
        what = f"{kind} left out on purpose ({words:,} word{'s' if words != 1 else ''})"
        yield Finding(what, parts, tuple(one.document for one in found[:3]), remedy)


def _texts(benchmark: Benchmark) -> Iterator[Finding]:
    first: dict[tuple[str, str], str] = {}
    with_content = [p for p in benchmark.passages if p.title or p.text.strip()]  # the loader reports the others
    again = [p.id for p in with_content if first.setdefault((p.title, p.text), p.id) != p.id]
    yield from _finding("passages repeat another's title and text", again, "keep one: gold names only one of them")
    empty = [p.id for p in with_content if not p.text.strip()]
    yield from _finding("passages have a title and no text", empty, "remove them, unless their titles say enough")
    long = [p.id for p in benchmark.passages if count_tokens(p.text) > MAX_TOKENS]
    yield from _finding(
        f"passages have over {MAX_TOKENS:,} tokens",
        long,
        "they are split into chunks at sentences (--max-tokens) and scored as a whole; shorter passages are clearer",
    )


def _language(benchmark: Benchmark) -> Iterator[Finding]:
    language = language_of(benchmark)
    if language.code not in (ENGLISH.code, UNKNOWN):
        remedy = f"{language.meaning()}; --language CODE where it is another"
        yield Finding(f"the corpus is {language.name}", 1, (), remedy)


def _triple_findings(benchmark: Benchmark) -> Iterator[Finding]:
    file = triples_file(benchmark)
    try:
        if file is not None:
            load_triples(file, benchmark.titles)
    except InputError as error:
        yield Finding(f"the ready triples cannot be used: {error}", 1, (), "correct the file, or do without --triples")


def _left_out(benchmark: Benchmark, questions: Path | None) -> Iterator[Finding]:
    """Questions of the file that have no gold while others have."""
    file = questions or (find_questions(benchmark.folder, needed=False) if benchmark.folder else None)
    if file is None or not benchmark.questions:
        return
    loaded = {question.id for question in benchmark.questions}
    ids = (record.get("_id", record.get("id")) for _, record in read_records(file))
    missing = [str(one) for one in ids if str(one) not in loaded]
    yield from _finding("questions have no gold and are left out", missing, "name their passages, or remove them")


def _question_findings(benchmark: Benchmark) -> Iterator[Finding]:
    first: dict[str, str] = {}
    again = [q.id for q in benchmark.questions if first.setdefault(question_hash(q.text), q.id) != q.id]
    yield from _finding("questions are asked twice", again, "keep one: it would count twice")
    if len(benchmark.questions) < FEW_QUESTIONS:
        what = f"only {len(benchmark.questions)} questions"
        yield Finding(
            what, 1, (), f"with under {FEW_QUESTIONS} only large differences can be told from chance: ask more"
        )


def _gold(benchmark: Benchmark) -> Iterator[Finding]:
    yield from _finding(
        "gold passages are not in the corpus",
        benchmark.missing_gold,
        "they count as never found: add the passages, or remove the lines; --strict refuses such a set",
    )
    graded = [
        f"{question.id} {passage} ({grade})"
        for question in benchmark.questions
        for passage, grade in question.gold.grades.items()
        if grade not in (0, 1)
    ]
    yield from _finding(
        "judgements have a grade other than 0 and 1",
        graded,
        "nDCG@10 takes grades as gains, all else those of at least 1 as gold: --min-grade sets another threshold",
    )
    wide = [
        question.id
        for question in benchmark.questions
        if any(set(one) < set(other) for one in question.gold.sets for other in question.gold.sets)
    ]
    yield from _finding(
        "questions have a gold set that contains another", wide, "remove the larger set: the smaller one is enough"
    )


def _answers(benchmark: Benchmark) -> Iterator[Finding]:
    texts = {p.id: p for p in benchmark.passages}
    lost = []
    for question in benchmark.questions:
        answers = scorable_answers(question.answers)
        if answers and question.gold:
            gold = [texts[one] for one in question.gold if one in texts]
            if not any(contains_answer(f"{p.title} {p.text}", answers) for p in gold):
                lost.append(question.id)
    remedy = "check gold and spelling, or add answer_aliases: has_answer counts words as they are written"
    yield from _finding("answers stand in none of their gold passages", lost, remedy)


def _overlaps(benchmark: Benchmark) -> Iterator[Finding]:
    """Labels whose numbers were tuned on, or learned from, questions that are asked here."""
    from hopbench.retrieval.strategies.registry import (
        kind_of,  # loads scipy
        resolve,
    )

    fitted = fitted_on(benchmark)
    shared_labels: dict[tuple[Sequence[str], int], list[str]] = {}
    for label, strategy in resolve("all,all:tuned").items():
        shared = kind_of(label, strategy).in_sample(fitted.digest, fitted.questions)
        if shared:
            shared_labels.setdefault((tuple(shared["sets"]), shared["questions"]), []).append(label)
    for (sets, count), labels in shared_labels.items():
        what = f"questions are also in {', '.join(sets)}, which chose the numbers of {', '.join(labels)}"
        yield Finding(what, count, (), "figures of these labels on them are no evidence, and they take no headline")
