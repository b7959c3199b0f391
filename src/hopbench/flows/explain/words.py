"""Outcomes, paths and scores in words, and a whole explanation for programs (`hopbench explain --json`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hopbench.eval.explain import Examiner, Fate, HelpfulChange, RankedPassage, linked_entities
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
    route, initial = outcome.route, _initial(outcome)
    hops = f"{route.hops} step" + ("" if route.hops == 1 else "s") if route else ""
    way = path_words(route.steps, name) if route else ""
    yet = _changes("yet", outcome.changes)
    if outcome.kind == "out-ranked":
        return _out_ranked(outcome, name, title)
    if outcome.kind == "pruned":
        return _pruned(outcome, name)
    path = outcome.place.hit.path if outcome.place else ()
    far = f"no way of up to {MAX_HOPS} steps leads there"
    unfollowed = f"reachable in {hops}, but not followed; no single parameter brings it in ({initial})"
    others = f"never linked by the edges that this strategy follows; others lead there in {hops}"
    return {
        "seed": [f"seed: {initial}"],
        "returned": ["returned by the retriever, which does not say how it was found"],
        "reached": [f"reached by: {path_words(path, name) or 'many ways, none of them named'} ({initial})"],
        "filled": [f"filled: the strategy did not rank it; it completes the ranking as {initial}"],
        "not followed": [unfollowed, f"a shortest way: {way}"]
        if route and route.hops
        else [f"a seed, but no single parameter ranks it ({initial})"],
        "other edges": [others, f"a shortest way: {way}", *yet],
        "never linked": [
            f"never linked: no way of up to {MAX_HOPS} steps leads there from the seeds ({initial})",
            *yet,
        ],
        "not ranked": ["not ranked: it is not among the hits of this hop-free search", *yet],
        "not returned": [
            "not returned by the retriever, which does not say why: this label has no traversal to look into",
            f"in the graph, {hops} from its first passages: {way}"
            if route
            else f"in the graph: {far} from its first passages",
        ],
        "failed": ["the strategy failed on this question"],
        "not in the corpus": ["the corpus lacks it, so that no ranking can have it"],
    }[outcome.kind]


def _initial(outcome: Fate) -> str:
    return (
        f"rank {outcome.initial_rank} in the initial ranking" if outcome.initial_rank else "not in the initial ranking"
    )


def _out_ranked(outcome: Fate, name: Name, title: Name) -> list[str]:
    more = _changes("would bring it up", outcome.changes)
    if outcome.place is None:
        return [f"out-ranked: the ranking is full without it ({_initial(outcome)})", *more]
    where = "" if outcome.place.hit.origin == "foreign" else f" ({_initial(outcome)})"
    lines = [f"out-ranked with {place_words(outcome.place)}{where}"]
    if outcome.place.hit.path:
        lines.append(f"it came by: {path_words(outcome.place.hit.path, name)}")
    for rival in outcome.rivals:
        place = rival.place
        head = f"above it: rank {place.rank} {title(place.passage)} with {place.hit.score:.4g}"
        decides = f"{rival.component} decides: {rival.theirs:.4g} against {rival.ours:.4g}"
        lines.append(f"{head}; {'no single component decides' if rival.component is None else decides}")
    return lines + more


def _pruned(outcome: Fate, name: Name) -> list[str]:
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
    answer, gold = examiner.answer, target.question.gold
    kind, in_sample = target.kind(answer.label)
    about = {"kind": kind, "in_sample": in_sample, "params": answer.strategy.spec()}
    if answer.failure is not None:
        return {**about, "failure": answer.failure}
    counters, read = answer.counters, answer.context
    assert read is not None  # there is one wherever there is no failure
    # The gold set that counts, by its number from 1, and its passages that are not among the first hits.
    number, lacking = gold.best_set([place.passage for place in answer.places[: examiner.top]]) if gold else (0, ())
    costs = ("round_trips", "rows", "edges_touched", "llm_calls", "tokens")
    return {
        **about,
        "seeds": answer.seeds,
        "hits": [
            {
                "rank": place.rank,
                "passage_id": place.passage,
                "title": target.title(place.passage),
                "score": place.hit.score,
                "origin": place.hit.origin,
                "components": dict(place.hit.components),
                "path": [asdict(step) for step in place.hit.path],
            }
            for place in answer.places[: examiner.top]
        ],
        "trace": answer.notes,
        "stage_seconds": dict(counters.stage_seconds),
        "costs": {name: getattr(counters, name) for name in costs},
        "context": {
            "tokens": count_tokens(read.context),
            "graph_context": read.graph_context,
            "block_tokens": count_tokens(read.graph_context),
            "passages": read.context_ids,
            "text": read.context,
        },
        "gold_set": {"number": number, "lacks": lacking} if gold else None,
        "gold": [_outcome_json(target, examiner.fate(one)) for one in gold],
    }


def _outcome_json(target: Target, outcome: Fate) -> dict[str, Any]:
    return {
        "passage_id": outcome.passage,
        "fate": outcome.kind,
        "rank": outcome.place.rank if outcome.place else None,
        "words": [rank_words(outcome), *outcome_words(outcome, target.names, target.title)],
    }
