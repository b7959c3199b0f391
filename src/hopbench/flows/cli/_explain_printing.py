"""How `hopbench explain` prints: names in place of ids, paths edge by edge, outcomes in words, scores taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from hopbench.eval.explain import Examiner, Fate, RankedPassage, linked_entities, quote, side_by_side
from hopbench.eval.explain.answers import note_words
from hopbench.eval.report.summary import in_sample_words
from hopbench.flows.cli.output import Grid, console
from hopbench.flows.explain.words import outcome_words, path_words, place_words, rank_words, score_words, set_words
from hopbench.retrieval.graph.schema import MENTIONED_IN
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Step

if TYPE_CHECKING:
    from rich.console import Console

    from hopbench.flows.explain.target import Target

FIRST = 3  # hits shown beside the gold passages
LARGEST = 25  # features of a score that has more


def feature_table(places: Sequence[RankedPassage], gold: Sequence[str], weights: Mapping[str, float]) -> Grid:
    """A row per feature: its weight, and for the first hits and every gold passage `value → value × weight`.

    Without weights, as where trees decide, the contributions alone, the largest first.
    """
    shown = [place for place in places if place.candidate and (place.rank <= FIRST or place.passage in gold)]
    titles = [f"rank {place.rank}{' gold' if place.passage in gold else ''}" for place in shown]
    if not weights:
        return _contributions(shown, titles)
    rows = Grid("feature", "weight", *titles, right=("weight", *titles))
    for name, weight in weights.items():
        shares = [place.hit.components.get(name, 0.0) for place in shown]
        values = [share / weight if weight else 0.0 for share in shares]  # + 0.0: no minus before a zero
        cells = [f"{value + 0.0:.3g} → {share + 0.0:+.2f}" for value, share in zip(values, shares, strict=True)]
        rows.add_row(name, f"{weight:.3g}", *cells)
    rows.add_row("score", "", *(f"{place.hit.score:.3f}" for place in shown))
    return rows


def _contributions(shown: Sequence[RankedPassage], titles: Sequence[str]) -> Grid:
    """A row for each of the features that contribute most to any of these scores, and one for all others."""
    all_shares = [dict(place.hit.components) for place in shown]
    names = list(dict.fromkeys(name for shares in all_shares for name in shares))
    largest = sorted(names, key=lambda name: -max(abs(shares.get(name, 0.0)) for shares in all_shares))[:LARGEST]
    others = [name for name in names if name not in largest]
    rows = Grid("feature", *titles, right=tuple(titles))
    for name in largest:
        rows.add_row(name, *(f"{shares.get(name, 0.0) + 0.0:+.2f}" for shares in all_shares))
    if others:
        sums = (sum(shares.get(name, 0.0) for name in others) for shares in all_shares)
        rows.add_row(f"{len(others)} others", *(f"{value + 0.0:+.2f}" for value in sums))
    rows.add_row("score", *(f"{place.hit.score:.3f}" for place in shown))
    return rows


def quoted(path: Sequence[Step], target: Target) -> list[str]:
    """`Title: “… the [mention] …”` for each mention on a path, where it is spelled out."""
    lines = []
    for step in path:
        ends = step.source, step.target
        passage, entity = ends if step.source in target.index.row_of else ends[::-1]
        row = target.index.row_of.get(passage)
        if step.edge != MENTIONED_IN or row is None:
            continue
        chunk = target.index.chunks[row]
        found = quote(chunk.title, chunk.text, target.names(entity))
        if found:
            lines.append(f"{target.names(passage)} “{found.before}[{found.mention}]{found.after}”")
    return list(dict.fromkeys(lines))


WITH_A_PATH = ("reached", "out-ranked", "pruned", "not followed", "other edges", "not returned")


def print_explanation(target: Target, examiner: Examiner, again: bool = False) -> None:
    """One strategy's ranking and outcomes; the question and its entities first, unless they were printed before."""
    screen, answer, gold = console(), examiner.answer, target.question.gold
    if not again:
        _print_question(screen, target)
    kind, in_sample = target.kind(answer.label)
    spent = answer.counters
    settings = f"({spent.round_trips} round trips, {spent.rows:,} rows, {spent.edges_touched:,} edges touched)"
    screen.print(Text(f"\n{answer.label}  {kind}  {settings}", style="bold"))
    if in_sample:
        _line(screen, f"{in_sample_words(in_sample, kind)}, whose questions are asked here", 2)
    if answer.failure is not None:
        screen.print(Text(f"  failed: {answer.failure}"))
        return
    if answer.strategy.edges:
        _line(screen, f"seeds: {', '.join(map(target.title, answer.seeds)) or 'none'}", 2)
    for name, value in answer.notes.items():
        _line(screen, f"{name.replace('_', ' ')}: {note_words(value, target.names)}", 2)
    weights, learned = answer.strategy.coefficients(), answer.strategy.contributions
    for place in answer.places[: examiner.top]:
        _print_hit(screen, target, place, len(str(examiner.top)), learned=learned)
    if learned:
        screen.print(feature_table(answer.places, gold, weights))
    if answer.context is not None:  # what a reader would get: the graph block, then the passages
        tokens, block = count_tokens(answer.context.context), count_tokens(answer.context.graph_context)
        of = f", {block} of them the graph block" if block else ""
        _line(screen, f"context for the reader: {tokens} tokens{of}", 2)
        for line in answer.context.graph_context.splitlines():
            _line(screen, line, 6, "dim")
        _line(screen, "passages: " + ", ".join(map(target.title, answer.context.context_ids)), 6)
    _print_stored(screen, target, examiner)
    if gold:
        _print_gold(screen, target, examiner)


def _line(screen: Console, text: str, indent: int, style: str = "") -> None:
    screen.print(Padding(Text(text, style), (0, 0, 0, indent), expand=False))


def _print_question(screen: Console, target: Target) -> None:
    question = target.question
    kind = f", {question.type}" if question.type else ""
    screen.print(Text(f"{question.id}  {target.benchmark.name}{kind}"))
    screen.print(Text(question.text, style="bold"))
    if question.answer is not None:
        screen.print(Text(f"answer: {' | '.join(question.answers)}"))
    rows = Grid("words", "entity", "weight", "chunks", right=("weight", "chunks"))
    linked = linked_entities(target.batch)
    for one in linked:
        rows.add_row(one.words, one.name, f"{one.weight:g}", f"{one.chunks:,}")
    screen.print(rows if linked else Text("no entity of the graph is named in it"))
    screen.print(Text("Paths: [passage] ─edge weight→ entity. Hits: rank, title, score, origin, score components."))


def _print_hit(screen: Console, target: Target, place: RankedPassage, width: int, learned: bool) -> None:
    gold = "gold" if place.passage in target.question.gold else "    "
    words = score_words if learned else place_words  # the table below has a learned score's components
    _line(screen, f"{place.rank:>{width}}  {gold}  {target.title(place.passage)}  {words(place)}", 2)
    _print_path(screen, target, place.hit.path, width + 10)
    for line in quoted(place.hit.path, target) if learned else ():
        _line(screen, line, width + 12, "dim")


def _print_path(screen: Console, target: Target, path: Sequence[Step], indent: int) -> None:
    """A path goes over RELATED_TO both ways: what is stated there, the way round that it was stated, follows."""
    if path:
        _line(screen, path_words(path, target.names), indent, "dim")
        for line in target.stated(path):
            _line(screen, line, indent + 2, "dim")


def _print_stored(screen: Console, target: Target, examiner: Examiner) -> None:
    """Whether the ranking stored in the named run is the same, or how it differs."""
    if target.run is None:
        return
    label, top = examiner.answer.label, examiner.top
    stored = target.stored(label)
    if stored is None:
        words = f"{label} was not run on it in {target.run.folder}: ranked now"
    elif list(stored) == [place.passage for place in examiner.answer.places]:
        words = f"the ranking stored in {target.run.folder} is the same"
    else:
        listed = ", ".join(f"{rank} {target.title(passage)}" for rank, passage in enumerate(stored[:top], 1))
        words = f"warning: {target.run.folder} holds another ranking (code, weights or graph changed since): {listed}"
    _line(screen, words, 2)


def _print_gold(screen: Console, target: Target, examiner: Examiner) -> None:
    gold = target.question.gold
    screen.print(Text("gold passages", style="bold"))
    if len(gold.sets) > 1:
        for number, passages in enumerate(gold.sets, start=1):
            _line(screen, f"set {number}: {', '.join(map(target.title, passages))}", 2)
        _line(screen, set_words(gold, examiner, target.title), 2)
    for passage in gold:
        _print_outcome(screen, target, examiner.fate(passage))


def _print_outcome(screen: Console, target: Target, outcome: Fate) -> None:
    _line(screen, f"{target.title(outcome.passage)}  [{outcome.passage}]  {rank_words(outcome)}", 2)
    for line in outcome_words(outcome, target.names, target.title):
        _line(screen, line, 6)
    path: Sequence[Step] = ()
    if outcome.kind in WITH_A_PATH:  # the passage's own, that of the limit that lost it, or one in the graph
        places = [outcome.place, *(change.place for change in outcome.changes[:1])]
        own = (place.hit.path for place in places if place is not None and place.hit.path)
        path = next(own, outcome.route.steps if outcome.route is not None else ())
    for line in target.stated(path):
        _line(screen, line, 8, "dim")


def print_versus(target: Target, first: Examiner, second: Examiner) -> None:
    """Ranks of the gold passages under both, and what only one has among its first hits, with the reason."""
    screen = console()
    both = side_by_side(first, second, target.question.gold)
    one, other = first.answer.label, second.answer.label
    screen.print(Text(f"\n{one} against {other}", style="bold"))
    if both.gold:
        rows = Grid("gold passage", one, other)
        for ours, theirs in both.gold:
            ranks = [f"rank {each.place.rank}" if each.place else "not ranked" for each in (ours, theirs)]
            kinds = ours.kind, theirs.kind
            cells = [rank if rank == kind else f"{rank}, {kind}" for rank, kind in zip(ranks, kinds, strict=True)]
            rows.add_row(target.title(ours.passage), *cells)
        screen.print(rows)
    for label, against, found in ((one, other, both.only_first), (other, one, both.only_second)):
        screen.print(Text(f"only {label} has in its first hits: {len(found) or 'nothing'}"))
        for place, outcome in found:
            gold = "  gold" if place.passage in target.question.gold else ""
            _line(screen, f"{place.rank}  {target.title(place.passage)}{gold}  {place_words(place)}", 2)
            _print_path(screen, target, place.hit.path, 6)
            why = outcome_words(outcome, target.names, target.title)
            _line(screen, f"{against}: {rank_words(outcome)}: {why[0] if why else outcome.kind}", 6)
