"""Judged questions as MLflow's traces: retrieval and answer as spans, the judge's scores as assessments."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow.entities import Assessment, Span, TraceInfo

SOURCE_RUN = "mlflow.sourceRun"
NAME = "mlflow.traceName"
PREVIEW = 500
MILLISECOND = 1_000_000  # in nanoseconds


def log_traces(uri: str, experiment: str, run_id: str, file: Path, at_ms: int) -> None:
    """Log the questions in `file`, a line of JSON each, as traces of a run that began at `at_ms`."""
    from mlflow.tracing.client import TracingClient

    client = TracingClient(uri)
    # Not by splitlines, which also cuts at U+2028 and the like, which JSON leaves in texts as they are.
    questions = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    known = _known(client, experiment, run_id) if questions else set()
    spans: list[Span] = []
    for question in questions:
        number = _hex(f"{run_id}/{question['id']}", 32)
        if f"tr-{number}" not in known:
            client.start_trace(_info(question, number, experiment, run_id, at_ms))
            spans += _spans(question, number, at_ms)
    if spans:
        client.log_spans(experiment, spans)


def _known(client: Any, experiment: str, run_id: str) -> set[str]:
    found: set[str] = set()
    token = None
    while True:
        page = client.search_traces(
            locations=[experiment], run_id=run_id, include_spans=False, max_results=500, page_token=token
        )
        found |= {trace.info.trace_id for trace in page}
        token = page.token
        if not token:
            return found


def _info(question: Mapping[str, Any], number: str, experiment: str, run_id: str, at_ms: int) -> TraceInfo:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    return TraceInfo(
        trace_id=f"tr-{number}",
        trace_location=TraceLocation.from_experiment_id(experiment),
        request_time=at_ms,
        state=TraceState.ERROR if question["failure"] else TraceState.OK,
        request_preview=question["question"][:PREVIEW],
        response_preview=str(question["answer"] or question["failure"] or "")[:PREVIEW],
        client_request_id=question["id"],
        trace_metadata={SOURCE_RUN: run_id},
        tags={NAME: "question"},
        assessments=list(_assessments(question, f"tr-{number}")),
    )


def _assessments(question: Mapping[str, Any], trace_id: str) -> Iterator[Assessment]:
    from mlflow.entities import AssessmentSource, Expectation, Feedback

    judge = AssessmentSource(source_type="LLM_JUDGE", source_id=question["judge"])
    for metric, score in question["scores"].items():
        if score is not None:
            yield Feedback(name=metric, value=score, source=judge, trace_id=trace_id)
    if question["judge_failure"]:
        yield Feedback(name="judge_failure", value=question["judge_failure"], source=judge, trace_id=trace_id)
    if question["expected"]:
        gold = AssessmentSource(source_type="CODE", source_id="benchmark")
        yield Expectation(name="expected_response", value=question["expected"], source=gold, trace_id=trace_id)


def _spans(question: Mapping[str, Any], number: str, at_ms: int) -> list[Span]:
    """The question with its retrieval and, where a reader answered, the answer.

    In MLflow's own form; times are those of the run, since single calls were not timed.
    """
    from mlflow.entities import Span

    root, failure = _hex(f"{number}/question", 16), question["failure"]
    asked = {"question": question["question"]}

    def span(name: str, kind: str, inputs: object, outputs: object, failure: str | None) -> Span:
        attributes: dict[str, object] = {
            "mlflow.traceRequestId": f"tr-{number}",
            "mlflow.spanType": kind,
            "mlflow.spanInputs": inputs,
            "mlflow.spanOutputs": outputs,
        }
        return Span.from_dict(
            {
                "trace_id": _base64(number),
                "span_id": _base64(_hex(f"{number}/{name}", 16)),
                "parent_span_id": "" if name == "question" else _base64(root),
                "name": name,
                "start_time_unix_nano": at_ms * MILLISECOND,
                "end_time_unix_nano": at_ms * MILLISECOND,
                "status": {"code": "STATUS_CODE_ERROR" if failure else "STATUS_CODE_OK", "message": failure or ""},
                "attributes": {key: json.dumps(value, ensure_ascii=False) for key, value in attributes.items()},
                "events": [],
            }
        )

    passages = [
        {"page_content": one["text"], "id": one["id"], "metadata": {"doc_uri": one["id"], "title": one["title"]}}
        for one in question["passages"]
    ]
    made = [
        span("question", "CHAIN", asked, question["answer"], failure),
        span("retrieve", "RETRIEVER", asked, passages, None),
    ]
    if question["reader"] is not None:
        heard = {**asked, "context": [one["id"] for one in question["passages"]], "model": question["reader"]}
        made.append(span("answer", "LLM", heard, question["answer"], failure))
    return made


def _hex(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _base64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()
