"""The baseline that a run's labels are held against: the best of all hop-free ones, tuned ones included."""

from __future__ import annotations

import json
from pathlib import Path

from tests.flows.cli.conftest import Hopbench

PASSAGES = {"a": "A worker runs each flow.", "b": "Set flow_run.name in the profile.", "c": "Ferries leave at noon."}
QUESTIONS = {"q1": ("What are workers running?", "a"), "q2": ("What names runs?", "b"), "q3": ("A ferry?", "c")}


def test_a_tuned_baseline_that_is_best_is_the_one_to_beat(tmp_path: Path, hopbench: Hopbench) -> None:
    folder, out = tmp_path / "tools", tmp_path / "out"
    (folder / "qrels").mkdir(parents=True)
    rows = [json.dumps({"_id": one, "title": "", "text": text}) for one, text in PASSAGES.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows))
    rows = [json.dumps({"_id": one, "text": text}) for one, (text, _) in QUESTIONS.items()]
    (folder / "queries.jsonl").write_text("\n".join(rows))
    judged = [f"{one}\t{gold}\t1" for one, (_, gold) in QUESTIONS.items()]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))

    done = hopbench("run", "--dataset", folder, "--strategies", "bm25,bm25:tuned", "--no-prefect", "--out", out)

    assert 0 == done.code, done.err
    assert "against bm25:tuned" in done.out
    found = json.loads((out / "results.json").read_text())
    scores = {label: one["metrics"]["all_gold@10"] for label, one in found["strategies"].items()}
    assert {"bm25": 0.0, "bm25:tuned": 1.0} == scores  # no word of a question stands in its passage as it is written
    assert "bm25:tuned" in hopbench("recommend", out).out
