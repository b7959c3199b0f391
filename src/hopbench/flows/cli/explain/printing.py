"""How `hopbench explain` prints: names in place of ids, paths edge by edge, fates in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from hopbench.eval.explain import Examiner, Fate, RankedPassage, linked_entities, side_by_side
from hopbench.eval.explain.answers import note_words
from hopbench.eval.report.summary import in_sample_words
from hopbench.flows.cli.explain.features import feature_table, quoted
from hopbench.flows.cli.printing.output import add_row, console, table
from hopbench.flows.explain.words import fate_words, path_words, place_words, rank_words, score_words, set_words
from hopbench.retrieval.text.model_tokens import count_tokens

if TYPE_CHECKING:
    from rich.console import Console

    from hopbench.flows.explain.target import Target
    from hopbench.retrieval.types import Step


WITH_A_PATH = ("reached", "out-ranked", "pruned", "not followed", "other edges", "not returned")


def print_explanation(target: Target, examiner: Examiner, again: bool = False) -> None:
    """One strategy's ranking and fates; the question and its entities first, unless they were printed before."""
    screen = console()
    if not again:
        _print_question(screen, target)
    answer = examiner.answer
    kind, in_sample = target.kind(answer.label)
    screen.print(Text(f"\n{answer.label}  {kind}  {_settings(examiner)}", style="bold"))
    if in_sample:
        _line(screen, f"{in_sample_words(in_sample, kind)}, whose questions are asked here", 2)
    if answer.failure is not None:
        screen.print(Text(f"  failed: {answer.failure}"))
        return
    _print_notes(screen, target, examiner)
    weights, learned = answer.strategy.coefficients(), answer.strategy.contributions
    for place in answer.places[: examiner.top]:
        _print_hit(screen, target, place, len(str(examiner.top)), learned=learned)
    if learned:
        screen.print(feature_table(answer.places, target.question.gold, weights))
    _print_context(screen, target, examiner)
    _print_stored(screen, target, examiner)
    if target.question.gold:
        screen.print(Text("gold passages", style="bold"))
        if len(target.question.gold.sets) > 1:
            _print_sets(screen, target, examiner)
        for gold in target.question.gold:
            _print_fate(screen, target, examiner.fate(gold))


def _print_sets(screen: Console, target: Target, examiner: Examiner) -> None:
    for number, passages in enumerate(target.question.gold.sets, start=1):
        _line(screen, f"set {number}: {', '.join(map(target.title, passages))}", 2)
    _line(screen, set_words(target.question.gold, examiner, target.title), 2)


def _line(screen: Console, text: str, indent: int, style: str = "") -> None:
    screen.print(Padding(Text(text, style), (0, 0, 0, indent), expand=False))


def _print_question(screen: Console, target: Target) -> None:
    question = target.question
    kind = f", {question.type}" if question.type else ""
    screen.print(Text(f"{question.id}  {target.benchmark.name}{kind}"))
    screen.print(Text(question.text, style="bold"))
    if question.answer is not None:
        screen.print(Text(f"answer: {' | '.join(question.answers)}"))
    rows = table("words", "entity", "weight", "chunks", right=("weight", "chunks"))
    linked = linked_entities(target.batch)
    for one in linked:
        add_row(rows, one.words, one.name, f"{one.weight:g}", f"{one.chunks:,}")
    screen.print(rows if linked else Text("no entity of the graph is named in it"))
    screen.print(Text("Paths: [passage] ─edge weight→ entity. Hits: rank, title, score, origin, score components."))


def _settings(examiner: Examiner) -> str:
    counters = examiner.answer.counters
    return f"({counters.round_trips} round trips, {counters.rows:,} rows, {counters.edges_touched:,} edges touched)"


def _print_notes(screen: Console, target: Target, examiner: Examiner) -> None:
    answer = examiner.answer
    if examiner.answer.strategy.edges:
        seeds = ", ".join(target.title(passage) for passage in answer.seeds)
        _line(screen, f"seeds: {seeds or 'none'}", 2)
    for name, value in answer.notes.items():
        _line(screen, f"{name.replace('_', ' ')}: {note_words(value, target.names)}", 2)


def _print_hit(screen: Console, target: Target, place: RankedPassage, width: int, learned: bool) -> None:
    gold = "gold" if place.passage in target.question.gold else "    "
    words = score_words if learned else place_words  # the table below has a learned score's components
    head = f"{place.rank:>{width}}  {gold}  {target.title(place.passage)}  {words(place)}"
    _line(screen, head, 2)
    if place.hit.path:
        _line(screen, path_words(place.hit.path, target.names), width + 10, "dim")
        _print_stated(screen, target, place.hit.path, width + 12)
    for line in quoted(place.hit.path, target) if learned else ():
        _line(screen, line, width + 12, "dim")


def _print_stated(screen: Console, target: Target, path: Sequence[Step], indent: int) -> None:
    """A path goes over RELATED_TO both ways: what is stated there, the way round that it was stated."""
    for line in target.stated(path):
        _line(screen, line, indent, "dim")


def _print_context(screen: Console, target: Target, examiner: Examiner) -> None:
    """The context a reader would get: the graph block, then the passages."""
    read = examiner.answer.context
    if read is None:
        return
    tokens, block = count_tokens(read.context), count_tokens(read.graph_context)
    of = f", {block} of them the graph block" if block else ""
    _line(screen, f"context for the reader: {tokens} tokens{of}", 2)
    for line in read.graph_context.splitlines():
        _line(screen, line, 6, "dim")
    _line(screen, "passages: " + ", ".join(map(target.title, read.context_ids)), 6)


def _print_stored(screen: Console, target: Target, examiner: Examiner) -> None:
    """Whether the ranking stored in the named run is the same, or how it differs."""
    if target.run is None:
        return
    label, top = examiner.answer.label, examiner.top
    stored = target.stored(label)
    now = [place.passage for place in examiner.answer.places]
    if stored is None:
        words = f"{label} was not run on it in {target.run.folder}: ranked now"
    elif list(stored) == now:
        words = f"the ranking stored in {target.run.folder} is the same"
    else:
        listed = ", ".join(f"{rank} {target.title(passage)}" for rank, passage in enumerate(stored[:top], 1))
        words = f"warning: {target.run.folder} holds another ranking (code, weights or graph changed since): {listed}"
    _line(screen, words, 2)


def _print_fate(screen: Console, target: Target, fate: Fate) -> None:
    _line(screen, f"{target.title(fate.passage)}  [{fate.passage}]  {rank_words(fate)}", 2)
    for line in fate_words(fate, target.names, target.title):
        _line(screen, line, 6)
    _print_stated(screen, target, _shown_path(fate), 8)


def _shown_path(fate: Fate) -> Sequence[Step]:
    """The path shown for a fate: the passage's own, that of the limit that lost it, or one in the graph."""
    if fate.kind not in WITH_A_PATH:
        return ()
    if fate.place is not None and fate.place.hit.path:
        return fate.place.hit.path
    if fate.changes and fate.changes[0].place.hit.path:
        return fate.changes[0].place.hit.path
    return fate.route.steps if fate.route is not None else ()


def print_versus(target: Target, first: Examiner, second: Examiner) -> None:
    """Ranks of the gold passages under both, and what only one has among its first hits, with the reason."""
    screen = console()
    both = side_by_side(first, second, target.question.gold)
    one, other = first.answer.label, second.answer.label
    screen.print(Text(f"\n{one} against {other}", style="bold"))
    if both.gold:
        rows = table("gold passage", one, other)
        for ours, theirs in both.gold:
            add_row(rows, target.title(ours.passage), _short(ours), _short(theirs))
        screen.print(rows)
    _print_only(screen, target, f"only {one}", other, both.only_first)
    _print_only(screen, target, f"only {other}", one, both.only_second)


def _short(fate: Fate) -> str:
    rank = f"rank {fate.place.rank}" if fate.place else "not ranked"
    return rank if rank == fate.kind else f"{rank}, {fate.kind}"


def _print_only(
    screen: Console, target: Target, title: str, other: str, found: Sequence[tuple[RankedPassage, Fate]]
) -> None:
    screen.print(Text(f"{title} has in its first hits: {len(found) or 'nothing'}"))
    for place, fate in found:
        gold = "  gold" if place.passage in target.question.gold else ""
        _line(screen, f"{place.rank}  {target.title(place.passage)}{gold}  {place_words(place)}", 2)
        if place.hit.path:
            _line(screen, path_words(place.hit.path, target.names), 6, "dim")
            _print_stated(screen, target, place.hit.path, 8)
        why = fate_words(fate, target.names, target.title)
        _line(screen, f"{other}: {rank_words(fate)}: {why[0] if why else fate.kind}", 6)
