"""Texts in every script through the command line: answers are found, tokens are those of a language model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.flows.cli.conftest import Hopbench, lines

SENTENCE = "诺港的造船厂共建造了两百多艘渡轮。"  # 18 tokens of o200k_base


def results(folder: Path) -> Any:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def corpus(folder: Path, *texts: str) -> Path:
    folder.mkdir()
    passages = [{"_id": f"p{number}", "title": "", "text": text} for number, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text(lines(passages), encoding="utf-8")
    asked = [{"_id": "q", "text": "造船厂在哪里？", "answer": "诺港", "gold": ["p0"]}]
    (folder / "queries.jsonl").write_text(lines(asked), encoding="utf-8")
    return folder


def test_a_perfect_ranking_has_the_answer_however_it_is_typed(
    hopbench: Hopbench, cases_dir: Path, tmp_path: Path
) -> None:
    case, out = cases_dir / "answers", tmp_path / "out"
    arguments = ("--runs", f"perfect={case / 'run.jsonl'}", "--strategies", "bm25", "--no-prefect", "--out", out)

    done = hopbench("run", "--dataset", case, *arguments)

    assert 0 == done.code, done.err
    metrics = results(out)["strategies"]["perfect"]["metrics"]
    # 19 of 20: "Norhaven" inside "Norhavenwerft" is another word.
    assert {0.95} == {metrics[name] for name in ("has_answer", "has_answer@5", "has_answer@10", "has_answer@300t")}


def test_only_the_answer_inside_a_longer_word_is_reported(hopbench: Hopbench, cases_dir: Path) -> None:
    done = hopbench("check-data", cases_dir / "answers")

    assert re.search(r"none of their gold passages +1 +compound ", done.out), done.out


def test_check_data_counts_the_tokens_of_a_text_without_spaces(hopbench: Hopbench, tmp_path: Path) -> None:
    done = hopbench("check-data", corpus(tmp_path / "zh", SENTENCE, SENTENCE * 2))

    assert "18 to 36 tokens each" in done.out


def test_a_context_in_a_script_without_spaces_stays_in_the_budget(hopbench: Hopbench, tmp_path: Path) -> None:
    long = SENTENCE.removesuffix("。") * 200  # 3,400 tokens in one sentence: three chunks
    folder, out = corpus(tmp_path / "zh", long, f"{SENTENCE}北岭。"), tmp_path / "out"

    done = hopbench("run", "--dataset", folder, "--strategies", "vector", "--no-prefect", "--out", out)

    assert 0 == done.code, done.err
    found = results(out)
    assert found["graph"]["nodes"]["Chunk"] >= 4
    assert 1400 < found["strategies"]["vector"]["context_tokens"] <= 1500
