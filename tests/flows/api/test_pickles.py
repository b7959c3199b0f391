"""What programs get, answers and errors, can be sent to another process."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.support.places import ROOT

import hopbench
from hopbench.retrieval.strategies.registry import registry
from hopbench.retrieval.support.errors import HopBenchError

QUESTION = "Which river flows past the birthplace of Johnny Depp?"
BASES = r"^class \w+\([\w, ]*(Error|Exception|Reached|Cache)\b"
GIVEN: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "UnknownNameError": (("strategy", "vecto", ["vector", "bm25"]), {"also": ["hybrid"]}),
    "MissingExtraError": (("the judge", "judge"), {}),
    "LLMError": (("refused", "no such model"), {"retry_after": 1.5, "unreachable": True}),
    "UnfitError": (([],), {}),
    "YamlError": (("sweep.yaml", "a tab"), {"line": 3}),
}


def modules_with_errors() -> Iterator[str]:
    for part in ("retrieval", "eval", "flows"):
        for file in sorted((ROOT / part).rglob("*.py")):
            if re.search(BASES, file.read_text(encoding="utf-8"), re.MULTILINE):
                yield ".".join(("hopbench", *file.relative_to(ROOT).with_suffix("").parts))


def kinds(base: type[HopBenchError]) -> Iterator[type[HopBenchError]]:
    yield base
    for kind in base.__subclasses__():
        yield from kinds(kind)


def ours() -> list[type[HopBenchError]]:
    for name in modules_with_errors():
        import_module(name)
    found = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in kinds(HopBenchError)}
    return [kind for name, kind in sorted(found.items()) if name.startswith("hopbench.")]


@pytest.mark.parametrize("kind", ours(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_is_the_same_elsewhere(kind: type[HopBenchError], protocol: int) -> None:
    own = kind.__init__ is not HopBenchError.__init__ and "__init__" in vars(kind)
    assert own == (kind.__name__ in GIVEN), f"{kind.__name__}{inspect.signature(kind)}: say what it is made of"
    arguments, named = GIVEN.get(kind.__name__, (("limit must be 1..10, not 11",), {}))
    error = kind(*arguments, **named)
    error.add_note("seen at night")
    again = pickle.loads(pickle.dumps(error, protocol))
    assert (type(error), error.args, str(error), vars(error)) == (type(again), again.args, str(again), vars(again))


@pytest.mark.parametrize("label", registry().names())
def test_what_a_label_retrieves_is_the_same_elsewhere(corpus: hopbench.Corpus, label: str) -> None:
    found = corpus.retrieve(QUESTION, label)
    again = pickle.loads(pickle.dumps(found))
    assert found == again
    assert found.paths() == again.paths()
    assert found.to_frame().equals(again.to_frame())
    assert found._repr_html_() == again._repr_html_()


@pytest.mark.parametrize("label", ["pagerank", "bm25", "hoprank"])
@pytest.mark.parametrize("question", ["q2", QUESTION + " And why?"])
def test_an_explanation_is_the_same_elsewhere(corpus: hopbench.Corpus, label: str, question: str) -> None:
    found = corpus.explain(question, label)
    again = pickle.loads(pickle.dumps(found))
    assert found == again
    for table in ("entities", "hits", "gold"):
        assert getattr(found, table)().equals(getattr(again, table)())
    assert (found.svg(), found.details, repr(found)) == (again.svg(), again.details, repr(again))
    assert found._repr_html_() == again._repr_html_()


def test_a_path_names_its_nodes_elsewhere(corpus: hopbench.Corpus, tmp_path: Path) -> None:
    file = tmp_path / "found"
    file.write_bytes(pickle.dumps([corpus.retrieve(QUESTION, label) for label in ("pagerank", "neighborhood")]))
    paths = [path for found in pickle.loads(file.read_bytes()) for path in found.paths()]
    assert any("Owensboro" in path for path in paths)
