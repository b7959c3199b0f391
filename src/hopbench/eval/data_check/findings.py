"""Count what a data set holds, and find what in it is likely a mistake or makes figures weaker."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from hopbench.eval.benchmarks import load_triples
from hopbench.eval.benchmarks.beir import documents_of
from hopbench.eval.benchmarks.documents import READERS
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.metrics.containment import contains_answer, scorable_answers
from hopbench.eval.types import Benchmark, BenchmarkQuestion, Finding, Omission, fitted_on
from hopbench.retrieval.fitted import question_hash
from hopbench.retrieval.graph.construction.hyperlinks import resolve
from hopbench.retrieval.graph.construction.plan import passages_language
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text import ENGLISH, UNKNOWN, sampled
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import MAX_TOKENS, Passage

TRIPLE_FILES = ("triples.jsonl", "kg/triples.jsonl")


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing counted, and what is to be known of it."""

    name: str
    count: int
    note: str = ""


def contents(benchmark: Benchmark) -> list[Fact]:
    """Count what a data set holds, passages first; what it has none of stands there with 0."""
    passages, sources = benchmark.passages, benchmark.sources.values()
    tokens = [count_tokens(passage.text) for passage in passages]
    language = passages_language(passages)
    file = triples_file(benchmark)
    note = "no triples.jsonl or kg/triples.jsonl" if file is None else f"--triples {file}"
    triples = 0
    with suppress(InputError):  # the findings have the reason
        triples = len(load_triples(file, benchmark.titles)) if file else 0
    return [
        Fact("passages", len(passages), f"{_range(tokens)} tokens each, the median has {median(tokens):,.0f}"),
        Fact("documents", len({one.document_id for one in sources if one.document_id}), "distinct document_id"),
        _links(passages),
        Fact("page numbers", sum(one.page_number is not None for one in sources), "passages with page_number"),
        Fact("titles", sum(bool(one.title) for one in passages), "passages with a title, which names an entity"),
        Fact("language", len(sampled(len(passages))), f"passages read: {language.name}; {language.meaning()}"),
        Fact("ready triples", triples, note),
        *_question_facts(benchmark.questions),
    ]


def _links(passages: Sequence[Passage]) -> Fact:
    links = resolve(passages)
    counted = f"{links.external:,} lead out of the corpus, {len(links.unresolved):,} to no document here"
    all_links = links.internal + links.external + len(links.unresolved)
    return Fact("links", links.internal, f"between passages; {counted}" if all_links else "")


def _question_facts(questions: Sequence[BenchmarkQuestion]) -> Iterator[Fact]:
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


def triples_file(benchmark: Benchmark) -> Path | None:
    """Find the first of `TRIPLE_FILES` in the data set's folder."""
    places = [benchmark.folder / name for name in TRIPLE_FILES] if benchmark.folder else []
    return next((place for place in places if place.is_file()), None)


FEW_QUESTIONS = 50


def findings(benchmark: Benchmark, questions: Path | None = None) -> list[Finding]:
    """List all findings, the corpus's first."""
    checks = [*_corpus(benchmark), *_left_out(benchmark, questions)]
    if benchmark.questions:
        checks += [*_questions(benchmark.questions), *_gold(benchmark), *_overlaps(benchmark)]
    return checks


def _finding(what: str, examples: Iterable[str], remedy: str) -> Iterator[Finding]:
    named = list(examples)
    if named:
        yield Finding(what, len(named), tuple(named[:3]), remedy)


def _corpus(benchmark: Benchmark) -> Iterator[Finding]:
    yield from benchmark.findings
    yield from _grouped(benchmark.warnings)
    kinds: dict[str, list[Omission]] = {}
    for omission in benchmark.omissions:
        kinds.setdefault(omission.kind, []).append(omission)
    for kind, found in kinds.items():
        words, parts = sum(one.words for one in found), sum(one.parts for one in found)
        fate, remedy = "left out on purpose", "if questions ask for it, write it into the text"
        if found[0].in_text:
            fate, remedy = (
                "left as they are written",
                "if questions ask for what they stand for, write it into the text",
            )
        what = f"{kind} {fate} ({words:,} word{'s' if words != 1 else ''})"
        yield Finding(what, parts, tuple(one.document for one in found[:3]), remedy)
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
    remedy = "they are no edges of the graph: correct their targets, or add the documents"
    yield from _finding("links lead to no document here", resolve(benchmark.passages).unresolved, remedy)
    language = passages_language(benchmark.passages)
    if language.code not in (ENGLISH.code, UNKNOWN):
        remedy = f"{language.meaning()}; --language CODE where it is another"
        yield Finding(f"the corpus is {language.name}", 1, (), remedy)
    try:
        if (file := triples_file(benchmark)) is not None:
            load_triples(file, benchmark.titles)
    except InputError as error:
        yield Finding(f"the ready triples cannot be used: {error}", 1, (), "correct the file, or do without --triples")


_NAMED = re.compile(rf"(.+?(?:{'|'.join(map(re.escape, READERS))}))(?::? )(.+)", re.IGNORECASE)
_DETAILS = re.compile(r"\s*\([^)]*\)")
_DIGITS = re.compile(r"[\d,]*\d")
_PLURALS = {
    "is": "files are",
    "has": "files have",
    "nests": "files nest",
    "cannot": "files cannot",
    "its": "files whose",
}


def _grouped(warnings: Sequence[str]) -> Iterator[Finding]:
    """Make one finding of warnings that differ in the file and in numbers only."""
    groups: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for warning in warnings:
        what, _, remedy = warning.rpartition(": ")
        named = _NAMED.fullmatch(what)
        file, fault = named.groups() if named else ("", what)
        key = _DIGITS.sub("", _DETAILS.sub("", fault)) if named else what
        groups.setdefault((key, remedy), []).append((what, file, fault))
    for (_, remedy), group in groups.items():
        if len(group) == 1:
            yield Finding(group[0][0], 1, (), remedy)
            continue
        alike = len({fault for _, _, fault in group}) == 1
        texts = [fault if alike else _DETAILS.sub("", fault) for _, _, fault in group]
        words = [each[0] if len(set(each)) == 1 else "…" for each in zip(*map(str.split, texts), strict=False)]
        first = _PLURALS.get(words[0], f"files: {words[0]}")
        what = " ".join([first, *words[1:]])
        yield Finding(what, len(group), tuple(file for _, file, _ in group[:3]), remedy)


def _left_out(benchmark: Benchmark, questions: Path | None) -> Iterator[Finding]:
    file = questions or (documents_of(benchmark.folder)[1] if benchmark.folder else None)
    if file is None or not benchmark.questions:
        return
    loaded = {question.id for question in benchmark.questions}
    ids = (record.get("_id", record.get("id")) for _, record in read_records(file))
    missing = [str(one) for one in ids if one is not None and str(one) not in loaded]
    yield from _finding("questions have no gold and are left out", missing, "name their passages, or remove them")


def _questions(questions: Sequence[BenchmarkQuestion]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    again = [q.id for q in questions if first.setdefault(question_hash(q.text), q.id) != q.id]
    yield from _finding("questions are asked twice", again, "keep one: it would count twice")
    if len(questions) < FEW_QUESTIONS:
        remedy = f"with under {FEW_QUESTIONS} only large differences can be told from chance: ask more"
        yield Finding(f"only {len(questions)} questions", 1, (), remedy)


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
    passages = {p.id: p for p in benchmark.passages}
    lost = []
    for question in benchmark.questions:
        answers = scorable_answers(question.answers)
        gold = [passages[one] for one in question.gold if one in passages]
        if answers and question.gold and not any(contains_answer(f"{p.title} {p.text}", answers) for p in gold):
            lost.append(question.id)
    remedy = "check gold and spelling, or add answer_aliases: has_answer counts words as they are written"
    yield from _finding("answers stand in none of their gold passages", lost, remedy)


def _overlaps(benchmark: Benchmark) -> Iterator[Finding]:
    """Find labels whose parameters were tuned on, or learned from, questions of this set."""
    from hopbench.retrieval.strategies.registry import kind_of, resolve  # loads scipy

    fitted = fitted_on(benchmark)
    shared_labels: dict[tuple[Sequence[str], int], list[str]] = {}
    for label, strategy in resolve("all,all:tuned").items():
        shared = kind_of(label, strategy).in_sample(fitted.digest, fitted.questions)
        if shared:
            shared_labels.setdefault((tuple(shared["sets"]), shared["questions"]), []).append(label)
    for (sets, count), labels in shared_labels.items():
        what = f"questions are also in {', '.join(sets)}, which chose the numbers of {', '.join(labels)}"
        yield Finding(what, count, (), "figures of these labels on them are no evidence, and they take no headline")
