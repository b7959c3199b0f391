"""The page over HTTP: pooled passages, searches, and who may send what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import hopbench
from hopbench.flows.annotation.draft import Draft
from hopbench.flows.annotation.server import AnnotationPages

QUESTION = "In which county was the director of Ed Wood born?"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "burton.md").write_text(
        "# Tim Burton\n\nTim Burton was born in Burbank. He directed Ed Wood.", encoding="utf-8"
    )
    (folder / "burbank.md").write_text("# Burbank\n\nBurbank is a city in Los Angeles County.", encoding="utf-8")
    (folder / "rivers.md").write_text("# Ohio River\n\nThe Ohio River flows past Owensboro.", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOPBENCH_HOME", str(tmp_path_factory.mktemp("home")))
        yield hopbench.open(str(folder))


@pytest.fixture
def client(corpus: Any, tmp_path: Path) -> TestClient:
    draft = Draft.open(corpus.benchmark, tmp_path / "set")
    pages = AnnotationPages(corpus, draft, ["bm25", "vector", "pagerank"])
    return TestClient(pages.app(), base_url="http://127.0.0.1:8000")


def test_the_pool_holds_the_first_passages_of_all_labels_in_one_order(client: TestClient) -> None:
    first, second = (client.post("/api/pool", json={"text": QUESTION}).json() for _ in range(2))

    assert {"burton.md", "burbank.md", "rivers.md"} == {one["id"] for one in first["passages"]}
    assert (first, []) == (second, first["failed"])


def test_words_find_passages_best_first(client: TestClient) -> None:
    assert "rivers.md" == client.post("/api/search", json={"text": "Owensboro"}).json()["passages"][0]["id"]


def test_a_question_is_saved_shown_again_and_removed(client: TestClient, tmp_path: Path) -> None:
    body = {
        "id": "q001",
        "text": QUESTION,
        "answer": "Los Angeles County",
        "evidence": {"burton.md": 1, "burbank.md": 2},
    }

    assert {"2": 1} == client.post("/api/save", json=body).json()["progress"]["hops"]
    state = client.get("/api/state").json()
    assert (["q001"], 2) == ([one["id"] for one in state["questions"]], len(state["passages"]))
    assert QUESTION in (tmp_path / "set" / "queries.jsonl").read_text(encoding="utf-8")
    assert 409 == client.post("/api/save", json=body).status_code
    assert 0 == client.post("/api/remove", json={"id": "q001"}).json()["progress"]["questions"]
    assert "" == (tmp_path / "set" / "queries.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("body", ["[]", "{", '{"text": " "}', '{"text": 3}', "null"])
def test_a_request_that_says_nothing_is_refused_in_words(client: TestClient, body: str) -> None:
    reply = client.post("/api/pool", content=body, headers=JSON)

    assert 400 == reply.status_code
    assert reply.json()["detail"]


def test_other_sites_and_hosts_are_refused(client: TestClient) -> None:
    assert 421 == client.get("/", headers={"host": "example.org"}).status_code
    assert 403 == client.post("/api/pool", json={"text": "x"}, headers={"origin": "http://example.org"}).status_code
    assert 415 == client.post("/api/pool", content='{"text": "x"}', headers={"content-type": "text/plain"}).status_code
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "http" not in page.text  # nothing is loaded from elsewhere
