"""Plug-ins of each kind: their code is part of identities, their faults name them and stop nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import plugins
from tests.support.graphs import ASKED, WORLD, built_index, plan_of
from tests.support.plugins import forget, install
from tests.support.sweeps import GOLD, write_sweep
from tests.test_plugin_package import entry_points, package

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.metrics import all_metrics, catalogue, get_metric, metric_code, score
from hopbench.eval.runs.evaluate import Plan
from hopbench.eval.sweep.plan import read_sweep
from hopbench.eval.trials.trial import batches, run_trial
from hopbench.eval.types import Benchmark, BenchmarkQuestion, PassageRanking
from hopbench.flows.cli._doctor_checks import plugin_checks
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.context import Budget
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.strategies.registry import make, preset, remade, resolve
from hopbench.retrieval.support.errors import InputError, UnknownNameError

FILES = {name: text for name, text in package().items() if "/" in name}
POINTS = entry_points(package())
BENCHMARK = Benchmark("world", WORLD, tuple(BenchmarkQuestion(q.id, q.text, gold=GOLD.get(q.id, ())) for q in ASKED))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A site folder with the package of docs/plugins.md."""
    site = plugins.use(tmp_path / "site", monkeypatch)
    put(site)
    yield site
    monkeypatch.undo()
    forget()


def put(site: Path, **changed: str) -> None:
    """Install it; a keyword replaces the file of that module."""
    install(site, FILES | {f"hopbench_mine/{name}.py": text for name, text in changed.items()}, entry=POINTS)


def key_of(tmp_path: Path, label: str) -> str:
    index = built_index(plan_of(WORLD), tmp_path / "world")
    return Plan(BENCHMARK, index, {"fingerprint": "f"}, resolve(label)).key_of(label)  # type: ignore[typeddict-item]


@pytest.mark.parametrize("module", ["reranker", "metrics"])
def test_the_code_that_reranks_and_scores_is_part_of_a_trial(site: Path, tmp_path: Path, module: str) -> None:
    before = key_of(tmp_path, "bm25+overlap")
    forget()
    assert before == key_of(tmp_path, "bm25+overlap")
    put(site, **{module: FILES[f"hopbench_mine/{module}.py"] + "# touched\n"})
    assert before != key_of(tmp_path, "bm25+overlap")


def test_the_code_that_embeds_and_reads_is_part_of_a_graph(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path / "home"))

    def keys() -> list[str]:
        chosen: list[dict[str, str]] = [{"embedder": "trigrams"}, {"extractor": "capitals"}, {}]
        options = [GraphOptions(dataset="hopworld", **one) for one in chosen]
        return [one.graph_plan(BENCHMARK, Home.resolve()).build_key for one in options]

    before = keys()
    put(site, embedder=FILES["hopbench_mine/embedder.py"] + "# touched\n")
    after = keys()
    assert [True, True, False] == [one != other for one, other in zip(before, after, strict=True)]


def test_a_label_with_a_reranker_is_made_again_from_its_parameters(site: Path) -> None:
    ((label, strategy),) = resolve("pagerank[restart=0.2]+overlap[depth=7]").items()
    assert ("pagerank[restart=0.2]+overlap[depth=7]", "pagerank+overlap") == (label, strategy.name)
    assert strategy == remade("pagerank+overlap", json.loads(json.dumps(strategy.spec())))
    with pytest.raises(UnknownNameError, match=r"unknown reranker 'overlp'\. Did you mean 'overlap'"):
        make("bm25+overlp")
    with pytest.raises(UnknownNameError, match="unknown parameter of overlap 'dept'"):
        make("bm25+overlap[dept=7]")
    with pytest.raises(InputError, match=r"overlap.depth = 200 is not allowed: it takes 1..100"):
        make("bm25+overlap[depth=200]")


def test_a_reranker_orders_what_it_sees_and_leaves_the_rest(site: Path, tmp_path: Path) -> None:
    parts = batches(built_index(plan_of(WORLD), tmp_path / "world"), ASKED)
    plain, again = (run_trial(label, make(label), parts, Budget()) for label in ("bm25", "bm25+overlap[depth=4]"))
    for question in ASKED:
        before, after = plain.rankings[question.id].ranked_ids, again.rankings[question.id].ranked_ids
        assert sorted(before[:4]) == sorted(after[:4])
        assert before[4:] == after[4:]
        words = {word for word in question.text.casefold().split() if len(word) >= 4}
        shared = [len(words & set(f"{p.title}. {p.text}".casefold().split())) for p in map(passage, after[:4])]
        assert shared == sorted(shared, reverse=True)
        scores = again.rankings[question.id].scores
        assert list(scores) == sorted(scores, reverse=True)


def passage(name: str) -> object:
    return next(one for one in WORLD if one.id == name)


def test_a_reranker_s_fault_is_the_failure_of_its_questions(site: Path, tmp_path: Path) -> None:
    put(site, reranker=FILES["hopbench_mine/reranker.py"].replace("return scores", "return scores[1:]"))
    parts = batches(built_index(plan_of(WORLD), tmp_path / "world"), ASKED)
    outcome = run_trial("bm25+overlap", make("bm25+overlap"), parts, Budget())
    assert len(ASKED) - 1 == outcome.failures  # BM25 finds nothing for "Zyzzyva?", so nothing is reranked
    assert "the reranker 'overlap' returned scores of the shape" in str(outcome.rankings["q1"].failure)


def test_a_sweep_refuses_a_reranker(site: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a sweep varies one strategy: leave out \+overlap"):
        read_sweep(write_sweep(tmp_path, strategy="pagerank+overlap"), {})


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_cut_off_is_measured_when_it_is_asked_for(site: Path, k: int) -> None:
    rankings = {q.id: PassageRanking(q.id, tuple(p.id for p in WORLD)) for q in ASKED}
    rows = score(BENCHMARK, rankings, also=(f"recall@{k}", f"success@{k}"))
    for question, name in ((q, f"{metric}@{k}") for q in BENCHMARK.questions for metric in ("recall", "success")):
        top = {p.id for p in WORLD[:k]} & set(question.gold)
        expected = len(top) / len(question.gold) if name.startswith("recall") else bool(top)
        assert expected == rows.loc[question.id, name], name
    assert f"recall@{k}" in rows


@pytest.mark.parametrize("name", ["recall@0", "success@101"])
def test_a_cut_off_out_of_range_is_refused(site: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"the cut-off is outside 1\.\.100"):
        get_metric(name)


def test_a_metric_that_fails_is_left_out_and_stops_no_other(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(site, metrics=FILES["hopbench_mine/metrics.py"].replace("return np.minimum", "return 1 / 0, np.minimum"))
    rankings = {q.id: PassageRanking(q.id, tuple(p.id for p in WORLD)) for q in ASKED}
    rows = score(BENCHMARK, rankings)
    assert (False, True) == ("first_length" in rows, "success@5" in rows)
    told = capsys.readouterr().err
    assert "metric 'first_length' of the plug-in hopbench-mine 1.0 failed with ZeroDivisionError" in told


def test_metrics_whose_names_are_taken_are_refused_whole(site: Path) -> None:
    put(site, metrics=FILES["hopbench_mine/metrics.py"].replace('"first_length"', '"MRR"'))
    assert "success@5" not in all_metrics()
    assert "metric 'MRR' is registered already" in catalogue().registry.broken["mine"]
    assert () == metric_code()


@pytest.mark.parametrize(
    ("module", "old", "new", "reason"),
    [
        ("embedder", "return vectors", "return vectors[:, 1:]", r"embedder 'trigrams' returned the shape \(1, 255\)"),
        ("embedder", "self.dimension = int(model)", "", "embedder 'trigrams' of the plug-in .* has no dimension"),
        ("embedder", "int(model)", "int('x')", "cannot be made: ValueError"),
        ("embedder", "import numpy", "import no_such_thing\nimport numpy", "cannot be used: ModuleNotFoundError"),
    ],
)
def test_an_embedder_s_fault_names_it(site: Path, module: str, old: str, new: str, reason: str) -> None:
    put(site, **{module: FILES[f"hopbench_mine/{module}.py"].replace(old, new)})
    with pytest.raises(InputError, match=reason):
        get_embedder("trigrams").embed(["a question"])
    assert (1, 256) == get_embedder("wordllama").embed(["a question"]).shape


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("chunk.passage_id, name)", '"nowhere", name)', "names the passage 'nowhere', which the corpus lacks"),
        ("confidence=0.5", "confidence=5", "states the confidence 5, outside 0..1"),
        ("yield Mention(chunk.passage_id, name)", "yield name", "returned str: it returns Mention and Triple objects"),
        ("for chunk in chunks:", "for chunk in chunks.nothing:", "failed with AttributeError"),
    ],
)
def test_an_extractor_s_fault_names_it(site: Path, tmp_path: Path, old: str, new: str, reason: str) -> None:
    put(site, extractor=FILES["hopbench_mine/extractor.py"].replace(old, new))
    with pytest.raises(InputError, match=f"extractor 'capitals' {reason}"):
        built_index(plan_of(WORLD, extractor="capitals", recogniser="x"), tmp_path / "world")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("asked = []", "asked = [][0]", "the loader 'faq' failed with IndexError"),
        ("return corpus.passages(source), ", 'return ["x"], ', "the loader 'faq' returned str where Passage belongs"),
        ("<= record.keys(), read", "<= record.none(), read", "nor one of the loaders installed"),
    ],
)
def test_a_loader_s_fault_names_it(site: Path, tmp_path: Path, old: str, new: str, reason: str) -> None:
    put(site, loader=FILES["hopbench_mine/loader.py"].replace(old, new))
    file = tmp_path / "faq.jsonl"
    file.write_text(json.dumps({"page": "A", "text": "B", "asked": ["C?"]}) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=reason):
        load_benchmark(file)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("parameters: {bonus: 1.0}\n", "lacks parameters or provenance"),
        ("parameters: {bonus: 1.0}\nprovenance: {trials: 3}\n", "does not say on which data sets it was tuned"),
        ("parameters: {bonos: 1.0}\nprovenance: {tuned_on: {a: {}}}\n", "unknown parameter of titles 'bonos'"),
    ],
)
def test_a_preset_that_does_not_say_its_origin_is_refused(site: Path, text: str, reason: str) -> None:
    found = preset("titles")
    assert found is not None
    assert {"bonus": 0.5} == dict(found.parameters)
    assert "titles:tuned" in resolve("all:tuned")
    install(site, FILES | {"hopbench_mine/presets/titles.yaml": text}, entry=POINTS)
    with pytest.raises(InputError, match=reason):
        resolve("titles")
    assert ["titles"] == [
        one.part.removeprefix("plug-in ")
        for one in plugin_checks()
        if "was tuned" in one.finding or "lacks" in one.finding or "unknown" in one.finding
    ]
