"""Names of runs in MLflow: at most 40 characters, and different for different trials."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopbench.flows.run.payloads import parent_name
from hopbench.flows.tracking.payload import MAX_RUN_NAME, run_name, trial_name

ID = "4f2a1c9d" * 8


def test_a_trials_name_has_what_varies() -> None:
    varied = {"restart": 0.1, "seed_chunks": 3}
    assert (
        trial_name("pagerank[restart=0.1,seed_chunks=3]", varied, (), ID) == "pagerank restart=.1 seed_chunks=3 4f2a1c"
    )
    longer = {"question_weight": 0.5, "similar_weight": 0.25, "build.top_k": 10}
    assert trial_name("pagerank[question_weight=0.5]", longer, (), ID) == "pagerank qw=.5 sw=.25 tk=10 4f2a1c"


def test_an_ablation_names_what_it_lacks() -> None:
    assert trial_name("pagerank", {}, ("SIMILAR_TO",), ID) == "pagerank -SIMILAR_TO 4f2a1c"


@given(
    st.text(min_size=1, max_size=60),
    st.dictionaries(st.text(min_size=1, max_size=30), st.one_of(st.floats(), st.booleans(), st.text(max_size=30))),
    st.sets(st.text("0123456789abcdef", min_size=6, max_size=6), min_size=2, max_size=2),
)
def test_trials_are_told_apart_in_forty_characters(label: str, varied: dict[str, object], ids: set[str]) -> None:
    names = {trial_name(label, varied, (), one) for one in ids}
    assert len(names) == 2
    assert max(map(len, names)) <= MAX_RUN_NAME


def test_long_labels_that_begin_alike_have_different_names() -> None:
    start = "graph_expansion[min_score=0.3,max_expansion_depth="
    first, second = run_name(f"{start}2]"), run_name(f"{start}3]")
    assert first != second
    assert {40} == {len(first), len(second)}
    assert run_name("pagerank:tuned") == "pagerank:tuned"


def test_nights_are_told_apart_by_their_start() -> None:
    assert parent_name("nightly", "hopworld", 1_767_319_200.0) == "nightly hopworld 2026-01-02 02:00"
    assert len(parent_name("nightly", "a" * 60, 1_767_319_200.0)) == MAX_RUN_NAME
