"""Fates, paths and scores in words."""

from __future__ import annotations

from collections.abc import Sequence

from hopbench.eval.explain import Examiner, Fate, HelpfulChange, RankedPassage, Rival
from hopbench.eval.explain.answers import Name
from hopbench.eval.gold import Gold
from hopbench.eval.metrics.built_in import MAX_HOPS
from hopbench.retrieval.types import Step

MAX_CHANGES = 4


def place_words(place: RankedPassage) -> str:
    """`0.5321  graph  vector 0.51, graph 0.75`."""
    parts = ", ".join(f"{name} {value:.4g}" for name, value in place.hit.components.items())
    return score_words(place) + (f"  ({parts})" if parts else "")


def score_words(place: RankedPassage) -> str:
    """`0.5321  graph`, and `[manual.pdf, page 12]` where the corpus has a source."""
    return f"{place.hit.score:.4g}  {place.hit.origin}" + (f"  [{place.hit.source}]" if place.hit.source else "")


def path_words(path: Sequence[Step], name: Name) -> str:
    """`Ed Wood ─SIMILAR_TO 0.82→ Plan 9`; a semicolon separates steps that do not connect."""
    words, last = "", None
    for step in path:
        if step.source != last:
            words += ("; " if words else "") + name(step.source)
        words += f" ─{step.edge} {step.weight:.3g}→ {name(step.target)}"
        last = step.target
    return words


def rank_words(fate: Fate) -> str:
    """A passage's rank, and whether the strategy itself ranked it."""
    if fate.place is None:
        return "not in the ranking"
    return f"rank {fate.place.rank}" + ("" if fate.place.candidate else " (filled from the initial ranking)")


def set_words(gold: Gold, examiner: Examiner, title: Name) -> str:
    """Which of several gold sets counts for a label, and what it lacks."""
    number, lacking = gold.best_set([place.passage for place in examiner.answer.places[: examiner.top]])
    lacks = f"it lacks {', '.join(map(title, lacking))}" if lacking else "it is complete"
    return f"gold set {number} of {len(gold.sets)} counts: {lacks} in the top {examiner.top}"


def fate_words(fate: Fate, name: Name, title: Name) -> list[str]:
    """Why a passage was found or lost, one fact per line."""
    return {
        "seed": _seed,
        "returned": _returned,
        "reached": _reached,
        "filled": _filled,
        "out-ranked": _out_ranked,
        "pruned": _pruned,
        "not followed": _not_followed,
        "other edges": _other_edges,
        "never linked": _never_linked,
        "not ranked": _not_ranked,
        "not returned": _not_returned,
        "failed": _failed,
        "not in the corpus": _not_in_the_corpus,
    }[fate.kind](fate, name, title)


def _initial(fate: Fate) -> str:
    return f"rank {fate.initial_rank} in the initial ranking" if fate.initial_rank else "not in the initial ranking"


def _seed(fate: Fate, name: Name, title: Name) -> list[str]:
    return [f"seed: {_initial(fate)}"]


def _returned(fate: Fate, name: Name, title: Name) -> list[str]:
    return ["returned by the retriever, which does not say how it was found"]


def _not_returned(fate: Fate, name: Name, title: Name) -> list[str]:
    lines = ["not returned by the retriever, which does not say why: this label has no traversal to look into"]
    if fate.route is None:
        return [*lines, f"in the graph: no way of up to {MAX_HOPS} steps leads there from its first passages"]
    return [
        *lines,
        f"in the graph, {_steps(fate.route.hops)} from its first passages: {path_words(fate.route.steps, name)}",
    ]


def _reached(fate: Fate, name: Name, title: Name) -> list[str]:
    path = fate.place.hit.path if fate.place else ()
    return [f"reached by: {path_words(path, name) or 'many ways, none of them named'} ({_initial(fate)})"]


def _filled(fate: Fate, name: Name, title: Name) -> list[str]:
    return [f"filled: the strategy did not rank it; it completes the ranking as {_initial(fate)}"]


def _out_ranked(fate: Fate, name: Name, title: Name) -> list[str]:
    if fate.place is None:
        lines = [f"out-ranked: the ranking is full without it ({_initial(fate)})"]
        return lines + _changes("would bring it up", fate.changes)
    where = "" if fate.place.hit.origin == "foreign" else f" ({_initial(fate)})"
    lines = [f"out-ranked with {place_words(fate.place)}{where}"]
    if fate.place.hit.path:
        lines.append(f"it came by: {path_words(fate.place.hit.path, name)}")
    lines += [_rival(rival, title) for rival in fate.rivals]
    return lines + _changes("would bring it up", fate.changes)


def _rival(rival: Rival, title: Name) -> str:
    place = rival.place
    head = f"above it: rank {place.rank} {title(place.passage)} with {place.hit.score:.4g}"
    if rival.component is None:
        return f"{head}; no single component decides"
    return f"{head}; {rival.component} decides: {rival.theirs:.4g} against {rival.ours:.4g}"


def _pruned(fate: Fate, name: Name, title: Name) -> list[str]:
    first = fate.changes[0]
    lines = [f"pruned by {first.change.parameter} ({_initial(fate)}): {_helped(first)}"]
    if first.place.hit.path:
        lines.append(f"then it comes by: {path_words(first.place.hit.path, name)}")
    elif fate.route is not None and fate.route.steps:
        lines.append(f"a shortest way in the graph: {path_words(fate.route.steps, name)}")
    return lines + _changes("so would", fate.changes[1:])


def _helped(helped: HelpfulChange) -> str:
    origin = ", as a seed" if helped.place.hit.origin == "seed" else ""
    cost = f", in place of {helped.lost} others" if helped.lost else ""
    return f"{helped.change} ranks it {helped.place.rank}{origin}{cost}"


def _changes(title: str, changes: Sequence[HelpfulChange]) -> list[str]:
    if not changes:
        return []
    shown = "; ".join(map(_helped, changes[:MAX_CHANGES]))
    more = f"; and {len(changes) - MAX_CHANGES} more" if len(changes) > MAX_CHANGES else ""
    return [f"{title}: {shown}{more}"]


def _not_followed(fate: Fate, name: Name, title: Name) -> list[str]:
    assert fate.route is not None
    if not fate.route.hops:
        return [f"a seed, but no single parameter ranks it ({_initial(fate)})"]
    there = f"reachable in {_steps(fate.route.hops)}, but not followed"
    return [
        f"{there}; no single parameter brings it in ({_initial(fate)})",
        f"a shortest way: {path_words(fate.route.steps, name)}",
    ]


def _other_edges(fate: Fate, name: Name, title: Name) -> list[str]:
    assert fate.route is not None
    return [
        f"never linked by the edges that this strategy follows; others lead there in {_steps(fate.route.hops)}",
        f"a shortest way: {path_words(fate.route.steps, name)}",
        *_changes("yet", fate.changes),
    ]


def _never_linked(fate: Fate, name: Name, title: Name) -> list[str]:
    lines = [f"never linked: no way of up to {MAX_HOPS} steps leads there from the seeds ({_initial(fate)})"]
    return lines + _changes("yet", fate.changes)


def _not_ranked(fate: Fate, name: Name, title: Name) -> list[str]:
    return ["not ranked: it is not among the hits of this hop-free search", *_changes("yet", fate.changes)]


def _not_in_the_corpus(fate: Fate, name: Name, title: Name) -> list[str]:
    return ["the corpus lacks it, so that no ranking can have it"]


def _failed(fate: Fate, name: Name, title: Name) -> list[str]:
    return ["the strategy failed on this question"]


def _steps(count: int) -> str:
    return f"{count} step" + ("" if count == 1 else "s")
