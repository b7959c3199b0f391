"""The documentation benchmarks as data sets: gold as every choice of one passage for each place."""

from __future__ import annotations

import json
from pathlib import Path

from tools.docs_sets import write_docs_set

from hopbench.eval.benchmarks import load_benchmark

# A place is found by the passages that hold its quote.
PLACES = """
def places(questions, passages):
    found = {q["id"]: [[p["_id"] for p in passages if e in p["text"]] for e in q["evidence"]] for q in questions}
    return found, [q["id"] for q in questions if [] in found[q["id"]]]
"""


def test_each_choice_of_passages_is_a_set(tmp_path: Path) -> None:
    folder = tmp_path / "docs-ferry"
    (folder / "documents").mkdir(parents=True)
    for name, text in {"a": "leaves at noon", "b": "it leaves at noon too", "c": "tickets cost two crowns"}.items():
        (folder / "documents" / f"{name}.md").write_text(f"# {name}\n\n{text}\n")
    asked = {"question": "When, and how much?", "type": "bridge", "answer": "noon", "aliases": ["12"]}
    rows = [asked | {"id": "q1", "evidence": ["at noon", "two crowns"]}, asked | {"id": "q2", "evidence": ["lost"]}]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "docs_gold.py").write_text(PLACES)

    said = write_docs_set(folder / "questions.jsonl", tmp_path / "docs_gold.py", tmp_path / "out")

    assert "1 questions, 3 passages, 1 places in no passage" == said
    written = load_benchmark(tmp_path / "out")
    (question,) = written.questions
    titles = {passage.id: passage.title for passage in written.passages}
    assert [{"a", "c"}, {"b", "c"}] == [{titles[one] for one in chosen} for chosen in question.gold.sets]
    assert ("tune", "bridge", ("noon", "12")) == (written.role, question.type, question.answers)
