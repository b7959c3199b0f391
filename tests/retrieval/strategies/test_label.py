"""Labels: their parts, how they are written, and which names need no strategy to be loaded."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.strategies import label as module
from hopbench.retrieval.strategies.label import BUILT_IN, HOP_FREE, Label, split_labels, tuned_names
from hopbench.retrieval.strategies.registry import changed_label, registry
from hopbench.retrieval.support.errors import InputError

NAMES = st.text("abz_09 -", min_size=1)
VALUES = st.text("az09.|-", min_size=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bm25", Label("bm25")),
        ("hybrid:tuned", Label("hybrid", "tuned")),
        ("pagerank[restart=0.3, steps = 4]", Label("pagerank", None, {"restart": "0.3", "steps": "4"})),
        ("hybrid:tuned[fusion=rrf]", Label("hybrid", "tuned", {"fusion": "rrf"})),
        ("mine:a:b", Label("mine", "a:b")),
        ("bm25[]", Label("bm25")),
        ("bm25[a=b=c]", Label("bm25", None, {"a": "b=c"})),
    ],
)
def test_a_label_has_a_name_a_preset_and_changes(text: str, expected: Label) -> None:
    assert expected == Label.parse(text)


@pytest.mark.parametrize("text", ["", "bm25[a=1", "bm25]", ":tuned", "bm25[a=1]:tuned", "bm25[a=[1]]"])
def test_another_form_is_refused_or_all_name(text: str) -> None:
    with pytest.raises(InputError, match=r"is no strategy label: write NAME"):
        Label.parse(text)
    assert Label(text) == Label.of_any(text)


@given(
    name=NAMES,
    preset=st.none() | NAMES,
    changes=st.dictionaries(st.text("abc_", min_size=1), VALUES, max_size=3),
)
def test_a_label_reads_as_it_is_written(name: str, preset: str | None, changes: dict[str, str]) -> None:
    label = Label(name, preset, changes)

    assert label == Label.parse(str(label))
    assert label.unchanged == str(Label(name, preset))


def test_of_two_changes_of_one_parameter_the_later_one_holds() -> None:
    label = changed_label("pagerank[steps=3,restart=.1]", {"restart": "0.3", "seed_chunks": "5"})

    assert "pagerank[steps=3,restart=0.3,seed_chunks=5]" == label


def test_what_a_label_says_of_its_numbers() -> None:
    assert [True, True, False] == [Label.parse(text).is_hop_free for text in ("bm25", "hybrid[fusion=rrf]", "kg2rag")]
    assert [True, True, False, False] == [
        Label.parse(text).is_tuned for text in ("kg2rag:tuned", "pagerank[steps=3]", "kg2rag", "pagerank:documented")
    ]


def test_a_comma_in_brackets_belongs_to_its_label() -> None:
    assert ["a", "b[x=1,y=2]", "c"] == list(split_labels(" a, b[x=1,y=2],,c "))


def test_the_names_are_those_of_the_registered_strategies() -> None:
    assert list(BUILT_IN) == registry().names()[: len(BUILT_IN)]
    assert set(HOP_FREE) < set(BUILT_IN)
    assert "kg2rag" in tuned_names()
    assert "pagerank" not in tuned_names()


def test_names_load_no_strategy() -> None:
    """A shell completes labels while one types: scipy alone takes longer than all else together."""
    code = "import sys; import hopbench.retrieval.strategies.label; print({'scipy', 'numpy'}.isdisjoint(sys.modules))"

    assert "True" == subprocess.check_output([sys.executable, "-c", code], text=True).strip()


def test_the_ranker_loads_no_pandas() -> None:
    """Half of the time of its import, for what only building a graph needs."""
    code = "import sys, hopbench.retrieval.strategies.hoprank; print('pandas' in sys.modules)"

    assert "False" == subprocess.check_output([sys.executable, "-c", code], text=True).strip()


def test_the_examples_are_true() -> None:
    outcome = doctest.testmod(module)

    assert 0 == outcome.failed < outcome.attempted
