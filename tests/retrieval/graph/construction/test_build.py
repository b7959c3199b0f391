"""Building a graph: what it is named by, that it comes out the same, and that a killed build goes on."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from tests.support import build_to_kill
from tests.support.graphs import WORLD, WordEmbedder, plain, plan_of

from hopbench.retrieval.graph.construction import builder, similarity
from hopbench.retrieval.graph.construction.builder import build_graph
from hopbench.retrieval.graph.construction.plan import BuildSettings, GraphPlan
from hopbench.retrieval.graph.extract import rules
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores import contents, kglite_store
from hopbench.retrieval.graph.stores.contents import content, export, fingerprint, stored_tables
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.support.errors import InputError, ParameterError
from hopbench.retrieval.types import Passage, Triple

T = TypeVar("T")
TRIPLES = (
    Triple("p01", "Ed Wood", "directed by", "Tim Burton", 0.9),
    Triple("p02", "Tim Burton", "born in", "Burbank"),
)


def built(plan: GraphPlan, folder: Path) -> tuple[KgliteStore, Mapping[str, Any]]:
    store = KgliteStore(folder / "graphs", plan.namespace)
    return store, build_graph(plan, store, folder / "staging", plain)


CHANGED = {
    "top_k": plan_of(WORLD, similar_top_k=9),
    "floor": plan_of(WORLD, similar_floor=0.31),
    "max_tokens": plan_of(WORLD, max_tokens=1199),
    "similar": plan_of(WORLD, similar="approximate"),
    "extractor": plan_of(WORLD, extractor="triples"),
    "language": plan_of(WORLD, language="de"),
    "recogniser": plan_of(WORLD, extractor="spacy", recogniser="model@1/spacy@3"),
    "model's version": plan_of(WORLD, extractor="spacy", recogniser="model@2/spacy@3"),
    "embedder": plan_of(WORLD, embedder=WordEmbedder("words-2")),
    "text": plan_of([replace(WORLD[0], text=WORLD[0].text + " "), *WORLD[1:]]),
    "title": plan_of([replace(WORLD[0], title="Ed Wood"), *WORLD[1:]]),
    "id": plan_of([replace(WORLD[0], id="p00"), *WORLD[1:]]),
    "passage less": plan_of(WORLD[1:]),
    "triples": plan_of(WORLD, triples=TRIPLES),
    "triple less": plan_of(WORLD, triples=TRIPLES[:1]),
    "confidence": plan_of(WORLD, triples=(replace(TRIPLES[0], confidence=0.8), TRIPLES[1])),
}


def test_every_input_changes_the_build_key() -> None:
    keys = {name: plan.build_key for name, plan in CHANGED.items()} | {"plain": plan_of(WORLD).build_key}

    assert len(keys) == len(set(keys.values())), keys


def test_no_setting_is_left_out_of_the_build_key() -> None:
    known = {"extractor", "recogniser", "similar_top_k", "similar_floor", "max_tokens", "similar", "language"}

    assert known == set(BuildSettings.__dataclass_fields__), "it needs a line in CHANGED above, then its name here"


def test_the_build_key_is_the_same_for_any_order_and_name() -> None:
    plan = plan_of(WORLD, triples=TRIPLES)

    assert plan.build_key == plan_of(WORLD[::-1], triples=TRIPLES[::-1], name="other").build_key


def test_a_namespace_is_a_safe_file_name() -> None:
    plan = plan_of(WORLD, name="../a b/ü")

    assert f"..-a-b-ü-{plan.build_key[:12]}" == plan.namespace


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"extractor": "magic"}, "extractor 'magic' is unknown; known: rules, spacy, triples"),
        ({"extractor": "spacy"}, "extractor 'spacy' with recogniser ''"),
        ({"recogniser": "model@1/spacy@3"}, "extractor 'rules' with recogniser 'model@1/spacy@3'"),
        ({"similar_top_k": 0}, r"similar_top_k 0 is outside 1\.\.1000"),
        ({"similar_floor": 1.5}, r"similar_floor 1\.5 is outside 0\.\.1"),
        ({"similar_floor": float("nan")}, "similar_floor nan is outside"),
        ({"max_tokens": 0}, "max_tokens 0 is"),
        ({"similar": "fast"}, "similar 'fast' is unknown; known: exact, approximate"),
    ],
)
def test_settings_outside_their_bounds_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        BuildSettings(**settings)


def test_an_empty_corpus_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no passages"):
        built(plan_of([]), tmp_path)

    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("triples", [(), TRIPLES])
def test_the_order_of_the_corpus_changes_nothing(tmp_path: Path, triples: tuple[Triple, ...]) -> None:
    _, forward = built(plan_of(WORLD, triples=triples), tmp_path / "a")
    _, backward = built(plan_of(WORLD[::-1], triples=triples[::-1]), tmp_path / "b")

    assert forward["fingerprint"] == backward["fingerprint"]


@pytest.mark.parametrize("triples", [(), TRIPLES])
def test_the_store_gives_back_what_was_written(tmp_path: Path, triples: tuple[Triple, ...]) -> None:
    store, record = built(plan_of(WORLD, triples=triples), tmp_path)
    store.close()
    tables = export(store)

    assert record["fingerprint"] == fingerprint(tables)
    assert (record["nodes"], record["edges"]) == tables.counts()
    assert record == store.record()


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_the_record_says_how_the_nearest_chunks_were_found(method: str, tmp_path: Path) -> None:
    store, record = built(plan_of(WORLD, similar=method), tmp_path)

    assert (method, 1.0) == (record["similar"]["method"], record["similar"]["recall"])
    assert record["similar"] == (store.record() or {})["similar"]


def test_a_graph_in_many_parts_is_the_same_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passages = [
        *WORLD,
        Passage("long", "Ohio River", "The river runs. " * 60),
        Passage("é", "Éa \ue000", "\U0001f600 met Éa."),
    ]
    plan = plan_of(passages, max_tokens=40)
    _, whole = built(plan, tmp_path / "whole")
    for module, name in (
        (builder, "CHUNKS_PER_BLOCK"),
        (rules, "ROWS_PER_PART"),
        (builder, "CHUNKS_PER_PART"),
        (similarity, "TAG_BATCH"),
    ):
        monkeypatch.setattr(module, name, 2)
    for module, name in ((contents, "LINES_PER_BATCH"), (kglite_store, "PART_ROWS")):
        monkeypatch.setattr(module, name, 3)

    store, record = built(plan, tmp_path / "parts")

    assert (whole["fingerprint"], whole["nodes"], whole["edges"]) == (
        record["fingerprint"],
        record["nodes"],
        record["edges"],
    )
    held = content(stored_tables(store))
    assert (record["fingerprint"], record["nodes"], record["edges"]) == (
        held["fingerprint"],
        held["nodes"],
        held["edges"],
    )
    assert whole["fingerprint"] == fingerprint(export(store))


def test_building_again_is_one_look_at_the_record(tmp_path: Path) -> None:
    plan = plan_of(WORLD)
    store, record = built(plan, tmp_path)
    stages: list[str] = []

    def noted(name: str, fn: Callable[[], T], /) -> T:
        stages.append(name)
        return fn()

    assert record == build_graph(plan, store, tmp_path / "staging", noted)
    assert [] == stages


def test_a_build_leaves_no_staging_behind(tmp_path: Path) -> None:
    built(plan_of(WORLD), tmp_path)

    assert [] == list((tmp_path / "staging").glob("*"))


def test_staging_left_by_a_kill_after_the_last_write_goes_with_the_next_build(tmp_path: Path) -> None:
    plan = plan_of(WORLD)
    built(plan, tmp_path)
    left = tmp_path / "staging" / plan.build_key / "extract"
    left.mkdir(parents=True)

    built(plan, tmp_path)

    assert not left.exists()


@pytest.mark.parametrize("stage", ["embed", "extract", "similar", "write"])
def test_a_build_that_fails_in_a_stage_goes_on_after_it(tmp_path: Path, stage: str) -> None:
    plan = plan_of(WORLD)
    store = KgliteStore(tmp_path / "graphs", plan.namespace)
    _, whole = built(plan, tmp_path / "whole")

    def failing(name: str, fn: Callable[[], T], /) -> T:
        result = fn() if name != "write" else None
        if name == stage:
            raise KeyboardInterrupt
        return result  # type: ignore[return-value]

    with pytest.raises(KeyboardInterrupt):
        build_graph(plan, store, tmp_path / "staging", failing)
    assert store.record() is None

    record = build_graph(plan, store, tmp_path / "staging", plain)

    assert (whole["fingerprint"], whole["nodes"], whole["edges"]) == (
        record["fingerprint"],
        record["nodes"],
        record["edges"],
    )


def test_finished_stages_are_read_back_as_they_were(tmp_path: Path) -> None:
    plan = plan_of([*WORLD, Passage("q", 'Ünï "code" \\ (tab\t)', "Ünï met Tim Burton.\nÜnï\u2028left.")])
    _, whole = built(plan, tmp_path / "whole")
    store = KgliteStore(tmp_path / "graphs", plan.namespace)

    def before_write(name: str, fn: Callable[[], T], /) -> T:
        if name == "write":
            raise KeyboardInterrupt
        return fn()

    with pytest.raises(KeyboardInterrupt):
        build_graph(plan, store, tmp_path / "staging", before_write)
    staged = sorted(path.name for path in (tmp_path / "staging" / plan.build_key).iterdir())
    record = build_graph(plan, store, tmp_path / "staging", plain)

    assert ["extract", "near", "similar"] == [name.partition("-")[0] for name in staged]
    assert whole["fingerprint"] == record["fingerprint"]


def test_every_edge_has_at_most_eight_tags(tmp_path: Path) -> None:
    store, _ = built(plan_of(WORLD), tmp_path)
    edges = export(store).edges

    least = {MENTIONED_IN: 1, RELATED_TO: 1, SIMILAR_TO: 0}  # two similar chunks may share no word that says something
    for kind, low in least.items():
        assert len(edges[kind]), kind
        assert all(low <= len(tags) <= 8 for tags in edges[kind].tags), kind


@pytest.fixture(scope="module")
def forkserver() -> ForkServerContext:
    """Processes that have everything imported already, so that a kill hits the build and not its imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.build_to_kill"])
    return context


def test_a_build_killed_at_any_moment_goes_on_to_the_same_graph(tmp_path: Path, forkserver: ForkServerContext) -> None:
    count = 300

    def start(folder: Path) -> tuple[Any, Path]:
        folder.mkdir(exist_ok=True)
        ready, done = forkserver.Event(), folder / "done"
        process = forkserver.Process(target=build_to_kill.build, args=(folder, count, ready, done))
        process.start()
        assert ready.wait(60)
        return process, done

    begun = time.perf_counter()
    process, done = start(tmp_path / "whole")
    begun = time.perf_counter()
    process.join(60)
    seconds = time.perf_counter() - begun
    expected = done.read_text()

    killed = 0
    for share in sorted(np.random.default_rng(0).uniform(0.02, 0.95, 6)):  # early ones first: what was kept is quick
        process, done = start(tmp_path / "killed")
        process.join(share * seconds)
        process.kill()
        process.join(60)
        killed += process.exitcode == -9
        if done.exists():
            break  # what earlier attempts kept made this one quick
    process, done = start(tmp_path / "killed")
    process.join(60)

    assert killed >= 2
    assert expected == done.read_text()
    assert 1 == len(list((tmp_path / "killed" / "graphs").iterdir())), "a half-written file was left beside the graph"
    assert [] == list((tmp_path / "killed" / "staging").iterdir())


def test_two_processes_may_build_the_same_graph(tmp_path: Path, forkserver: ForkServerContext) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    started = []
    for name in ("one", "two"):
        ready, done = forkserver.Event(), tmp_path / name
        process = forkserver.Process(target=build_to_kill.build, args=(folder, 150, ready, done))
        process.start()
        started.append((process, ready, done))
    for process, ready, _ in started:
        assert ready.wait(60)
        process.join(120)

    assert [0, 0] == [process.exitcode for process, _, _ in started]
    assert 1 == len({done.read_text() for _, _, done in started})
    assert [] == list((folder / "staging").iterdir())
