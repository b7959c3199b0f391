"""`hopbench explain --json`: a whole explanation, for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hopbench.eval.explain import Examiner, Fate, RankedPassage, linked_entities
from hopbench.eval.trials.traces import plain
from hopbench.flows.explain.words import fate_words, rank_words
from hopbench.retrieval.text.model_tokens import count_tokens

if TYPE_CHECKING:
    from hopbench.flows.explain.target import Target


def explanation_json(target: Target, examiners: list[Examiner]) -> str:
    """The question, its entities and gold, and for each label hits, trace, costs, context and the gold's fates."""
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
        "gold": [_fate(target, examiner.fate(gold)) for gold in target.question.gold],
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


def _fate(target: Target, fate: Fate) -> dict[str, Any]:
    return {
        "passage_id": fate.passage,
        "fate": fate.kind,
        "rank": fate.place.rank if fate.place else None,
        "words": [rank_words(fate), *fate_words(fate, target.names, target.title)],
    }
