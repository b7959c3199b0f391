"""`hopbench export`: labels, winners and champions as folders and as MLflow's registered models."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.flows.cli.conftest import QUESTIONS, call, write_benchmark

import hopbench
from hopbench.flows.tracking.registry import model_name


@pytest.fixture(scope="module")
def bench_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_benchmark(tmp_path_factory.mktemp("export") / "tiny")


def test_the_printed_line_of_python_is_what_works(bench_copy: Path, tmp_path: Path) -> None:
    done = call("export", "hoprank", "--dataset", bench_copy, "--out", tmp_path / "taken", home=tmp_path / "home")
    assert (0, "") == (done.code, done.err)
    (line,) = [line for line in done.out.splitlines() if line.startswith("use it")]
    program = f"import hopbench; {line.removeprefix('use it').strip().replace('; retriever(', '; found = retriever(')}"
    script = f"{program}; print(found.ids)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert f"{hopbench.load(tmp_path / 'taken')(QUESTIONS[0][1], k=5).ids}" == found.stdout.strip()


def test_a_sweep_s_winner_is_exported_from_its_file(bench_copy: Path, tmp_path: Path) -> None:
    best = tmp_path / "best.yaml"
    best.write_text(
        f"dataset: {bench_copy}\nstrategies: pagerank[restart=0.4]\nstore: kglite\nembedder: wordllama\n"
        "extractor: rules\nsimilar_top_k: 3\n",
        encoding="utf-8",
    )
    done = call("export", best, "--out", tmp_path / "taken", home=tmp_path / "home")
    assert (0, "") == (done.code, done.err)
    manifest = json.loads((tmp_path / "taken" / "hopbench.json").read_text(encoding="utf-8"))
    assert ("pagerank[restart=0.4]", 0.4) == (manifest["label"], manifest["strategy"]["parameters"]["restart"])
    best.write_text(best.read_text(encoding="utf-8") + "llm: some-model\n", encoding="utf-8")
    refused = call("export", best, "--out", tmp_path / "other", home=tmp_path / "home")
    assert 2 == refused.code
    assert "an exported retriever asks no language model" in refused.err
    assert not (tmp_path / "other").exists()


def test_without_a_champion_there_is_none_to_export(bench_copy: Path, tmp_path: Path) -> None:
    done = call("export", "champion", "--dataset", bench_copy, "--out", tmp_path / "t", home=tmp_path / "home")
    assert 2 == done.code
    assert "has no champion: name a label, or let hopbench sweep --champion or a nightly name one" in done.err


def test_the_champion_of_a_night_is_exported_and_registered(
    bench_copy: Path, tmp_path: Path, home_with_database: Any
) -> None:
    home = home_with_database(tmp_path / "home")
    night = call(
        *("nightly", "--dataset", bench_copy, "--strategies", "bm25,hoprank", "--no-prefect", "--no-ragas"), home=home
    )
    assert (0, "") == (night.code, night.err)
    done = call("export", "champion", "--dataset", bench_copy, "--out", tmp_path / "t", "--register", home=home)
    assert (0, "") == (done.code, done.err)
    assert "models:/hopbench-tiny@champion  (version 1)" in done.out
    import mlflow

    model = mlflow.pyfunc.load_model("models:/hopbench-tiny@champion")  # `--register` left its store as the current one
    asked = [question for _, question, *_ in QUESTIONS]
    answers = model.predict(pd.DataFrame({"question": asked}), {"k": 3})
    taken = hopbench.load(tmp_path / "t").batch(asked, 3)
    assert [[(p.id, p.score) for p in found] for found in taken] == [
        [(p["id"], p["score"]) for p in answer["passages"]] for answer in answers
    ]
    assert ["question"] == model.metadata.signature.inputs.input_names()


def test_names_of_models_are_those_of_data_sets() -> None:
    assert ("hopbench-tiny", "hopbench-my-set") == (model_name("tiny"), model_name("my set"))


@pytest.mark.soak
def test_mlflow_serves_what_was_registered(bench_copy: Path, tmp_path: Path, home_with_database: Any) -> None:
    home = home_with_database(tmp_path / "home")
    done = call("export", "bm25", "--dataset", bench_copy, "--out", tmp_path / "t", "--register", home=home)
    assert (0, "") == (done.code, done.err)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # as in an activated environment
    server = subprocess.Popen(
        [
            *(str(Path(sys.executable).with_name("mlflow")), "models", "serve", "--env-manager", "local"),
            *("--model-uri", "models:/hopbench-tiny@champion", "--port", str(port), "--workers", "1"),
        ],
        env={**os.environ, "PATH": path, "MLFLOW_TRACKING_URI": f"sqlite:///{home / 'mlflow.db'}"},
        start_new_session=True,
    )
    try:
        body = {"dataframe_split": {"columns": ["question"], "data": [[QUESTIONS[0][1]]]}, "params": {"k": 2}}
        answer = ask(f"http://127.0.0.1:{port}/invocations", body)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)
    expected = hopbench.load(tmp_path / "t")(QUESTIONS[0][1], k=2).ids
    assert expected == [passage["id"] for passage in answer["predictions"][0]["passages"]]


def ask(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """POST until the server answers; it imports MLflow first."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                found: dict[str, Any] = json.loads(reply.read())
                return found
        except urllib.error.HTTPError:
            raise
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
