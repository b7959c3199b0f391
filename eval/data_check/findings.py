"""What in a data set is likely a mistake, or makes figures weaker: how many, which, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hopbench.eval.benchmarks import load_triples
from hopbench.eval.benchmarks.beir import find_questions
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.data_check.content import language_of, triples_file
from hopbench.eval.metrics.normalise import contains_answer, normalise_answer, scorable_answers
from hopbench.eval.types import Benchmark, fitted_on
from hopbench.retrieval.chunking import count_tokens
from hopbench.retrieval.fitted import question_hash
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text import ENGLISH, UNKNOWN
from hopbench.retrieval.types import MAX_TOKENS

FEW_QUESTIONS = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` is true of `count` things, `examples` the first three of them; `remedy` says what to do about it."""

    what: str
    count: int
    examples: tuple[str, ...]
    remedy: str


def findings(benchmark: Benchmark, questions: Path | None = None) -> list[Finding]:
    """All that was found, the corpus's first."""
    looks: tuple[Callable[[Benchmark], Iterator[Finding]], ...] = (_unread, _texts, _language, _triples)
    found = [finding for look in looks for finding in look(benchmark)]
    found += _left_out(benchmark, questions)
    if benchmark.questions:
        found += [*_asked(benchmark), *_answers(benchmark), *_overlaps(benchmark)]
    return found


def _finding(what: str, examples: Iterable[str], remedy: str) -> Iterator[Finding]:
    named = list(examples)
    if named:
        yield Finding(what, len(named), tuple(named[:3]), remedy)


def _unread(benchmark: Benchmark) -> Iterator[Finding]:
    for warning in benchmark.warnings:
        what, _, remedy = warning.rpartition(": ")
        yield Finding(what, 1, (), remedy)


def _texts(benchmark: Benchmark) -> Iterator[Finding]:
    first: dict[tuple[str, str], str] = {}
    again = [p.id for p in benchmark.passages if first.setdefault((p.title, p.text), p.id) != p.id]
    yield from _finding("passages repeat another's title and text", again, "keep one: gold names only one of them")
    empty = [p.id for p in benchmark.passages if not p.text.strip()]
    yield from _finding("passages have a title and no text", empty, "remove them, unless their titles say enough")
    long = [p.id for p in benchmark.passages if len(p.text) > MAX_TOKENS and count_tokens(p.text) > MAX_TOKENS]
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


def _triples(benchmark: Benchmark) -> Iterator[Finding]:
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
    kept = {question.id for question in benchmark.questions}
    ids = (record.get("_id", record.get("id")) for _, record in read_records(file))
    missing = [str(one) for one in ids if str(one) not in kept]
    yield from _finding("questions have no gold and are left out", missing, "name their passages, or remove them")


def _asked(benchmark: Benchmark) -> Iterator[Finding]:
    first: dict[str, str] = {}
    again = [q.id for q in benchmark.questions if first.setdefault(question_hash(q.text), q.id) != q.id]
    yield from _finding("questions are asked twice", again, "keep one: it would count twice")
    if len(benchmark.questions) < FEW_QUESTIONS:
        what = f"only {len(benchmark.questions)} questions"
        yield Finding(
            what, 1, (), f"with under {FEW_QUESTIONS} only large differences can be told from chance: ask more"
        )


def _answers(benchmark: Benchmark) -> Iterator[Finding]:
    texts = {p.id: p for p in benchmark.passages}
    lost = []
    for question in benchmark.questions:
        answers = scorable_answers(question.answers)
        if answers and question.gold:
            gold = [texts[one] for one in question.gold]
            if not any(contains_answer(normalise_answer(f"{p.title} {p.text}"), answers) for p in gold):
                lost.append(question.id)
    remedy = "check gold and spelling, or add answer_aliases: has_answer counts words as they are written"
    yield from _finding("answers stand in none of their gold passages", lost, remedy)


def _overlaps(benchmark: Benchmark) -> Iterator[Finding]:
    """Labels whose numbers were tuned on, or learned from, questions that are asked here."""
    from hopbench.retrieval.strategies.kinds import kind_of  # loads scipy
    from hopbench.retrieval.strategies.registry import resolve

    asked = fitted_on(benchmark)
    told: dict[tuple[Sequence[str], int], list[str]] = {}
    for label, strategy in resolve("all,all:tuned").items():
        shared = kind_of(label, strategy).in_sample(asked.digest, asked.questions)
        if shared:
            told.setdefault((tuple(shared["sets"]), shared["questions"]), []).append(label)
    for (sets, count), labels in told.items():
        what = f"questions are also in {', '.join(sets)}, which chose the numbers of {', '.join(labels)}"
        yield Finding(what, count, (), "figures of these labels on them are no evidence, and they take no headline")
