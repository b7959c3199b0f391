"""The tables of docs/hoprank.md: the model card, what hoprank's parts give, and what it misses."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.support.places import ROOT
from tools.docs import hoprank
from tools.docs.hoprank import ablations, card_parts, examples, misses
from tools.docs.pages import filled, run_command

from hopbench.eval.files import read_table, write_table
from hopbench.retrieval.strategies.hoprank.weights import shipped
from hopbench.retrieval.support.errors import InputError

PLACES = "a\n<!-- learned from -->x<!-- /learned from -->\n<!-- left out --><!-- /left out -->b"
FIGURE = {"setting": "left out", "dataset": "one", "triples": False, "embedder": "words:1@2", "questions": 7}
FIGURE |= {"recall_at_5": 0.5, "recall_interval": [0.25, 0.75], "all_gold_at_10": 1.0, "all_gold_interval": [1.0, 1.0]}
CARD = {
    "learned_from": {"two": {"questions": 9, "role": "tune", "digest": "0123456789abcdef01"}},
    "folds": 5,
    "figures": [{**FIGURE, "model": "trees"}, {**FIGURE, "model": "linear", "recall_at_5": 0.4}],
}


def test_both_models_stand_in_one_row() -> None:
    found = card_parts(CARD)

    assert "| two | 9 | tune | `0123456789abcdef` |" in found["learned from"]
    linear, trees = ("0.400 [0.250, 0.750]", "1.000 [1.000, 1.000]"), ("0.500 [0.250, 0.750]", "1.000 [1.000, 1.000]")
    assert f"| one | words | 7 | {' | '.join([*linear, *trees])} |" in found["left out"].splitlines()
    without = "These weights were learned without figures that are cross-validated.\n"
    assert without == found["cross-validated"]


def test_weights_without_figures_have_no_card() -> None:
    with pytest.raises(InputError, match=r"do not say what they were learned from .*KeyError.*train hoprank"):
        card_parts({**CARD, "figures": [{"setting": "left out"}]})


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(InputError, match=r"no place for what is cross-validated"):
        filled(PLACES, card_parts(CARD))
    names = ("cross-validated", "cross-validated apart")
    page = filled(PLACES + "".join(f"<!-- {name} --><!-- /{name} -->" for name in names), card_parts(CARD))
    assert page == filled(page, card_parts(CARD))
    assert page.startswith("a\n<!-- learned from -->\n| data set")


def test_the_page_has_the_card_of_the_shipped_weights() -> None:
    page = (ROOT / "docs" / "hoprank.md").read_text(encoding="utf-8")

    assert page == filled(page, card_parts(shipped().provenance))


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
    monkeypatch.setattr("sys.argv", ["hoprank", "held-out", str(page), str(whole), f"nothing at all={whole}"])
    hoprank.main()
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
    monkeypatch.setattr("sys.argv", ["hoprank", "held-out", "page.md", "FILE", *given.split()])

    with pytest.raises(SystemExit) as ended:
        run_command(hoprank.main)
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
