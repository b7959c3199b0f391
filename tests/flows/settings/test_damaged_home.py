"""Damaged files of the home: rows and files that do not read are told in one line, kept aside, and done again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support.graphs import WORLD, plan_of

from hopbench.eval.answering.judge.schedule import Judgement, JudgementStore
from hopbench.eval.trials.key import TrialKey
from hopbench.eval.trials.ledger import Ledger, TrialRecord
from hopbench.flows.cli._doctor_home import home_checks
from hopbench.flows.graph.build import held_content
from hopbench.flows.settings.home import Home
from hopbench.retrieval.embedding.cache import EmbeddingCache, text_key
from hopbench.retrieval.graph.construction.builder import build_graph
from hopbench.retrieval.graph.construction.staging import Staging
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.llm.cache import ReplyCache
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.locking import exclusive, exclusive_and_gone
from hopbench.retrieval.support.sqlite_files import damage

Caught = pytest.CaptureFixture[str]


def record(number: int) -> TrialRecord:
    """A trial whose row fills pages of the file."""
    settings = {"strategy": "pagerank", "questions": [f"q{i}" for i in range(200)], "seed": number}
    values = np.random.default_rng(number).random(200)
    rows = pd.DataFrame({"recall@5": values}, index=pd.Index(settings["questions"], name="question_id", dtype=object))
    return TrialRecord(TrialKey(settings).id, settings, {"recall@5": 0.5}, rows, 0, 1.5, 10.0, 12.0)


def said(captured: Caught) -> list[str]:
    return captured.readouterr().err.splitlines()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    with Ledger.open(tmp_path / "ledger.db") as opened:
        for number in range(20):
            opened.put(record(number))
    return tmp_path / "ledger.db"


def change(file: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement, values)
        connection.commit()


@pytest.mark.parametrize(
    "harm",
    [
        "metrics = '{\"recall@5\": 0.7}'",
        "settings = '{'",
        "settings = CAST(x'ff41' AS TEXT)",
        "questions = CAST(substr(questions, 1, 100) AS BLOB)",
        "failures = 1",
        "seconds = 1.25",
    ],
)
def test_a_trial_that_does_not_read_is_set_aside_named_and_done_again(ledger: Path, capsys: Caught, harm: str) -> None:
    bad, good = record(3).trial_id, record(4).trial_id
    change(ledger, f"UPDATE trials SET {harm} WHERE trial_id = ?", bad)
    with Ledger.open(ledger) as opened:
        assert opened.pace("pagerank") is not None
        assert (None, True) == (opened.get(bad), opened.get(good) is not None)
        (line,) = said(capsys)
        assert f"trial {bad} in the ledger does not read" in line
        assert opened.claim(bad)
        opened.put(record(3))
        assert opened.get(bad) is not None
    with closing(sqlite3.connect(ledger)) as connection:
        assert [(bad,)] == connection.execute("SELECT trial_id FROM set_aside").fetchall()


def broken(file: Path) -> None:
    """Write zeros over the middle of an SQLite file, where tables and indexes have their pages."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8192] = bytes(8192)
    file.write_bytes(content)
    assert damage(file) is not None


def test_a_broken_ledger_keeps_what_reads(ledger: Path, capsys: Caught) -> None:
    broken(ledger)
    with Ledger.open(ledger) as opened:
        left = [number for number in range(20) if opened.get(record(number).trial_id) is not None]
    assert 5 <= len(left) < 20
    assert "ledger.db was damaged" in said(capsys)[0]
    assert (None, 1) == (damage(ledger), len(list(ledger.parent.glob("ledger.db.damaged-*"))))
    with Ledger.open(ledger):
        assert [] == said(capsys)


def test_a_ledger_is_not_healed_under_another_process(ledger: Path) -> None:
    with Ledger.open(ledger) as working:
        working.claim("mine")
        ledger_bytes = ledger.read_bytes()
        broken_copy = bytearray(ledger_bytes)
        broken_copy[len(broken_copy) // 2 : len(broken_copy) // 2 + 8192] = bytes(8192)
        ledger.write_bytes(broken_copy)
        with pytest.raises(InputError, match="another process is using it: wait for it to end"), Ledger.open(ledger):
            pass
        ledger.write_bytes(ledger_bytes)


def test_a_changed_reply_is_asked_for_again(tmp_path: Path, capsys: Caught) -> None:
    cache = ReplyCache(tmp_path)
    for key in ("a", "b"):
        cache.put(key, '{"text": "yes"}')
    cache.close()
    change(cache.file, "UPDATE replies SET reply = '{\"text\": \"yep\"}' WHERE key = 'a'")
    cache = ReplyCache(tmp_path)
    assert (None, {"text": "yes"}) == (cache.get("a"), cache.get("b"))
    assert 1 == len(said(capsys))
    cache.put("a", '{"text": "yes"}')
    assert {"text": "yes"} == cache.get("a")
    cache.close()
    cache.file.write_bytes(b"no database" * 1000)
    ReplyCache(tmp_path).close()
    assert "what is lost of calls to language models is paid for again" in said(capsys)[0]


def test_a_changed_judgement_is_made_again(tmp_path: Path, capsys: Caught) -> None:
    file, found = tmp_path / "judgements.db", Judgement("faithfulness", "q1", 0, 0.25, None, 1, 2, 3, 4.0)
    with JudgementStore.open(file) as store:
        for key in ("a", "b"):
            store.put(key, "judge", found)
    change(file, "UPDATE judgements SET value = 0.75 WHERE key = 'a'")
    with JudgementStore.open(file) as store:
        assert (None, found) == (store.get("a"), store.get("b"))
    assert 1 == len(said(capsys))


@pytest.mark.parametrize("harm", ["emptied", "cut", "flipped"])
def test_a_damaged_graph_is_built_again(tmp_path: Path, capsys: Caught, harm: str) -> None:
    plan, store = plan_of(WORLD), KgliteStore(tmp_path, "small")
    first = build_graph(plan, store, tmp_path / "staging", lambda _, work: work())
    content = store.path.read_bytes()
    flipped = content[:500] + bytes([content[500] ^ 1]) + content[501:]
    store.path.write_bytes({"emptied": b"", "cut": content[: len(content) // 2], "flipped": flipped}[harm])
    again = build_graph(plan, KgliteStore(tmp_path, "small"), tmp_path / "staging", lambda _, work: work())
    assert first["fingerprint"] == again["fingerprint"]
    (line,) = said(capsys)
    assert "It is built again" in line


@pytest.mark.parametrize("harm", ["", "{", "[]", "{}", "flipped", "deep", "a folder"])
def test_a_damaged_note_of_a_graph_is_told_and_written_again(tmp_path: Path, capsys: Caught, harm: str) -> None:
    store = KgliteStore(tmp_path, "small")
    build_graph(plan_of(WORLD), store, tmp_path / "staging", lambda _, work: work())
    note = tmp_path / "small.kglite.json"
    held = held_content(store, tmp_path)
    assert [] == said(capsys)
    content = note.read_text()
    if harm == "a folder":
        note.unlink()
        note.mkdir()
    else:
        changed = content.replace('"Chunk": ', '"Chunk": 1')
        note.write_text({"flipped": changed, "deep": "[" * 100_000}.get(harm, harm))
    assert held == held_content(store, tmp_path)
    assert 1 == len(said(capsys))
    if harm != "a folder":
        assert (content, held) == (note.read_text(), held_content(store, tmp_path))
        assert [] == said(capsys)


@pytest.mark.parametrize("harm", ["changed", "cut", "a table gone", "of an earlier version"])
def test_a_damaged_stage_is_done_again(tmp_path: Path, capsys: Caught, harm: str) -> None:
    first = pd.DataFrame({"x": [1.0, 2.0]})
    stage, made = Staging(tmp_path / "key"), [("one", first), ("two", pd.DataFrame({"y": ["a"]})), ("one", first + 2)]
    stage.load_or_compute("similar", lambda: made)
    file = tmp_path / "key" / "similar" / "one-000001.parquet"
    match harm:
        case "changed":
            pd.DataFrame({"x": [1.0, 3.0]}).to_parquet(file)
        case "cut":
            file.write_bytes(file.read_bytes()[:50])
        case "a table gone":
            file.unlink()
        case _:
            (tmp_path / "key" / "similar" / "parts.json").rename(tmp_path / "key" / "similar" / "sums.json")
    stage.load_or_compute("similar", lambda: made)
    assert 1 == len(said(capsys))
    found = stage.load_or_compute("similar", lambda: pytest.fail("it is kept"))
    assert [1.0, 2.0, 3.0, 4.0] == pd.concat(found.parts("one"))["x"].tolist()
    assert (1, 0) == (len(list(found.parts("two"))), len(list(found.parts("three"))))


def test_a_folder_in_the_place_of_a_lock(tmp_path: Path, capsys: Caught) -> None:
    for hold in (exclusive, exclusive_and_gone):
        (tmp_path / "lock").mkdir()
        with hold(tmp_path / "lock"):
            assert (tmp_path / "lock").is_file()
        (tmp_path / "lock").unlink(missing_ok=True)
    assert 2 == len(said(capsys))
    (tmp_path / "full" / "of").mkdir(parents=True)
    with pytest.raises(InputError, match="a folder stands where a lock file belongs"), exclusive(tmp_path / "full"):
        pass


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home in which every kind of file is there and sound."""
    home = Home(tmp_path / "home").prepare()
    with Ledger.open(home.ledger) as opened:
        for number in range(20):
            opened.put(record(number))
    with EmbeddingCache(home.embeddings).open("m@1") as table:
        table.write([text_key("a"), text_key("b")], np.ones((2, 4), dtype=np.float32))
    cache = ReplyCache(home.replies)
    cache.put("a", "{}")
    cache.close()
    with JudgementStore.open(home.judgements) as store:
        store.put("a", "judge", Judgement("faithfulness", "q1", 0, 0.25))
    store_of_graph = KgliteStore(home.graphs, "small")
    build_graph(plan_of(WORLD), store_of_graph, home.root / "staging", lambda _, work: work())
    held_content(store_of_graph, home.graphs)
    return home


def statuses(home: Home, repair: bool) -> list[str]:
    return [check.status for check in home_checks(home, repair)]


def harm_all(home: Home) -> int:
    """One fault of each kind that doctor repairs; how many there are."""
    change(home.ledger, "UPDATE trials SET failures = 9 WHERE trial_id = ?", record(1).trial_id)
    change(home.replies / "llm.sqlite", "UPDATE replies SET reply = '[]'")
    change(home.judgements, "UPDATE judgements SET value = 0.5")
    (home.graphs / "small.kgl").write_bytes(b"")
    (home.graphs / "small.kglite.json").write_text("{")
    (home.nights / "made-2026-01-01T000000Z").mkdir(parents=True)
    (home.nights / "made-2026-01-01T000000Z" / "nightly.json").write_text("{")
    home.calls.write_bytes(b"no database" * 500)
    home.mlflow_db.mkdir()
    (home.scratch / "mlflow.lock" / "full").mkdir(parents=True)
    return 9


def test_doctor_finds_and_repairs_what_costs_money_or_hours(home: Home) -> None:
    assert ["ok"] == statuses(home, repair=False)
    faults = harm_all(home)
    assert ["warn"] * faults == statuses(home, repair=False)
    assert ["warn"] * faults == statuses(home, repair=False)  # looking changes nothing
    assert ["ok"] * faults == statuses(home, repair=True)
    (after,) = home_checks(home, repair=False)
    assert ("ok", "all read as they were written") == (after.status, after.finding)
    with Ledger.open(home.ledger) as opened:
        assert 19 == sum(opened.get(record(number).trial_id) is not None for number in range(20))


def test_a_damaged_cache_is_to_be_deleted(home: Home) -> None:
    (file,) = home.embeddings.glob("*.sqlite")
    file.write_bytes(b"no database" * 500)
    for repair in (False, True):
        (check,) = home_checks(home, repair)
        assert ("warn", file.name) == (check.status, check.part)
        assert f"delete {home.embeddings}: vectors are computed again" == check.remedy


def test_a_broken_database_is_healed_by_doctor(home: Home) -> None:
    broken(home.ledger)
    assert ["warn"] == statuses(home, repair=False)
    assert "ok" in statuses(home, repair=True)
    assert ["ok"] == statuses(home, repair=False)


def test_a_file_in_the_place_of_a_folder_is_moved(home: Home) -> None:
    (home.root / "nightly").write_text("in the way")
    assert ["ok"] == statuses(home, repair=True)
    assert ["in the way"] == [file.read_text() for file in home.root.glob("nightly.misplaced-*")]
