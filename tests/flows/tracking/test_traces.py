"""Judged questions as MLflow's traces, read back with MLflow's own client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker, TrackingError, tracking_uri
from hopbench.flows.tracking.payload import RunPayload

QUESTION = {
    "id": "q1",
    "question": "Who founded the school where the author of *Emma's House* taught?",
    "expected": "Jane Doe",
    "passages": [
        {"id": "graph", "title": "", "text": "Doe FOUNDED School"},
        {"id": "p1", "title": "School", "text": "…"},
    ],
    "reader": "reader@http://localhost",
    "answer": "Jane Doe\u2028founded it.",
    "failure": None,
    "scores": {"faithfulness": 0.75, "context_recall": None},
    "judge": "judge@http://localhost",
    "judge_failure": "context_recall: timeout",
}
FAILED = {
    **QUESTION,
    "id": "q2",
    "passages": [],
    "answer": None,
    "failure": "ValueError: no",
    "scores": {},
    "reader": None,
}


def judged(folder: Path, *questions: object) -> RunPayload:
    file = folder / "judged.jsonl"
    file.write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in questions), encoding="utf-8")
    return RunPayload("night/pagerank", "pagerank", judged=file, started_at=1000.0, ended_at=1002.0)


def test_a_judged_question_is_a_trace_of_its_label_once(tracked_home: Home, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    for _ in range(2):  # a run that is written again
        with Tracker.start(tracked_home, "hopbench/made") as tracker:
            tracker.log(judged(tmp_path, QUESTION, FAILED))
    client = MlflowClient(tracking_uri=tracking_uri(tracked_home), registry_uri=tracking_uri(tracked_home))
    run_id = tracker.run_ids["night/pagerank"]
    traces = {
        one.info.client_request_id: one
        for one in client.search_traces(locations=[tracker.experiment_id], run_id=run_id)
    }
    assert set(traces) == {"q1", "q2"}
    first, second = traces["q1"], traces["q2"]
    assert (first.info.state.value, second.info.state.value) == ("OK", "ERROR")
    assert first.info.request_time == 1_000_000
    assert [(span.name, span.span_type) for span in first.data.spans] == [
        ("question", "CHAIN"),
        ("retrieve", "RETRIEVER"),
        ("answer", "LLM"),
    ]
    root, retrieve, answer = first.data.spans
    assert (root.outputs, root.parent_id, answer.parent_id) == ("Jane Doe\u2028founded it.", None, root.span_id)
    assert [passage["metadata"]["doc_uri"] for passage in retrieve.outputs] == ["graph", "p1"]
    said = {one.name: (one.value, one.source.source_type) for one in first.info.assessments}
    assert said == {
        "faithfulness": (0.75, "LLM_JUDGE"),
        "judge_failure": ("context_recall: timeout", "LLM_JUDGE"),
        "expected_response": ("Jane Doe", "CODE"),
    }
    assert len(second.data.spans) == 2  # no reader, no answer


def test_a_secret_in_an_answer_is_not_stored(
    tracked_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    tracker = Tracker.start(tracked_home, "hopbench/secret")
    tracker.log(judged(tmp_path, {**QUESTION, "answer": "the key is sk-planted-0123456789"}))
    with pytest.raises(TrackingError, match=r"judged\.jsonl contains the value of a secret"):
        tracker.close()
