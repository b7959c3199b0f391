"""A made-up run that looks like a real one: 300 questions of four types, five labels, paths and failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hopbench.eval.report import ReportData
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.types import Passage

FIRST = ("Ilva", "Maren", "Tobias", "Quill", "Desh", "Orla", "Petra", "Anselm", "Ruth", "Kasimir", "Noor", "Wendel")
LAST = ("Harrow", "Castellane", "Vance", "Okonjo", "Thorne", "Mirel", "Ashdown", "Ferro", "Lindqvist", "Sable")
WORDS = ("Glass", "Winter", "Harbour", "Salt", "Lantern", "Copper", "Orchard", "Silent", "Meridian", "Hollow")
THINGS = ("Orchard", "Ledger", "Tide", "Garden", "Signal", "Crossing", "Archive", "Parade", "Winter", "House")
TYPES = {"bridge": 2, "comparison": 2, "compositional": 3, "bridge_comparison": 4}
SKILL = {"vector": 0.60, "bm25": 0.74, "hybrid": 0.77, "graph_expansion": 0.80, "pagerank": 0.88}
METRICS = ("all_gold@2", "all_gold@5", "all_gold@10", "all_gold@20", "recall@5", "nDCG@10", "MRR", "has_answer")
DEPTH = 20


def passages() -> tuple[Passage, ...]:
    """Films, their directors and companies, in fixed order."""
    made = []
    for i in range(600):
        film = f"The {WORDS[i % 10]} {THINGS[(i // 10) % 10]}" + (f" ({1950 + i // 10})" if i >= 100 else "")
        person = f"{FIRST[i % 12]} {LAST[(i // 12) % 10]}"
        text = f"{film} is a drama directed by {person} and produced by {LAST[i % 10]} Pictures. It was shot in the \
port of Calden over eleven weeks, and the director later called it the hardest work of a long career."
        made.append(Passage(f"p{i:04}", film, text))
    return tuple(made)


def questions(count: int, corpus: tuple[Passage, ...], rng: np.random.Generator) -> tuple[BenchmarkQuestion, ...]:
    """Questions whose number of gold passages follows from their type."""
    made = []
    for i in range(count):
        kind = list(TYPES)[i % 4]
        gold = [corpus[g] for g in rng.choice(len(corpus), TYPES[kind], replace=False)]
        text = f"Which company produced the film whose director also made “{gold[0].title}” before {gold[1].title}?"
        answer = f"{LAST[i % 10]} Pictures"
        made.append(BenchmarkQuestion(f"q{i:04}", text, kind, answer, (LAST[i % 10],), tuple(g.id for g in gold)))
    return tuple(made)


def row(
    question: BenchmarkQuestion, label: str, corpus: tuple[Passage, ...], rng: np.random.Generator
) -> dict[str, Any]:
    """One question's row: each gold passage stands high with the label's skill."""
    ranked = [p for p in rng.permutation([p.id for p in corpus])[: DEPTH + 8].tolist() if p not in question.gold][
        :DEPTH
    ]
    for gold in question.gold:
        if rng.random() < SKILL.get(label, 0.7):
            ranked.insert(int(rng.geometric(0.35)) - 1, gold)
        elif rng.random() < 0.5:
            ranked.insert(int(rng.integers(10, DEPTH)), gold)
    ranked = ranked[:DEPTH]
    place = {p: r for r, p in enumerate(ranked, start=1)}
    ranks = [place.get(g, 10**6) for g in question.gold]
    gains = sum(1 / np.log2(r + 1) for r in ranks if r <= 10) / sum(1 / np.log2(r + 2) for r in range(len(ranks)))
    scores = np.sort(rng.random(len(ranked)))[::-1]
    metrics = {f"all_gold@{k}": float(max(ranks) <= k) for k in (2, 5, 10, 20)}
    metrics |= {"recall@5": float(np.mean([r <= 5 for r in ranks])), "nDCG@10": float(gains)}
    metrics |= {"MRR": 1 / min(ranks), "has_answer": float(min(ranks) <= 5)}
    latency = {"vector": 1.4, "bm25": 2.2, "hybrid": 3.9, "graph_expansion": 21.0}.get(label, 38.0)
    cost = {"failure": None, "latency_ms": float(latency * rng.lognormal(0, 0.3))}
    return (
        {"question_id": question.id, "strategy": label, "ranked_ids": ranked, "scores": scores.tolist()}
        | metrics
        | cost
    )


def path_hits(row_: dict[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Hits with components, every third one reached by an entity path."""
    hits = []
    ranked = row_["ranked_ids"]
    for rank, (passage, score) in enumerate(zip(ranked, row_["scores"], strict=True), start=1):
        step = ["MENTIONED_IN", ranked[0], "e:harrow", 0.8, 0.8], ["RELATED_TO", "e:harrow", "e:calden", 0.9, 0.72]
        edges = [*step, ["MENTIONED_IN", "e:calden", passage, 0.75, 0.54]] if rank % 3 == 0 else []
        path = [dict(zip(("edge", "source", "target", "weight", "score"), edge, strict=True)) for edge in edges]
        components = {"vector": float(rng.random()), "graph": 0.54 if edges else 0.0}
        origin = "graph" if edges else "seed" if rank <= 10 else "fill"
        hit = {"passage_id": passage, "rank": rank, "score": score, "origin": origin}
        hits.append(hit | {"components": components, "path": path})
    return hits


def comparison(table: pd.DataFrame, label: str, baseline: str) -> dict[str, Any]:
    """A normal approximation is enough for a picture."""
    wide = table.pivot_table(index="question_id", columns="strategy", values="all_gold@10")
    gap = (wide[label] - wide[baseline]).dropna().to_numpy()
    effect, error = float(gap.mean()), float(gap.std() / np.sqrt(len(gap)))
    clear = abs(effect) > 2.4 * error
    verdict = ("better" if effect > 0 else "worse") if clear else "not distinguishable"
    names = {"label": label, "baseline": baseline, "metric": "all_gold@10", "verdict": verdict, "n": len(gap)}
    low, high = effect - 1.96 * error, effect + 1.96 * error
    bounds = {"effect": effect, "ci_low": low, "ci_high": high, "family_low": low, "family_high": high}
    bounds["mde"] = 2.8 * error
    counts = {"wins": int((gap > 0).sum()), "losses": int((gap < 0).sum()), "ties": int((gap == 0).sum())}
    return names | bounds | counts | {"p": 0.0002 if clear else 0.31, "p_adjusted": 0.0008 if clear else 0.62}


def entry(table: pd.DataFrame, label: str) -> dict[str, Any]:
    """A label's part of results.json."""
    own = table[table["strategy"] == label]
    answered = own[own["failure"].isna()]
    failed = len(own) - len(answered)
    graph = label.startswith(("graph", "pagerank"))
    reach = {"reach@1": 0.81, "reach@1_share": 0.06, "reach@2": 0.96, "reach@2_share": 0.17} if graph else {}
    return {
        "params": {"initial_k": 10, "min_similarity": 0.7, "edge_types": ["SIMILAR_TO", "RELATED_TO"]} if graph else {},
        "metrics": {m: float(own[m].fillna(0.0).mean()) for m in METRICS},
        "answered": {m: float(answered[m].mean()) for m in METRICS},
        "coverage": len(answered) / len(own),
        "failures": failed,
        "by_type": {},
        "seconds": 2.1,
        "latency_ms_p50": float(answered["latency_ms"].quantile(0.5)),
        "latency_ms_p95": float(answered["latency_ms"].quantile(0.95)),
        "round_trips": 12 if graph else 0,
        "llm_calls": 0,
        "tokens": 0,
        "reach": reach,
    }


@dataclass(frozen=True)
class Plan:
    """What a test wants of the made-up run; `planted` puts markup where a corpus or a user could put it."""

    count: int = 300
    labels: tuple[str, ...] = tuple(SKILL)
    planted: str = ""
    failed: int = 4


@cache
def build(plan: Plan) -> ReportData:
    rng = np.random.default_rng(20240607)
    corpus = passages()
    asked = questions(plan.count, corpus, rng)
    labels = list(plan.labels)
    if plan.planted:
        first = asked[0]
        titles = [
            Passage(p.id, p.title + plan.planted, p.text + plan.planted) if p.id in first.gold else p for p in corpus
        ]
        corpus = tuple(titles)
        text = first.text + plan.planted
        changed = BenchmarkQuestion(first.id, text, "bridge" + plan.planted, plan.planted, (), first.gold)
        asked = (changed, *asked[1:])
        labels[-1] += f"[{plan.planted}]"
    rows = [row(q, label, corpus, rng) for label in labels for q in asked]
    paths = {(r["question_id"], r["strategy"]): path_hits(r, rng) for r in rows if not r["strategy"].startswith("bm25")}
    for row_ in [r for r in rows if r["strategy"].startswith("graph_expansion")][: plan.failed]:
        row_.update(dict.fromkeys(METRICS) | {"ranked_ids": [], "scores": [], "failure": "no node for 3 of 10 seeds"})
    table = pd.DataFrame(rows)
    benchmark = Benchmark("made-up films", corpus, asked, "report")
    hop_free = [label for label in labels if label in ("vector", "bm25", "hybrid")]
    means = table.groupby("strategy")["all_gold@10"].mean()
    baseline = max(hop_free, key=lambda label: means[label])
    intervals = {
        label: {m: (max(0.0, v - 0.045), min(1.0, v + 0.045)) for m, v in entry(table, label)["metrics"].items()}
        for label in labels
    }
    facts = {"name": benchmark.name, "questions": len(asked), "passages": len(corpus), "digest": benchmark.digest}
    nodes = {"Document": 600, "Chunk": 600, "Entity": 1422}
    edges = {"CONTAINS": 600, "MENTIONED_IN": 3911, "SIMILAR_TO": 2874, "RELATED_TO": 2240}
    graph = {"fingerprint": "9f2c" * 16, "build_key": "77ab" * 16, "nodes": nodes, "edges": edges, "build_seconds": 3.2}
    return ReportData(
        results={
            "schema": "hopbench.results/1",
            "benchmark": facts,
            "graph": graph,
            "strategies": {label: entry(table, label) for label in labels},
        },
        questions=table,
        benchmark=benchmark,
        comparisons=[comparison(table, label, baseline) for label in labels if label != baseline],
        intervals=intervals,
        paths=paths,
        run={
            "command": "hopbench run --dataset films --strategies all --out out",
            "started": "2026-03-04T02:00:05+00:00",
            "code_version": "0.1.0",
            "embedder": "wordllama 256",
            "store": "kglite",
            "warnings": ["14 chunks have no neighbour above similarity 0.7 and no entity: no strategy can leave them."],
        },
        names={"e:harrow": "Petra Harrow", "e:calden": "Calden"},
    )


@pytest.fixture(scope="session")
def make_report() -> Callable[..., ReportData]:
    """Builds the made-up run; keywords are those of Plan."""
    return lambda **wishes: build(Plan(**wishes))
