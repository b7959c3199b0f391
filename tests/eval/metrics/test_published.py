"""Three published per-question runs on HotpotQA, re-scored."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from hopbench.eval.metrics import score, summarise
from hopbench.eval.types import Benchmark, BenchmarkQuestion, PassageRanking
from hopbench.retrieval.types import Passage

pytestmark = pytest.mark.benchmarks

SAME = {f"full_evidence_recall@{k}": f"all_gold@{k}" for k in (2, 5, 10)}
SAME |= {f"partial_evidence_recall@{k}": f"recall@{k}" for k in (2, 5, 10)}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def dev500(benchmarks_dir: Path) -> Benchmark:
    folder = benchmarks_dir / "hotpotqa-dev500"
    gold: dict[str, list[str]] = defaultdict(list)
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        question_id, passage_id, _ = line.split("\t")
        gold[question_id].append(passage_id)
    questions = tuple(
        BenchmarkQuestion(
            q["_id"], q["text"], q["metadata"]["type"], q["metadata"]["answer"], (), tuple(gold[q["_id"]])
        )
        for q in lines(folder / "queries.jsonl")
    )
    passages = tuple(Passage(p["_id"], p["title"], p["text"]) for p in lines(folder / "corpus.jsonl"))
    return Benchmark("hotpotqa-dev500", passages, questions, "report", folder)


def published(benchmark: Benchmark, name: str) -> list[dict[str, Any]]:
    assert benchmark.folder is not None
    return lines(benchmark.folder / "published_runs" / f"{name}_pooled.jsonl")


def rankings(run: list[dict[str, Any]]) -> dict[str, PassageRanking]:
    return {r["id"]: PassageRanking(r["id"], tuple(r["ranked_ids"]), (), tuple(r["ranked_ids"][:5])) for r in run}


@pytest.mark.parametrize(("name", "full_evidence"), [("bm25", 0.302), ("dense", 0.502), ("rerank", 0.654)])
def test_published_runs_score_as_published(dev500: Benchmark, name: str, full_evidence: float) -> None:
    run = published(dev500, name)
    rows = score(dev500, rankings(run))
    assert summarise(rows, dev500)["metrics"]["all_gold@5"] == full_evidence
    for record in run:
        ours, theirs = rows.loc[record["id"]], record["published"]
        for their_name, our_name in SAME.items():
            assert ours[our_name] == theirs[their_name], (record["id"], our_name)
        # rankings hold 50 passages; our reciprocal rank reads them all
        assert ours["MRR"] == pytest.approx(theirs["reciprocal_rank_at_50"], abs=1e-12)
        if ours["MRR"] >= 1 / 10 or ours["MRR"] == 0:
            assert ours["MRR"] == pytest.approx(theirs["reciprocal_rank_at_10"], abs=1e-12)
