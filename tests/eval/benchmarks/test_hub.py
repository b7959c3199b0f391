"""Hub sets through the real `datasets` library, which takes a local folder `owner/name` for a repository."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from hopbench.eval.benchmarks import hub, load_benchmark
from hopbench.eval.benchmarks.hub import load_hub
from hopbench.retrieval.support.errors import InputError

CARD = """---
configs:
- config_name: corpus
  data_files: corpus.jsonl
- config_name: queries
  data_files: queries.jsonl
"""
QRELS_CONFIG = """- config_name: default
  data_files:
  - {split: train, path: train.jsonl}
  - {split: test, path: test.jsonl}
"""
HOTPOT = {
    "id": "h1",
    "question": "Who wrote?",
    "answer": "Ada",
    "type": "bridge",
    "supporting_facts": {"title": ["Ada"], "sent_id": [0]},
    "context": {"title": ["Ada", "Bea"], "sentences": [["Ada wrote."], ["Bea did not."]]},
}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that `owner/tiny` means; the library's caches go to a HOPBENCH_HOME of the test's own."""
    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home" / "huggingface"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.delenv("HF_DATASETS_CACHE", raising=False)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "owner" / "tiny"
    folder.mkdir(parents=True)
    return folder


def write(path: Path, *records: dict[str, Any]) -> None:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))


def write_beir(folder: Path) -> None:
    write(
        folder / "corpus.jsonl", {"_id": "p1", "title": "Ada", "text": "x"}, {"_id": "p2", "title": "Bea", "text": "y"}
    )
    write(folder / "queries.jsonl", {"_id": "q1", "text": "Who?"}, {"_id": "q2", "text": "What?"})


def test_beir_with_judgements_as_a_config(repository: Path) -> None:
    write_beir(repository)
    (repository / "README.md").write_text(CARD + QRELS_CONFIG + "---\n")
    write(repository / "train.jsonl", {"query-id": "q2", "corpus-id": "p2", "score": 1})
    write(
        repository / "test.jsonl",
        {"query-id": "q1", "corpus-id": "p2", "score": 1.0},
        {"query-id": "q1", "corpus-id": "p1", "score": 0},
    )

    name, (passages, questions) = load_hub("owner/tiny")
    assert (
        name,
        [p.id for p in passages],
        [(q.id, q.gold) for q in questions],
    ) == ("tiny", ["p1", "p2"], [("q1", ("p2",))])

    _, (_, questions) = load_hub("owner/tiny:default:train")
    assert [(q.id, q.gold) for q in questions] == [("q2", ("p2",))]


def test_gold_that_is_not_in_the_corpus_names_the_row(repository: Path) -> None:
    write_beir(repository)
    (repository / "README.md").write_text(CARD + QRELS_CONFIG + "---\n")
    write(repository / "train.jsonl", {"query-id": "q1", "corpus-id": "p1", "score": 1})
    write(repository / "test.jsonl", {"query-id": "q1", "corpus-id": "p9", "score": 1})

    with pytest.raises(InputError, match=r"owner/tiny:default: 1 gold id is not in the corpus: 'p9' \(row 1\)"):
        load_hub("owner/tiny")


def test_beir_with_judgements_in_a_set_of_their_own(repository: Path) -> None:
    write_beir(repository)
    (repository / "README.md").write_text(CARD + "---\n")
    judged = repository.with_name("tiny-qrels")
    judged.mkdir()
    (judged / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tp1\t1\n")

    _, (_, questions) = load_hub("owner/tiny")

    assert [(q.id, q.gold) for q in questions] == [("q1", ("p1",))]


def test_contexts_take_the_validation_split(repository: Path) -> None:
    write(repository / "train.jsonl", {**HOTPOT, "id": "t1"})
    write(repository / "validation.jsonl", HOTPOT)

    name, (passages, questions) = load_hub("owner/tiny")
    assert (name, [p.title for p in passages]) == ("tiny-validation", ["Ada", "Bea"])
    assert [("h1", (passages[0].id,))] == [(q.id, q.gold) for q in questions]

    name, (_, questions) = load_hub("owner/tiny:default:train")
    assert (name, [q.id for q in questions]) == ("tiny-train", ["t1"])

    with pytest.raises(
        InputError, match="owner/tiny:default: no split 'dev': name one of train, validation as owner/name:con"
    ):
        load_hub("owner/tiny:default:dev")


def test_several_configs_need_one_named_and_bad_data_is_one_message(repository: Path) -> None:
    (repository / "README.md").write_text(
        "---\nconfigs:\n- {config_name: b, data_files: b.jsonl}\n- {config_name: a, data_files: a.jsonl}\n---\n"
    )
    write(repository / "a.jsonl", HOTPOT)
    (repository / "b.jsonl").write_text("no json\n")

    with pytest.raises(InputError, match=r"owner/tiny: has several configs \(a, b\): name one, as in owner/tiny:a$"):
        load_hub("owner/tiny")
    with pytest.raises(InputError, match=r"^owner/tiny: cannot be read from the Hugging Face Hub \("):
        load_hub("owner/tiny:b")
    assert load_hub("owner/tiny:a")[0] == "tiny-a-train"


def test_rows_are_validated_like_any_file(repository: Path) -> None:
    write(repository / "train.jsonl", HOTPOT, {**HOTPOT, "question": " ", "id": "h2"})
    with pytest.raises(InputError, match=r"^owner/tiny:default, row 2: field 'text' is empty"):
        load_hub("owner/tiny")


@pytest.mark.usefixtures("repository")
def test_without_a_network_the_message_says_how_to_get_a_local_file(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError) as caught:
        load_benchmark("hotpotqa/hotpot_qa:distractor")

    assert str(caught.value) == (
        "hotpotqa/hotpot_qa: not a local path, and the Hugging Face Hub cannot be reached from here: download the file "
        "(such as hotpot_dev_distractor_v1.json) or BEIR folder elsewhere and give its path"
    )


def test_a_host_that_does_not_resolve_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def unresolved(*_: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", unresolved)
    assert not hub._reachable()

    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:3128")  # the proxy resolves names itself
    assert hub._reachable()
