"""What a data set holds, in counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from hopbench.eval.benchmarks import load_triples
from hopbench.eval.metrics.containment import scorable_answers
from hopbench.eval.types import Benchmark
from hopbench.retrieval.graph.construction.plan import passages_language
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text import Language, sampled
from hopbench.retrieval.text.model_tokens import count_tokens

TRIPLE_FILES = ("triples.jsonl", "kg/triples.jsonl")


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing counted, and what is to be known of it."""

    name: str
    count: int
    note: str = ""


def contents(benchmark: Benchmark, questions: Path | None = None) -> list[Fact]:
    """The counts, passages first; what a set has none of stands there with 0."""
    return [*_corpus(benchmark), *_asked(benchmark)]


def _corpus(benchmark: Benchmark) -> Iterator[Fact]:
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
    yield Fact("ready triples", _triples(benchmark, file), note)


def _asked(benchmark: Benchmark) -> Iterator[Fact]:
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


def _triples(benchmark: Benchmark, file: Path | None) -> int:
    try:
        return len(load_triples(file, benchmark.titles)) if file else 0
    except InputError:
        return 0  # the findings have the reason
