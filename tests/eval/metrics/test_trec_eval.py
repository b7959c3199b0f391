"""Metrics of run files and graded judgements, against trec_eval itself (pytrec_eval)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from hopbench.eval.benchmarks import load_benchmark, load_rankings
from hopbench.eval.metrics import score, summarise
from hopbench.eval.metrics.base import CUTOFFS
from hopbench.eval.runs.external import recorded
from hopbench.eval.trials.trial import run_trial
from hopbench.eval.types import Benchmark, PassageRanking
from hopbench.retrieval.context import Budget
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.index import Batch, Index

IDS = ["d1", "D1", "d10", "d2", "é", "z", "中", "_", *(f"p{n:02}" for n in range(22))]
NAMES = {**{f"recall@{k}": f"recall_{k}" for k in CUTOFFS}, "nDCG@10": "ndcg_cut_10", "MRR": "recip_rank"}
Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]
SCORES = st.sampled_from([0.0, -0.0, 1.0, 1.0000000001, 2.5, -3.0, 1e39, 1e40, 1e-50]) | st.floats(-5, 5)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Qrels, Run, int]:
    questions = [f"q{n}" for n in range(draw(st.integers(1, 4)))]
    judged = st.dictionaries(st.sampled_from(IDS), st.integers(-2, 4), min_size=1, max_size=12)
    qrels = {question: draw(judged) for question in questions}
    least = draw(st.integers(1, 3))
    first = qrels[questions[0]]
    first[draw(st.sampled_from(IDS))] = 4  # some question has gold, whatever the threshold
    run = {question: draw(st.dictionaries(st.sampled_from(IDS), SCORES, max_size=30)) for question in questions}
    for question in draw(st.sets(st.sampled_from(questions), max_size=len(questions) - 1)):
        del run[question]  # unanswered
    return qrels, run, least


def written(folder: Path, qrels: Qrels, run: Run, form: str) -> tuple[Path, Path]:
    data = folder / "data"
    (data / "qrels").mkdir(parents=True)
    (data / "corpus.jsonl").write_text("".join(json.dumps({"_id": one, "text": "x"}) + "\n" for one in IDS))
    (data / "queries.jsonl").write_text("".join(json.dumps({"_id": one, "text": "?"}) + "\n" for one in qrels))
    lines = [f"{question}\t{passage}\t{grade}\n" for question, one in qrels.items() for passage, grade in one.items()]
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), encoding="utf-8")
    file = folder / "run"
    if form == "json":
        file.write_text(json.dumps(run))
    else:
        pairs = [(question, *one) for question, scores in run.items() for one in scores.items()]
        file.write_text("".join(f"{q} Q0 {p} {len(p)} {value!r} x\n" for q, p, value in pairs), encoding="utf-8")
    return data, file


def by_trec_eval(qrels: Qrels, run: Run, least: int) -> Mapping[str, Mapping[str, float]]:
    measures = {f"recall.{','.join(map(str, CUTOFFS))}", "ndcg_cut.10", "recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=least)
    return cast("Mapping[str, Mapping[str, float]]", evaluator.evaluate(run))


@settings(deadline=None)
@given(cases(), st.sampled_from(["trec", "json"]))
def test_metrics_of_any_run_file_are_those_of_trec_eval(case: tuple[Qrels, Run, int], form: str) -> None:
    qrels, run, least = case
    if form == "trec":
        run = {question: scores for question, scores in run.items() if scores}  # an empty ranking has no line
    if not run:
        return
    with TemporaryDirectory() as folder:
        data, file = written(Path(folder), qrels, run, form)
        benchmark, found = load_benchmark(data, min_grade=least), load_rankings(file)
    with_gold = [question for question, grades in qrels.items() if max(grades.values()) >= least]
    assert with_gold == [question.id for question in benchmark.questions]
    rankings = {q: PassageRanking(q, tuple(found.rankings[q].passages)) for q in with_gold if q in found.rankings}
    rows, expected = score(benchmark, rankings), by_trec_eval(qrels, run, least)
    for question in rankings:
        for ours, theirs in NAMES.items():
            assert pytest.approx(expected[question][theirs], abs=1e-6) == rows.loc[question, ours]
    means = summarise(rows, benchmark)["metrics"]
    for ours, theirs in NAMES.items():  # a question without a ranking counts 0
        total = sum(expected[question][theirs] for question in rankings)
        assert pytest.approx(total / len(with_gold), abs=2e-6) == means[ours]


def ranked_by_label(benchmark: Benchmark, file: Path) -> dict[str, PassageRanking]:
    """The rankings as a run of HopBench takes them from the file."""
    chunks = chunk_passages(benchmark.passages)
    index = Index(chunks, np.zeros((len(chunks), 1), np.float32), cast("object", SimpleNamespace()), None)  # type: ignore[arg-type]
    batch = Batch(index, [question.question for question in benchmark.questions])
    return run_trial("sys", recorded(load_rankings(file)), [batch], Budget()).rankings


def test_a_ranking_counts_to_its_end(tmp_path: Path) -> None:
    ids = [f"p{n:03}" for n in range(300)]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "corpus.jsonl").write_text("".join(json.dumps({"_id": p, "text": "x"}) + "\n" for p in ids))
    (tmp_path / "data" / "queries.jsonl").write_text('{"_id": "q", "text": "?", "gold": ["p249"]}\n')
    (tmp_path / "run.json").write_text(json.dumps({"q": {passage: -n for n, passage in enumerate(ids)}}))
    benchmark = load_benchmark(tmp_path / "data")
    rows = score(benchmark, ranked_by_label(benchmark, tmp_path / "run.json"))
    assert pytest.approx(1 / 250) == rows.loc["q", "MRR"]


@pytest.mark.parametrize(("binary", "ndcg"), [(False, 0.362695), (True, 0.380428)])
def test_the_case_of_ties(cases_dir: Path, tmp_path: Path, binary: bool, ndcg: float) -> None:
    # .380428 is the value with all grades 1; question c has grades 2 and 1: .517442 for .570642
    folder = cases_dir / "trec"
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = (folder / name).read_text()
        (tmp_path / name).write_text(text.replace("\t2\n", "\t1\n") if binary else text)
    benchmark, run = load_benchmark(tmp_path), load_rankings(folder / "run.trec")
    rows = score(benchmark, {q: PassageRanking(q, tuple(one.passages)) for q, one in run.rankings.items()})
    means = summarise(rows, benchmark)["metrics"]
    assert (ndcg, 0.252525, 14) == (means["nDCG@10"], means["MRR"], run.ties)
    assert pytest.approx(0.570642 if binary else 0.517442, abs=1e-6) == rows.loc["c", "nDCG@10"]
