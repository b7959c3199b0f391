"""The tables of what hoprank's parts give and what it misses, from ranks of held-out gold passages by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from hopbench.eval.docs import held_out
from hopbench.eval.docs.held_out import ablations, examples, misses
from hopbench.eval.files import write_table
from hopbench.retrieval.support.errors import InputError


def held(
    ranks: dict[str, tuple[int, ...]], model: str = "trees", dataset: str = "one-a", **more: object
) -> pd.DataFrame:
    """Questions of a set with the ranks of their gold passages; every second one is linked."""
    return pd.DataFrame(
        [
            {
                **{
                    "setting": "left out",
                    "model": model,
                    "dataset": dataset,
                    "triples": False,
                    "embedder": "wordllama:1",
                },
                **{"question": question, "type": "", "text": f"{question}?", "passage": f"p{place}"},
                **{"title": f"Title {place}", "rank": rank, "linked": place % 2 == 0, **more},
            }
            for question, of_question in ranks.items()
            for place, rank in enumerate(of_question)
        ]
    )


WHOLE = pd.concat(
    [
        held({"q1": (1, 2), "q2": (1, 7), "q3": (60, 0), "q4": (3, 11)}),
        held({"q1": (1, 2), "q2": (6, 8), "q3": (7, 0), "q4": (3, 11)}, "linear"),
        held({"z1": (1, 2)}, dataset="one-b"),
    ]
)


def test_the_difference_is_paired_and_the_largest_set_of_a_family_stands_for_it() -> None:
    text = ablations(WHOLE, {"links": held({"q1": (6, 7), "q2": (1, 7), "q3": (60, 0), "q4": (3, 11)})})

    assert "| without | one-a wordllama |" in text
    recall, complete = text.split("all_gold@10:")
    # (1 + .5 + 0 + .5)/4; of the linear score (1 + 0 + 0 + .5)/4; q1 loses all its recall@5, and keeps all_gold@10
    assert "| nothing | 0.500 |\n| links | -0.250 [-0.750, 0.000] |\n| trees: the linear score | 0.375 |" in recall
    assert "| nothing | 0.500 |\n| links | 0.000 [0.000, 0.000] |" in complete


def test_an_ablation_of_the_linear_score_stands_below_it() -> None:
    text = ablations(WHOLE, {"edges": held({f"q{place}": (20, 0) for place in range(1, 5)}, "linear")})

    assert "| trees: the linear score | 0.375 |\n| edges | **-0.375 " not in text  # 4 questions: 0 is within
    assert "| trees: the linear score | 0.375 |\n| edges | -0.375 [" in text


def test_other_questions_are_refused() -> None:
    with pytest.raises(InputError, match="3 of 4 questions are in both files: learn both from the same sets"):
        ablations(WHOLE, {"links": held({"q1": (6, 7), "q2": (1, 7), "q3": (60, 0), "q5": (3, 11)})})


def test_where_what_is_missed_stands() -> None:
    """Of q3 one passage is no candidate and one beyond the fifty; of q4 one is read, without an edge to it."""
    assert "| one-a | wordllama | 2 | 4 | 2 | 3 | 1 | 1 | 1 | 0 |" in misses(WHOLE)
    assert "| one-b | wordllama | 2 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |" in misses(WHOLE)


def test_examples_name_question_passages_and_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = examples(WHOLE).splitlines()
    assert ["- *one-a*: q3? Gold: Title 0 (rank 60); Title 1 (no candidate, no edge)."] == lines[:1]
    assert 2 == len(lines)

    whole, page = tmp_path / "whole.parquet", tmp_path / "page.md"
    write_table(whole, WHOLE)
    page.write_text(
        "".join(f"<!-- {name} --><!-- /{name} -->\n" for name in ("ablations", "misses", "examples of misses"))
    )
    monkeypatch.setattr("sys.argv", ["held_out", str(page), str(whole), f"nothing at all={whole}"])
    held_out.main()
    assert "| nothing at all | 0.000 [0.000, 0.000] |" in page.read_text()
