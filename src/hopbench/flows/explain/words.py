"""Outcomes, paths and scores in words, and a whole explanation for programs (`hopbench explain --json`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hopbench.eval.explain import Examiner, Fate, HelpfulChange, RankedPassage, Rival, linked_entities
from hopbench.eval.explain.answers import Name
from hopbench.eval.metrics.built_in import MAX_HOPS
from hopbench.eval.runs.results import plain
from hopbench.eval.types import Gold
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import Step

if TYPE_CHECKING:
    from hopbench.flows.explain.target import Target

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


def rank_words(outcome: Fate) -> str:
    """A passage's rank, and whether the strategy itself ranked it."""
    if outcome.place is None:
        return "not in the ranking"
    return f"rank {outcome.place.rank}" + ("" if outcome.place.candidate else " (filled from the initial ranking)")


def set_words(gold: Gold, examiner: Examiner, title: Name) -> str:
    """Which of several gold sets counts for a label, and what it lacks."""
    number, lacking = gold.best_set([place.passage for place in examiner.answer.places[: examiner.top]])
    lacks = f"it lacks {', '.join(map(title, lacking))}" if lacking else "it is complete"
    return f"gold set {number} of {len(gold.sets)} counts: {lacks} in the top {examiner.top}"


def outcome_words(outcome: Fate, name: Name, title: Name) -> list[str]:
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
    }[outcome.kind](outcome, name, title)


def _initial(outcome: Fate) -> str:
    return (
        f"rank {outcome.initial_rank} in the initial ranking" if outcome.initial_rank else "not in the initial ranking"
    )


def _seed(outcome: Fate, name: Name, title: Name) -> list[str]:
    return [f"seed: {_initial(outcome)}"]


def _returned(outcome: Fate, name: Name, title: Name) -> list[str]:
    return ["returned by the retriever, which does not say how it was found"]


def _not_returned(outcome: Fate, name: Name, title: Name) -> list[str]:
    lines = ["not returned by the retriever, which does not say why: this label has no traversal to look into"]
    if outcome.route is None:
        return [*lines, f"in the graph: no way of up to {MAX_HOPS} steps leads there from its first passages"]
    return [
        *lines,
        f"in the graph, {_steps(outcome.route.hops)} from its first passages: {path_words(outcome.route.steps, name)}",
    ]


def _reached(outcome: Fate, name: Name, title: Name) -> list[str]:
    path = outcome.place.hit.path if outcome.place else ()
    return [f"reached by: {path_words(path, name) or 'many ways, none of them named'} ({_initial(outcome)})"]


def _filled(outcome: Fate, name: Name, title: Name) -> list[str]:
    return [f"filled: the strategy did not rank it; it completes the ranking as {_initial(outcome)}"]


def _out_ranked(outcome: Fate, name: Name, title: Name) -> list[str]:
    if outcome.place is None:
        lines = [f"out-ranked: the ranking is full without it ({_initial(outcome)})"]
        return lines + _changes("would bring it up", outcome.changes)
    where = "" if outcome.place.hit.origin == "foreign" else f" ({_initial(outcome)})"
    lines = [f"out-ranked with {place_words(outcome.place)}{where}"]
    if outcome.place.hit.path:
        lines.append(f"it came by: {path_words(outcome.place.hit.path, name)}")
    lines += [_rival(rival, title) for rival in outcome.rivals]
    return lines + _changes("would bring it up", outcome.changes)


def _rival(rival: Rival, title: Name) -> str:
    place = rival.place
    head = f"above it: rank {place.rank} {title(place.passage)} with {place.hit.score:.4g}"
    if rival.component is None:
        return f"{head}; no single component decides"
    return f"{head}; {rival.component} decides: {rival.theirs:.4g} against {rival.ours:.4g}"


def _pruned(outcome: Fate, name: Name, title: Name) -> list[str]:
    first = outcome.changes[0]
    lines = [f"pruned by {first.change.parameter} ({_initial(outcome)}): {_helped(first)}"]
    if first.place.hit.path:
        lines.append(f"then it comes by: {path_words(first.place.hit.path, name)}")
    elif outcome.route is not None and outcome.route.steps:
        lines.append(f"a shortest way in the graph: {path_words(outcome.route.steps, name)}")
    return lines + _changes("so would", outcome.changes[1:])


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


def _not_followed(outcome: Fate, name: Name, title: Name) -> list[str]:
    assert outcome.route is not None
    if not outcome.route.hops:
        return [f"a seed, but no single parameter ranks it ({_initial(outcome)})"]
    there = f"reachable in {_steps(outcome.route.hops)}, but not followed"
    return [
        f"{there}; no single parameter brings it in ({_initial(outcome)})",
        f"a shortest way: {path_words(outcome.route.steps, name)}",
    ]


def _other_edges(outcome: Fate, name: Name, title: Name) -> list[str]:
    assert outcome.route is not None
    return [
        f"never linked by the edges that this strategy follows; others lead there in {_steps(outcome.route.hops)}",
        f"a shortest way: {path_words(outcome.route.steps, name)}",
        *_changes("yet", outcome.changes),
    ]


def _never_linked(outcome: Fate, name: Name, title: Name) -> list[str]:
    lines = [f"never linked: no way of up to {MAX_HOPS} steps leads there from the seeds ({_initial(outcome)})"]
    return lines + _changes("yet", outcome.changes)


def _not_ranked(outcome: Fate, name: Name, title: Name) -> list[str]:
    return ["not ranked: it is not among the hits of this hop-free search", *_changes("yet", outcome.changes)]


def _not_in_the_corpus(outcome: Fate, name: Name, title: Name) -> list[str]:
    return ["the corpus lacks it, so that no ranking can have it"]


def _failed(outcome: Fate, name: Name, title: Name) -> list[str]:
    return ["the strategy failed on this question"]


def _steps(count: int) -> str:
    return f"{count} step" + ("" if count == 1 else "s")


def explanation_json(target: Target, examiners: list[Examiner]) -> str:
    """The question, its entities and gold, and per label hits, trace, costs, context and what became of the gold."""
    question = target.question
    content = {
        "question": {"id": question.id, "text": question.text, "type": question.type, "answers": question.answers},
        "benchmark": target.benchmark.name,
        "entities": [asdict(link) for link in linked_entities(target.batch)],
        "gold": question.gold,
        "gold_sets": question.gold.sets,
        "grades": question.gold.grades,
        "labels": {each.answer.label: _label(target, each) for each in examiners},
    }
    return json.dumps(content, ensure_ascii=False, indent=2, default=plain)


def _label(target: Target, examiner: Examiner) -> dict[str, Any]:
    answer = examiner.answer
    kind, in_sample = target.kind(answer.label)
    about = {"kind": kind, "in_sample": in_sample, "params": answer.strategy.spec()}
    if answer.failure is not None:
        return {**about, "failure": answer.failure}
    counters = answer.counters
    return {
        **about,
        "seeds": answer.seeds,
        "hits": [_hit(target, place) for place in answer.places[: examiner.top]],
        "trace": answer.notes,
        "stage_seconds": dict(counters.stage_seconds),
        "costs": {
            name: getattr(counters, name) for name in ("round_trips", "rows", "edges_touched", "llm_calls", "tokens")
        },
        "context": _context(examiner),
        "gold_set": _gold_set(target, examiner),
        "gold": [_outcome_json(target, examiner.fate(gold)) for gold in target.question.gold],
    }


def _gold_set(target: Target, examiner: Examiner) -> dict[str, Any] | None:
    """The set that counts, by its number from 1, and its passages that are not among the first hits."""
    gold = target.question.gold
    if not gold:
        return None
    number, lacking = gold.best_set([place.passage for place in examiner.answer.places[: examiner.top]])
    return {"number": number, "lacks": lacking}


def _hit(target: Target, place: RankedPassage) -> dict[str, Any]:
    hit = place.hit
    return {
        "rank": place.rank,
        "passage_id": place.passage,
        "title": target.title(place.passage),
        "score": hit.score,
        "origin": hit.origin,
        "components": dict(hit.components),
        "path": [asdict(step) for step in hit.path],
    }


def _context(examiner: Examiner) -> dict[str, Any]:
    read = examiner.answer.context
    assert read is not None  # there is one wherever there is no failure
    return {
        "tokens": count_tokens(read.context),
        "graph_context": read.graph_context,
        "block_tokens": count_tokens(read.graph_context),
        "passages": read.context_ids,
        "text": read.context,
    }


def _outcome_json(target: Target, outcome: Fate) -> dict[str, Any]:
    return {
        "passage_id": outcome.passage,
        "fate": outcome.kind,
        "rank": outcome.place.rank if outcome.place else None,
        "words": [rank_words(outcome), *outcome_words(outcome, target.names, target.title)],
    }
