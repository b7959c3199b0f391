"""The tables of what hoprank's parts give and what it misses, from ranks of held-out gold passages by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tools.docs import held_out
from tools.docs.held_out import ablations
from tools.docs.misses import examples, misses
from tools.docs.places import run

from hopbench.eval.files import read_table, write_table
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


def with_another_set(ranks: dict[str, tuple[int, ...]], model: str = "trees") -> pd.DataFrame:
    return pd.concat([held(ranks, model), held({"z1": (1, 2)}, model, "one-b")])


def test_the_difference_is_paired_and_the_largest_set_of_a_family_stands_for_it() -> None:
    text = ablations(WHOLE, {"links": with_another_set({"q1": (6, 7), "q2": (1, 7), "q3": (60, 0), "q4": (3, 11)})})

    assert "| without | one-a wordllama |" in text
    recall, complete = text.split("all_gold@10:")
    # (1 + .5 + 0 + .5)/4; of the linear score (1 + 0 + 0 + .5)/4; q1 loses all its recall@5, and keeps all_gold@10
    assert "| nothing | 0.500 |\n| links | -0.250 [-0.750, 0.000] |\n| trees: the linear score | 0.375 |" in recall
    assert "| nothing | 0.500 |\n| links | 0.000 [0.000, 0.000] |" in complete


def test_an_ablation_of_the_linear_score_stands_below_it() -> None:
    text = ablations(WHOLE, {"edges": with_another_set({f"q{place}": (20, 0) for place in range(1, 5)}, "linear")})

    assert "| trees: the linear score | 0.375 |\n| edges | **-0.375 " not in text  # 4 questions: 0 is within
    assert "| trees: the linear score | 0.375 |\n| edges | -0.375 [" in text


def test_other_questions_are_refused() -> None:
    others = held({"q1": (6, 7), "q2": (1, 7), "q3": (60, 0), "q5": (3, 11)})
    with pytest.raises(InputError, match="links: 3 questions, left out, are not in both files: learn both from"):
        ablations(WHOLE, {"links": others})  # it lacks q4 and z1, and has q5


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
    table = read_table(whole).assign(text="a | b\n# <!-- /misses -->")
    assert "*one-a*: a \\| b # &lt;!-- /misses --> Gold" in examples(table)
    page.write_text(
        "".join(f"<!-- {name} --><!-- /{name} -->\n" for name in ("ablations", "misses", "examples of misses"))
    )
    monkeypatch.setattr("sys.argv", ["held_out", str(page), str(whole), f"nothing at all={whole}"])
    held_out.main()
    assert "| nothing at all | 0.000 [0.000, 0.000] |" in page.read_text()


@pytest.mark.parametrize(
    "given", ["=FILE", "FILE", "a=FILE a=FILE", "a=nowhere.parquet", "a=page.md", "a=other.parquet"]
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("FILE"), WHOLE)
    write_table(Path("other.parquet"), WHOLE.assign(rank="first"))
    Path("page.md").write_text("")
    monkeypatch.setattr("sys.argv", ["held_out", "page.md", "FILE", *given.split()])

    with pytest.raises(SystemExit) as ended:
        run(held_out.main)
    assert 2 == ended.value.code
    message = capsys.readouterr().err
    assert 1 == message.count("\n")
    assert "name what `train hoprank --held-out` wrote" in message or "write WHAT=FILE, each WHAT once" in message


def test_where_nothing_was_left_out_nothing_is_measured() -> None:
    for none in (WHOLE[:0], WHOLE.assign(setting="cross-validated"), WHOLE[WHOLE["model"] == "linear"]):
        assert "Not measured.\n" == misses(none) == examples(none)
    assert "Not measured.\n" == ablations(WHOLE[:0], {})


def test_an_embedder_that_did_not_learn_a_set_has_a_dash() -> None:
    both = pd.concat([WHOLE, held({"q1": (1, 2)}).assign(embedder="minilm:1", dataset="two-a")])

    assert "| nothing | – | 0.500 | 1.000 | – |\n| all | – | 0.000 [0.000, 0.000] | 0.000 | – |" in ablations(
        both, {"all": both}
    )
