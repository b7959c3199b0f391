"""Metrics by hand: every expected value is derived beside it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from hopbench.eval.metrics import (
    Metric,
    all_metrics,
    get_metric,
    mlflow_name,
    normalise_answer,
    register,
    score,
    summarise,
)
from hopbench.eval.types import Benchmark, BenchmarkQuestion, PassageRanking
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.types import Passage

CORPUS = tuple(
    Passage(f"p{i}", title, text)
    for i, (title, text) in enumerate(
        [
            ("Ada Moreno", "Ada Moreno was born in Porto Vell."),
            ("Porto Vell", "Porto Vell is a town of the Kalden Republic."),
            ("The Long Tide", "The Long Tide is a film by Ada Moreno, made in 1910."),
            ("Kalden", "Kalden has ten towns."),
            ("Night Mail", "Night Mail is a film."),
            ("Porto Vell", "Another Porto Vell, a ship."),
            ("Harbour", "A harbour."),
            ("Lighthouse", "A lighthouse."),
        ]
    )
)
TWO = BenchmarkQuestion("two", "Where was she born?", "bridge", "Porto Vell", ("Vell",), ("p0", "p1"))
FOUR = BenchmarkQuestion("four", "Same country?", "comparison", "yes", (), ("p0", "p1", "p2", "p3"))
FREE = BenchmarkQuestion("free", "What of it?", "", None)
BENCHMARK = Benchmark("small", CORPUS, (TWO, FOUR, FREE))


def ranking(question_id: str, ids: str, context: str = "") -> PassageRanking:
    ranked = tuple(f"p{i}" for i in ids)
    texts = {p.id: f"{p.title}. {p.text}" for p in CORPUS}
    parts = (context,) if context else tuple(texts[p] for p in ranked[:5])
    return PassageRanking(question_id, ranked, (), ranked[:5], "\n\n".join(parts), context_parts=parts)


def row(question_id: str, ids: str, context: str = "") -> dict[str, float]:
    rows = score(BENCHMARK, {question_id: ranking(question_id, ids, context)})
    return rows.loc[question_id].drop("failure").to_dict()


def test_gold_at_ranks_one_and_three() -> None:
    got = row("two", "02145")
    expected = {
        "all_gold@2": 0.0,  # p1 is third
        "all_gold@5": 1.0,
        "recall@2": 0.5,  # 1 of 2
        "recall@5": 1.0,
        # gains 1/log2(1+1) + 1/log2(3+1) = 1.5; ideal 1/log2(2) + 1/log2(3) = 1.63093
        "nDCG@10": 1.5 / (1 + 1 / math.log2(3)),
        "MRR": 1.0,
        # titles in the context: Ada Moreno, The Long Tide, Porto Vell (twice), Night Mail = 4, of which 2 gold of 2
        "title_precision": 2 / 4,
        "title_recall": 1.0,
        "title_f1": 2 * 0.5 * 1 / (0.5 + 1),
    }
    assert {name: pytest.approx(value) for name, value in expected.items()} == {name: got[name] for name in expected}


def test_four_gold_passages() -> None:
    got = row("four", "70145623")
    # gold at ranks 2, 3, 7, 8
    assert got["recall@2"] == 1 / 4
    assert got["recall@5"] == 2 / 4
    assert got["all_gold@5"] == 0.0
    assert got["all_gold@10"] == 1.0
    assert got["MRR"] == 1 / 2
    ideal = sum(1 / math.log2(r + 1) for r in (1, 2, 3, 4))
    assert got["nDCG@10"] == pytest.approx(sum(1 / math.log2(r + 1) for r in (2, 3, 7, 8)) / ideal)


def test_mrr_reads_the_whole_ranking() -> None:
    corpus = tuple(Passage(f"d{i}", f"t{i}", "x") for i in range(40))
    benchmark = Benchmark("long", corpus, (BenchmarkQuestion("q", "?", gold=("d39",)),))
    rows = score(benchmark, {"q": PassageRanking("q", tuple(p.id for p in corpus))})
    assert rows.loc["q", "MRR"] == pytest.approx(1 / 40)


def test_the_ranking_order_decides_not_scores_or_ids() -> None:
    tied = PassageRanking("two", ("p7", "p6", "p1", "p0"), (1.0, 1.0, 1.0, 1.0))
    assert score(BENCHMARK, {"two": tied}).loc["two", "MRR"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S.A.!", "usa"),  # lower, punctuation out, article out
        ("  An  apple a day ", "apple day"),
        ("rock–a–bye", "rock– –bye"),  # an en dash is no ASCII punctuation, and the article stands between words
        ("Theatre", "theatre"),
        ("", ""),
    ],
)
def test_normalisation_is_the_official_scripts(text: str, expected: str) -> None:
    assert normalise_answer(text) == expected


def test_has_answer_wants_whole_words() -> None:
    assert row("two", "6", context="The Porto Vell.")["has_answer"] == 1.0
    assert row("two", "6", context="Vell")["has_answer"] == 1.0  # an alias
    assert row("two", "6", context="Portovell vellum")["has_answer"] == 0.0


def test_has_answer_at_k_reads_passages_whatever_the_budget() -> None:
    got = row("two", "3467021", context="nothing")
    # first passage that says Porto Vell is p0 at rank 5
    assert (got["has_answer"], got["has_answer@5"], got["has_answer@10"]) == (0.0, 1.0, 1.0)
    assert row("two", "346720")["has_answer@5"] == 0.0  # now at rank 6


def test_has_answer_at_equal_tokens_reads_the_block_and_then_passages_until_the_tokens_run_out() -> None:
    # Passages of 100 tokens ("t", "0", "." and 97 words); the answer is the last word of the third.
    corpus = tuple(Passage(f"d{i}", f"t{i}", " ".join(["x"] * 96 + ["well" if i == 2 else "x"])) for i in range(9))
    benchmark = Benchmark("even", corpus, (BenchmarkQuestion("q", "?", answer="well", gold=("d2",)),))
    ranked = tuple(passage.id for passage in corpus)

    def found(block: str) -> tuple[float, float]:
        scores = score(benchmark, {"q": PassageRanking("q", ranked, graph_context=block)}).loc["q"]
        return scores["has_answer@300t"], scores["has_answer@700t"]

    assert (1.0, 1.0) == found("")  # 3 · 100 = 300 tokens end with the answer
    assert (0.0, 1.0) == found("one")  # a token of the block pushes it out
    assert (1.0, 1.0) == found("well" + " x" * 299)
    assert (0.0, 0.0) == found("x" + " x" * 699)


def test_metrics_that_do_not_apply_are_nan() -> None:
    yes = row("four", "0123")
    assert all(math.isnan(yes[m]) for m in ("has_answer", "has_answer@5", "has_answer@10"))
    assert yes["all_gold@5"] == 1.0
    assert all(math.isnan(value) for value in row("free", "0123").values())


def test_an_alias_that_reads_no_is_only_dropped() -> None:
    question = BenchmarkQuestion("q", "?", "", "Porto Vell", ("no",), ("p0",))
    rows = score(Benchmark("b", CORPUS, (question,)), {"q": ranking("q", "0")})
    assert rows.loc["q", "has_answer"] == 1.0


def test_failures_and_missing_rankings_are_rows_with_reasons() -> None:
    rows = score(BENCHMARK, {"two": PassageRanking("two", failure="store went away")})
    assert list(rows.index) == ["two", "four", "free"]
    assert rows.loc["two", "failure"] == "store went away"
    assert "no ranking" in rows.loc["four", "failure"]
    assert rows.drop(columns="failure").isna().all(axis=None)


def test_an_answered_question_has_no_reason_and_an_empty_ranking_scores_zero() -> None:
    rows = score(BENCHMARK, {"two": PassageRanking("two")})
    assert rows.loc["two", "failure"] is None
    values = rows.loc["two"].drop("failure").astype(float)
    assert (values == 0).all()


def test_summary_of_one_answered_and_one_failed_question() -> None:
    rankings = {"two": ranking("two", "02145"), "four": PassageRanking("four", failure="timeout")}
    got = summarise(score(BENCHMARK, rankings), BENCHMARK)
    assert got["failures"] == 2  # `free` has no ranking either
    assert got["coverage"] == pytest.approx(1 / 3, abs=1e-6)
    # `free` has no gold: the mean is over two questions, of which the failed one counts 0
    assert (got["metrics"]["recall@2"], got["answered"]["recall@2"]) == (0.25, 0.5)
    # of the two with gold only `two` has an answer that text can contain
    assert (got["metrics"]["has_answer"], got["measured"]["has_answer"]) == (1.0, 1.0)
    assert got["measured"]["recall@2"] == 0.5
    # ceilings: all_gold@2 is 1 with two gold, 0 with four; recall@2 is 1 and 2/4
    assert (got["ceilings"]["all_gold@2"], got["ceilings"]["recall@2"]) == (0.5, 0.75)
    assert got["by_gold"]["4"]["ceiling"]["all_gold@2"] == 0.0
    assert got["by_gold"]["4"]["ceiling"]["recall@2"] == 0.5
    assert got["by_type"]["bridge"]["recall@2"] == 0.5
    assert (got["by_type"]["comparison"]["questions"], got["by_type"]["comparison"]["coverage"]) == (1, 0.0)
    assert list(got["by_type"]) == ["bridge", "comparison", "untyped"]
    assert "recall@2" not in got["by_type"]["untyped"]  # applies to no question there
    assert json.loads(json.dumps(got)) == got


def test_title_ceilings_follow_the_context_budget() -> None:
    rows = score(BENCHMARK, {})
    # one passage of budget: 1 of 2 titles, 1 of 4 → recall (.5 + .25)/2; F1 at precision 1: (2/3 + .4)/2
    got = summarise(rows, BENCHMARK, context_passages=1)["ceilings"]
    assert got["title_recall"] == 0.375
    assert got["title_f1"] == pytest.approx((2 / 3 + 0.4) / 2, abs=1e-6)


def test_joined_columns_of_registered_metrics_are_summarised() -> None:
    rows = score(BENCHMARK, {"two": ranking("two", "01")})
    rows["reach@1"] = [1.0, 0.0, np.nan]
    assert summarise(rows, BENCHMARK)["metrics"]["reach@1"] == 0.5


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        ({"five": ranking("five", "0")}, "answer no question of 'small'"),
        ({"two": ranking("four", "0")}, "says question_id 'four'"),
        ({"two": PassageRanking("two", ("p0", "p0"))}, "names passage 'p0' twice"),
        ({"two": PassageRanking("two", ("p0", "p99"))}, "'p99', which is not in the corpus"),
    ],
)
def test_rankings_that_cannot_be_scored_are_refused(rankings: dict[str, PassageRanking], message: str) -> None:
    with pytest.raises(InputError, match=message):
        score(BENCHMARK, rankings)


def test_summarise_refuses_rows_of_other_questions() -> None:
    with pytest.raises(InputError, match="one to one"):
        summarise(score(BENCHMARK, {}).iloc[:2], BENCHMARK)
    with pytest.raises(InputError, match="failure"):
        summarise(score(BENCHMARK, {}).drop(columns="failure"), BENCHMARK)


def test_the_registry_refuses_duplicates_and_suggests() -> None:
    with pytest.raises(InputError, match="registered already"):
        register(Metric("MRR", "again", "nobody", ("gold",)))
    with pytest.raises(InputError, match="registered already"):  # two names, one tracking name
        register(Metric("recall_at_5", "again", "nobody", ("gold",)))
    with pytest.raises(UnknownNameError, match="Did you mean 'recall@10'"):
        get_metric("recal@10")


def test_every_metric_describes_itself() -> None:
    for name, metric in all_metrics().items():
        assert name == metric.name
        assert metric.meaning
        assert "\n" not in metric.meaning
        assert metric.citation
        assert metric.needs
        assert "@" not in mlflow_name(name)


def test_tracking_names() -> None:
    assert mlflow_name("recall@5") == "recall_at_5"
    assert mlflow_name("all_gold@10") == "all_gold_at_10"
    assert mlflow_name("MRR") == "MRR"
