"""Retrievers that are not ours in whole commands: bm25 by every door keeps its figures, bad ones harm nobody else."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from tests.flows.cli.conftest import Done, Hopbench, call
from tests.support import retriever_servers as servers
from tests.support.places import ROOT
from tests.support.retriever_servers import serving

from hopbench.flows.api.functions import load_run
from hopbench.flows.run.evaluate import run
from hopbench.flows.settings.options import RunOptions
from hopbench.retrieval.external import Function

PAGE = (ROOT / "docs" / "your-retriever.md").read_text(encoding="utf-8")
Entries = dict[str, dict[str, Any]]


def snippet(name: str) -> str:
    """A whole file of the documentation."""
    found = re.search(rf"<!-- {re.escape(name)} -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def entries(folder: Path) -> Entries:
    found: Entries = json.loads((folder / "results.json").read_text(encoding="utf-8"))["strategies"]
    return found


def rows(folder: Path, label: str) -> pd.DataFrame:
    table = pd.read_parquet(folder / "questions.parquet")
    return table[table["strategy"] == label].set_index("question_id")


def same_figures(found: Entries, label: str) -> None:
    """Every mean of every metric, by type and by number of gold passages too: results.json has 6 decimals."""
    for part in ("metrics", "answered", "by_type", "by_gold"):
        assert found["bm25"][part] == found[label][part]


def trec(folder: Path, label: str) -> str:
    told = rows(folder, label)
    return "".join(
        f"{question} Q0 {passage} {rank} {score!r} {label}\n"
        for question, ranked, scores in zip(told.index, told["ranked_ids"], told["scores"], strict=True)
        for rank, (passage, score) in enumerate(zip(ranked, map(float, scores), strict=True), 1)
    )


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home for this file: other files look for the newest run in theirs."""
    return tmp_path_factory.mktemp("foreign-home")


@pytest.fixture
def hopbench(own_home: Path) -> Hopbench:
    """Calls a command in that home."""

    def command(*arguments: object, **environment: str) -> Done:
        return call(*arguments, home=own_home, environment=environment)

    return command


@pytest.fixture
def files(finished: Path, tmp_path: Path) -> dict[str, Path]:
    """bm25's rankings of the finished run, as a TREC run and as JSON lines."""
    told = rows(finished, "bm25")
    lines = [
        json.dumps({"question": question, "passages": list(ranked)}) for question, ranked in told["ranked_ids"].items()
    ]
    (tmp_path / "bm25.trec").write_text(trec(finished, "bm25"))
    (tmp_path / "bm25.jsonl").write_text("\n".join(lines))
    return {"trec": tmp_path / "bm25.trec", "json": tmp_path / "bm25.jsonl"}


@pytest.fixture
def command(hopbench: Hopbench, bench: Path, tmp_path: Path) -> Callable[..., tuple[Done, Path]]:
    """`hopbench run` of bm25 beside other labels."""

    def called(*arguments: object, **environment: str) -> tuple[Done, Path]:
        out = tmp_path / "out"
        quick = ("--strategies", "bm25", "--no-prefect", "--out", out)
        return hopbench("run", "--dataset", bench, *quick, *arguments, **environment), out

    return called


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def documented(tmp_path: Path) -> Iterator[Callable[[Path], str]]:
    """Starts the page's own server over a corpus; its URL."""
    started: list[subprocess.Popen[bytes]] = []

    def start(corpus: Path) -> str:
        folder, port = tmp_path / "server", free_port()
        folder.mkdir()
        (folder / "corpus.jsonl").write_bytes(corpus.read_bytes())
        for name in ("server.py", "search.py"):
            (folder / name).write_text(snippet(name))
        started.append(
            subprocess.Popen([sys.executable, "server.py", str(port)], cwd=folder, stderr=subprocess.DEVNULL)
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return f"http://127.0.0.1:{port}/"
            time.sleep(0.05)
        raise TimeoutError("the documented server does not listen")

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_files_and_folders_of_bm25_have_its_figures(command: Any, files: dict[str, Path], finished: Path) -> None:
    runs = [f"trec={files['trec']}", f"json={files['json']}", f"old={finished}", f"one={finished}:bm25"]
    done, out = command(*(word for text in runs for word in ("--runs", text)))

    assert (0, "") == (done.code, done.err)
    found = entries(out)
    labels = ["trec", "json", "old:vector", "old:bm25", "old:graph_expansion", "old:pagerank", "one"]
    assert ["bm25", *labels] == list(found)
    for label in ("trec", "json", "old:bm25", "one"):
        same_figures(found, label)
        assert ("foreign", None, None) == tuple(found[label][name] for name in ("kind", "seconds", "latency_ms_p50"))
    assert {"format", "digest"} == set(found["trec"]["params"])
    assert re.search(r"trec +foreign +\d\.\d{3} .* 100% +– +–", done.out)
    assert "trec" in (out / "report.html").read_text(encoding="utf-8")


def test_the_documented_server_has_bm25s_figures_and_a_measured_latency(
    command: Any, documented: Callable[[Path], str], bench: Path
) -> None:
    url = documented(bench / "corpus.jsonl")
    done, out = command("--retriever", f"svc={url}", "--set", "svc.batch=3")

    assert (0, "") == (done.code, done.err)
    found = entries(out)["svc[batch=3]"]
    same_figures({**entries(out), "svc": found}, "svc")
    expected = {"url": url, "version": "1", "k": 100, "batch": 3, "timeout": 30.0}
    assert expected == found["params"]
    assert 0 < found["latency_ms_p50"] < 1000
    assert 2 == found["observed"]["requests"]  # four questions, three a request
    assert "latency_pace" not in found  # its time says nothing of this machine


def test_the_documented_search_as_a_function_has_bm25s_figures(
    bench: Path, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space: dict[str, Any] = {}
    monkeypatch.chdir(bench)
    exec(compile(snippet("search.py"), "search.py", "exec"), space)

    def search_all(questions: Sequence[str], k: int) -> list[list[str]]:
        return [space["search"](question, k) for question in questions]

    functions = {"mine": Function(retrieve=search_all, version="1")}
    out = tmp_path / "out"
    with patch.dict(os.environ, {"HOPBENCH_HOME": str(own_home)}):
        finished = run(
            RunOptions(
                dataset=str(bench), out=out, strategies="bm25", no_prefect=True, ragas=False, functions=functions
            )
        )

    assert [] == finished.incomplete
    same_figures(entries(out), "mine")
    assert entries(out)["mine"]["latency_pace"]["own_ms"] > 0  # it runs here, as ours do


@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        (servers.hanging, r"no whole reply within 0\.3 s"),
        (servers.closing, "the connection broke"),
        (servers.saying(b"<html>busy</html>", Content_Type="text/html"), "the reply is not JSON but 'text/html'"),
        (servers.saying(b"no", 500), "HTTP 500: 'no'"),
        (servers.endless, "the reply is over 16,777,216 bytes"),
        (servers.ranking(lambda texts, k: [["p01"]]), "the reply has 1 results for 4 questions|^$"),
        (servers.ranking(lambda texts, k: [["p01", "nowhere"]] * len(texts)), "1 of 2 passages are not in the corpus"),
        (servers.ranking(lambda texts, k: [["p01", "p01"]] * len(texts)), "passage 'p01' is returned twice"),
        (servers.ranking(lambda texts, k: ["p01"] * len(texts)), "the ranking is the text 'p01', not a list"),
    ],
)
def test_a_bad_endpoint_is_rows_with_reasons_and_costs_no_other_label(
    command: Any, behave: servers.Behaviour, expected: str
) -> None:
    alone = behave is not servers.hanging
    with serving(behave) as served:
        done, out = command(
            "--retriever", f"bad={served.url}", "--set", "bad.timeout=0.3" if not alone else "bad.k=100"
        )

    label = next(name for name in entries(out) if name.startswith("bad"))
    assert 4 == len(rows(out, label))
    assert rows(out, "bm25")["failure"].isna().all()
    if "results for 4" in expected:  # asked one by one, this endpoint gives one ranking for one question
        assert 0 == done.code
        return
    assert 4 == done.code
    assert f"over 5% of the questions failed for {label}" in done.err
    reasons = list(rows(out, label)["failure"])
    assert all(re.search(expected, reason) for reason in reasons), reasons
    assert entries(out)[label]["latency_ms_p50"] is None
    assert 0.0 == entries(out)[label]["coverage"]


def test_a_key_of_the_environment_is_sent_and_stands_in_no_file(command: Any, own_home: Path) -> None:
    with serving(servers.echoing) as served:
        done, out = command("--retriever", f"my-one={served.url}", HOPBENCH_API_KEY_MY_ONE="s3cret-of-mine")

    assert {"Bearer s3cret-of-mine"} == {headers["authorization"] for headers in served.headers}
    assert {"HTTP 401: 'bad key Bearer [redacted]'", "HTTP 401: 'bad key [redacted]'"} & set(
        rows(out, "my-one")["failure"]
    )
    written = [file for folder in (out, own_home) for file in folder.rglob("*") if file.is_file()]
    assert [] == [file for file in written if b"s3cret-of-mine" in file.read_bytes()]
    assert "s3cret" not in done.out + done.err


@pytest.mark.parametrize("changes", [True, False])
def test_an_endpoint_whose_answers_change_within_a_run_is_noticed(command: Any, changes: bool) -> None:
    requests: list[int] = []

    def rank(texts: Sequence[str], k: int) -> list[list[str]]:
        requests.append(len(texts))
        turned = changes and len(requests) > 2  # the greeting, then all questions
        return [["p01", "p04"] if turned else ["p04", "p01"] for _ in texts]

    with serving(servers.ranking(rank)) as served:
        done, out = command("--retriever", f"svc={served.url}")

    words = "svc: the endpoint answered question q1 otherwise when it was asked again"
    places = (
        done.out + done.err,
        (out / "report.html").read_text(),
        str(load_run(out).warnings),
    )
    assert 0 == done.code
    assert [changes] * 3 == [words in " ".join(place.split()) for place in places]
    assert 1 == requests[-1]


def test_explain_tells_fates_of_a_foreign_label_from_the_run_alone(
    command: Any, hopbench: Hopbench, tmp_path: Path
) -> None:
    with serving(servers.ranking(lambda texts, k: [["p04", "p01"]] * len(texts))) as served:
        done, out = command("--retriever", f"svc={served.url}")
    assert 0 == done.code
    shown = hopbench("explain", "q2", "--run", out, "--strategy", "svc", "--against", "bm25")

    assert (0, "") == (shown.code, shown.err)
    words = " ".join(shown.out.split())
    assert "traversal: not known: a foreign retriever returns passages only" in words
    assert "returned by the retriever, which does not say how it was found" in words
    assert "not returned by the retriever, which does not say why: this label has no traversal to look into" in words
    assert "in the graph, 1 step from its first passages:" in words
    assert "the ranking stored in" in words
    told = json.loads(hopbench("explain", "q2", "--run", out, "--strategy", "svc", "--json").out)
    assert "not returned" in json.dumps(told)


def test_compare_finds_a_tracked_foreign_label_by_its_name(command: Any, hopbench: Hopbench) -> None:
    with serving(servers.ranking(lambda texts, k: [["p04", "p01"]] * len(texts))) as served:
        command("--retriever", f"tracked-one={served.url}")
    done = hopbench("compare", "tracked-one", "bm25", "--json")

    assert 0 == done.code, done.err
    assert (
        "foreign" == next(side for name, side in json.loads(done.out)["sides"].items() if "tracked-one" in name)["kind"]
    )


def test_an_endpoint_that_refuses_single_questions_has_no_latency(command: Any) -> None:
    def behave(handler: Any, asked: dict[str, Any]) -> None:
        sound = servers.ranking(lambda texts, k: [["p04"]] * len(texts))
        (sound if len(asked["questions"]) > 1 else servers.saying(b"no", 500))(handler, asked)

    with serving(behave) as served:
        done, out = command("--retriever", f"svc={served.url}")

    assert 0 == done.code
    assert (1.0, None) == tuple(entries(out)["svc"][name] for name in ("coverage", "latency_ms_p50"))


def test_compare_scores_a_run_file_beside_a_folder(
    hopbench: Hopbench, finished: Path, files: dict[str, Path], bench: Path
) -> None:
    done = hopbench("compare", f"{finished}:bm25", "--runs", f"mine={files['trec']}", "--json")
    assert (0, "") == (done.code, done.err)
    told = json.loads(done.out)
    assert [0.0, "not distinguishable"] == [told["pairs"][0][name] for name in ("difference", "verdict")]

    two = ("--runs", f"a={files['trec']}", "--runs", f"b={files['json']}")
    assert 0 == hopbench("compare", *two, "--dataset", bench).code
    alone = hopbench("compare", *two)
    assert (2, True) == (alone.code, "scored on which benchmark? Name a run beside it, or --dataset" in alone.err)


def test_nightly_compares_a_foreign_label_with_the_night_before_and_never_crowns_it(
    bench: Path, tmp_path: Path
) -> None:
    gold = tmp_path / "gold.jsonl"
    table = pd.read_csv(bench / "qrels" / "test.tsv", sep="\t")
    gold.write_text(
        "\n".join(
            json.dumps({"question": question, "passages": list(part["corpus-id"])})
            for question, part in table.groupby("query-id")
        )
    )
    night = ("nightly", "--dataset", bench, "--strategies", "bm25", "--no-prefect", "--runs", f"best={gold}")
    night += ("--latency-factor", "1000")  # the machine of a test may be busy
    home = tmp_path / "home"
    first = call(*night, home=home)
    assert (0, True) == (first.code, "first good night: recorded as the baseline" in first.out)
    second = call(*night, home=home)
    assert (0, True) == (second.code, "no regression, 2 of 2 labels compared" in second.out), second
    record = max((home / "nightly").glob("*/nightly.json"), key=lambda file: file.parent.name)
    told = json.loads(record.read_text())
    assert "bm25" == told["champion"]["label"]  # though the other one has every gold passage first
    assert {"best", "bm25"} == set(told["previous"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--runs", "nofile"], "--runs: write NAME=FILE"),
        (["--runs", "a b=x"], "--runs: write NAME=FILE"),
        (["--retriever", "x"], "--retriever: write NAME=URL"),
        (
            ["--retriever", "pagerank=http://127.0.0.1/"],
            "--retriever pagerank: that is the name of one of HopBench's own",
        ),
        (["--retriever", "mine=ftp://x"], "--retriever mine: not a URL of http or https"),
        (["--retriever", "mine=http://me:pa55@x/"], "--retriever mine: the URL holds a user or password"),
        (["--runs", "mine=/nowhere/run.txt"], "/nowhere/run.txt: no such file"),
        (["--retriever", "m=http://x/", "--retriever", "m=http://y/"], "two retrievers have that name"),
        (
            ["--retriever", "m-1=http://x/", "--retriever", "m_1=http://y/"],
            "m-1 reads the same keys from the environment",
        ),
        (["--retriever", "m=http://x/", "--set", "m.depth=3"], "unknown parameter of endpoint 'depth'"),
        (["--retriever", "m=http://x/", "--set", "m.k=500"], "endpoint.k = 500 is not allowed: it takes 1..100"),
    ],
)
def test_flags_that_cannot_be_meant_are_refused(command: Any, arguments: list[str], expected: str) -> None:
    done, _ = command(*arguments)

    assert 2 == done.code
    assert expected in " ".join(done.err.split())
    assert "pa55" not in done.err


def test_a_run_of_another_benchmark_is_refused_before_any_work(command: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.trec"
    other.write_text("q1 Q0 elsewhere 1 3.5 x\n")
    done, _ = command("--runs", f"mine={other}")
    assert (2, True) == (done.code, "none of its 1 passages (such as 'elsewhere') is in the corpus" in done.err)
    other.write_text("q99 Q0 p01 1 3.5 x\n")
    done, _ = command("--runs", f"mine={other}")
    assert (2, True) == (done.code, "none of its 1 questions (such as 'q99') is one of" in done.err)


def test_bad_secret_headers_are_refused_without_being_shown(command: Any) -> None:
    done, _ = command("--retriever", "m=http://127.0.0.1:1/", HOPBENCH_SECRET_HEADERS_M="X-Key: pa55")

    assert 2 == done.code
    assert "HOPBENCH_SECRET_HEADERS_M: not a JSON object of header names and texts" in done.err
    assert "pa55" not in done.err


def test_a_function_is_not_sent_to_other_processes(tmp_path: Path) -> None:
    functions = {"mine": Function(retrieve=lambda questions, k: [[] for _ in questions])}
    with pytest.raises(Exception, match="--runner processes has workers in other processes, which lack mine"):
        RunOptions(dataset="hopworld", out=tmp_path, functions=functions, runner="processes")
