"""Sweep files: what they expand to, and what is refused before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.support.places import ROOT
from tests.support.sweeps import write_benchmark, write_sweep

from hopbench.eval.sweep.file import schema
from hopbench.eval.sweep.plan import read_sweep
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.strategies.registry import make, registry
from hopbench.retrieval.support.errors import InputError

SHIPPED = sorted((ROOT / "flows" / "sweeps").glob("*.yaml"))
GRAPH_STRATEGIES = [name for name in registry().names() if registry().get(name).edges]


def labels(file: Path) -> list[str]:
    return [candidate.label for candidate in read_sweep(file).candidates]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    write_benchmark(tmp_path / "tiny")
    return tmp_path


def test_a_grid_is_every_combination_in_the_order_of_the_file(tiny: Path) -> None:
    file = write_sweep(tiny, base={"steps": 4})
    assert [
        "pagerank[steps=4,restart=0.15,seed_chunks=1]",
        "pagerank[steps=4,restart=0.15,seed_chunks=3]",
        "pagerank[steps=4,restart=0.5,seed_chunks=1]",
        "pagerank[steps=4,restart=0.5,seed_chunks=3]",
    ] == labels(file)
    assert read_sweep(file).trials == 4
    assert read_sweep(file).datasets == (str(tiny / "tiny"),)


def test_a_label_makes_the_same_strategy_in_a_run_as_in_the_sweep(tiny: Path) -> None:
    for start in ("pagerank", "graph_expansion", "pagerank:tuned", "pagerank[steps=4,restart=0.2]"):
        grid = {"restart": [0.4]} if "pagerank" in start else {"initial_k": [7], "min_score": [0.1]}
        (candidate,) = read_sweep(write_sweep(tiny, strategy=start, grid=grid)).candidates
        assert candidate.label.startswith(f"{start.partition('[')[0]}[")
        assert make(candidate.label) == candidate.strategy


def test_whole_numbers_for_real_parameters_and_repeated_values_are_one_trial(tiny: Path) -> None:
    assert 1 == read_sweep(write_sweep(tiny, grid={"question_weight": [1, 1.0]})).trials


def test_ablations_follow_each_combination_and_those_without_effect_are_left_out(tiny: Path) -> None:
    # Edges without weight cannot be removed; the last one without RELATED_TO would be the first again.
    file = write_sweep(tiny, base={"similar_weight": 0}, grid={"related_weight": [0.0, 0.5]}, ablations=True)
    first, second = (f"pagerank[similar_weight=0,related_weight={weight}]" for weight in (0.0, 0.5))
    candidates = read_sweep(file).candidates
    less = [f"{label[:-1]},mention_weight=0.0]" for label in (first, second)]
    assert [(first, ()), (less[0], (MENTIONED_IN,)), (second, ()), (less[1], (MENTIONED_IN,))] == [
        (candidate.label, candidate.without) for candidate in candidates
    ]
    assert [candidate.strategy for candidate in candidates] == [make(candidate.label) for candidate in candidates]
    assert [0.0, 0.5] == [candidate.strategy.spec()["related_weight"] for candidate in candidates if candidate.of]
    assert [candidates[0].strategy, candidates[2].strategy] == [c.of for c in candidates if c.of]


def test_ablations_of_the_same_effect_are_one_trial(tiny: Path) -> None:
    file = write_sweep(tiny, strategy=[{"strategy": "graph_expansion"}], grid=None, ablations=True)
    file.write_text(file.read_text().replace("grid: null\n", ""))
    assert [(), (SIMILAR_TO,), (RELATED_TO, MENTIONED_IN)] == [one.without for one in read_sweep(file).candidates]


@pytest.mark.parametrize("name", GRAPH_STRATEGIES)
def test_every_graph_strategy_says_how_to_remove_each_of_its_edge_types(name: str) -> None:
    kind = registry().get(name)
    assert set(kind.edges) == set(kind.ablations)
    for changes in kind.ablations.values():
        kind(**changes)


def test_environment_variables_in_paths_have_defaults(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_sweep(tiny, datasets=["${SWEEP_TEST_FOLDER:-.}/tiny"])
    assert read_sweep(file).datasets == (str(tiny / "tiny"),)
    monkeypatch.setenv("SWEEP_TEST_FOLDER", str(tiny / "other"))
    write_benchmark(tiny / "other" / "tiny")
    assert read_sweep(file).datasets == (str(tiny / "other" / "tiny"),)
    monkeypatch.delenv("SWEEP_TEST_FOLDER")
    with pytest.raises(InputError, match=r"sweep\.yaml: .*SWEEP_TEST_FOLDER is not set"):
        read_sweep(write_sweep(tiny, datasets=["${SWEEP_TEST_FOLDER}/tiny"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"datasets": []}, "datasets: List should have at least 1 item"),
        ({"grid": {"restart": []}}, "grid: no values for restart"),
        ({"grid": {"restart": 0.3}}, r"grid\.restart: Input should be a valid list \(given: 0\.3\)"),
        ({"grid": {"restrat": [0.3]}}, "unknown parameter of pagerank 'restrat'. Did you mean 'restart'"),
        ({"grid": {"restart": [3.0]}}, r"pagerank\.restart = 3\.0 is not allowed: it takes 0\.01\.\.0\.99"),
        ({"base": {"restart": 0.3}}, "restart stands in base and in grid"),
        ({"strategy": "pagerang"}, "unknown strategy 'pagerang'. Did you mean 'pagerank'"),
        ({"strategy": "pagerank:best"}, "has no preset 'best'"),
        ({"objective": {"metric": "all_golt@11"}}, "objective.metric: unknown metric 'all_golt@11'"),
        ({"questions": 0}, "questions: Input should be greater than or equal to 1"),
        ({"sed": 1}, "sed: Extra inputs are not permitted .*; it takes .*, datasets, strategy"),
        ({"objective": {"metrik": "mrr"}}, r"objective\.metrik: Extra inputs .*; it takes metric, also$"),
        ({"datasets": ["./nowhere"]}, "datasets: './nowhere' is not there"),
        ({"report_on": "./nowhere"}, "report_on: './nowhere' is not there"),
        ({"report_on": "${SWEEP_TEST_NONE}/x"}, "report_on: .*SWEEP_TEST_NONE is not set"),
        ({"write_preset": "${SWEEP_TEST_NONE}/x"}, "write_preset: .*SWEEP_TEST_NONE is not set"),
        ({"constraints": {"tokens": float("nan")}}, r"constraints\.tokens: Input should be a finite number"),
        ({"constraints": {"tokens": -1}}, r"constraints\.tokens: Input should be greater than or equal to 0"),
        ({"build": {"similar_top_k": [0]}}, r"build\.similar_top_k\.0: Input should be greater than or equal to 1"),
        ({"build": {"similar_floor": [2]}}, r"build\.similar_floor\.0: Input should be less than or equal to 1"),
        ({"build": {"max_tokens": [0]}}, r"build\.max_tokens\.0: Input should be greater than or equal to 1"),
        ({"space": {"question_weight": {"low": 0, "high": 1, "step": 1e-9}}}, "step 1e-09 makes over 10,000 values"),
        ({"space": {"steps": {"low": 2, "high": 9, "step": 0.5}}}, r"pagerank: space\.steps takes whole numbers"),
    ],
)
def test_errors_name_the_file_the_field_and_the_value(tiny: Path, content: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=rf"sweep\.yaml: .*{message}"):
        read_sweep(write_sweep(tiny, **content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"search": "random"}, r"trials: say how many configurations to try \(search: random\)"),
        ({"trials": 3}, r"trials: leave it out"),
        ({"search": "bayesian", "trials": 3, "halving": {"questions": 2}}, "halving: goes with grid, random and ofat"),
        ({"search": "bayesian", "trials": 3, "ablations": True}, "ablations: would be configurations to learn from"),
        ({"halving": {"questions": 9}, "questions": 5}, r"halving\.questions: 9 leaves no round below 5"),
        ({"constraints": {"latency_ms_p59": 3}}, "unknown cost 'latency_ms_p59'. Did you mean 'latency_ms_p95'"),
        ({"space": {"restart": {"low": 0.3, "high": 0.3}}}, r"space\.restart: low 0\.3 is not below high 0\.3"),
        ({"space": {"steps": {"low": 0, "high": 3, "log": True}}}, "log: needs a low above 0"),
        ({"space": {"steps": {"low": 1, "high": 3, "log": True, "step": 1}}}, r"space\.steps: log: needs .* no step"),
        ({"space": {"steps": {"low": 2, "high": 9, "step": 8}}}, r"space\.steps: step 8 is above high - low \(9 - 2\)"),
        ({"space": {"steps": {"low": 1, "high": 3}}}, r"space\.steps: a range without step"),
        ({"space": {"steps": {"low": 1, "high": 900}}}, r"pagerank\.steps = 900 is not allowed"),
        ({"space": {"restart": {"low": 0.1, "high": 0.3, "step": 0.1}}}, "restart stands in grid and in space"),
        ({"when": {"steps": {"restart": 0.15}}}, "when: steps does not vary"),
        ({"when": {"restart": {"seed_chunks": 1}, "seed_chunks": {"restart": 0.15}}}, "depend on each other"),
        ({"build": {"similar_topk": [3]}}, r"build\.similar_topk: Extra inputs .*; it takes embedder, extractor"),
        ({"report_on": "tiny"}, "report_on: 'tiny' is among the datasets that choose the winner"),
    ],
)
def test_searches_are_refused_in_the_same_words(tiny: Path, content: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=rf"sweep\.yaml: .*{message}"):
        read_sweep(write_sweep(tiny, **content))


CONDITION = {"strategy": "graph_expansion", "when": {"min_similarity": {"use_similar": True}}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"grid": {"min_similarity": [0.5], "use_similar": [False]}}, "use_similar is True, and it is False"),
        ({"grid": {"min_similarity": [0.5]}, "base": {"use_similar": False}}, "use_similar is True, and it is False"),
        (
            {"grid": {"min_similarity": [0.5], "use_similar": [True]}, "search": "ofat", "base": {}, "when": {}},
            None,
        ),
        (
            {
                "grid": {"min_similarity": [0.5], "use_similar": [True, False]},
                "search": "ofat",
                "when": {"min_similarity": {"use_similar": False}},
            },
            "use_similar is False, and one factor at a time keeps it True",
        ),
        (
            {"grid": {"min_similarity": [0.5]}, "when": {"min_similarity": {"use_similar": []}}},
            "use_similar is nothing, and it is True",
        ),
        (  # a condition of a condition: the value is checked all the same
            {
                "grid": {"use_similar": [False, True], "max_depth": [1, 2], "min_similarity": [0.5, 7.0]},
                "when": {"min_similarity": {"max_depth": 2}, "max_depth": {"use_similar": True}},
                "search": "random",
                "trials": 1,
            },
            "min_similarity = 7.0 is not allowed",
        ),
    ],
)
def test_values_that_no_configuration_would_have_are_refused(
    tiny: Path, content: dict[str, object], message: str | None
) -> None:
    file = write_sweep(tiny, **{**CONDITION, **content})
    if message is None:
        read_sweep(file)
        return
    with pytest.raises(InputError, match=rf"sweep\.yaml: graph_expansion.*{message}"):
        read_sweep(file)


def test_a_key_that_stands_twice_is_refused(tiny: Path) -> None:
    file = write_sweep(tiny)
    file.write_text(file.read_text() + "grid: {restart: [0.3]}\n")
    with pytest.raises(InputError, match=r"sweep\.yaml cannot be read as YAML: 'grid' stands twice"):
        read_sweep(file)


def test_a_threshold_below_the_floor_of_its_graph_is_refused(tiny: Path) -> None:
    low = {"strategy": "graph_expansion", "grid": {"min_similarity": [0.2, 0.7]}}
    with pytest.raises(InputError, match=r"min_similarity = 0\.2 is below the floor .* 0\.3"):
        read_sweep(write_sweep(tiny, **low))
    plan = read_sweep(write_sweep(tiny, **low, build={"similar_floor": [0.1]}))
    assert {("graph_expansion", "min_similarity"): 0.2, ("graph_expansion", "min_strength"): 0.5} == plan.floors


def test_a_preset_belongs_to_one_strategy(tiny: Path) -> None:
    file = tiny / "two.yaml"
    file.write_text("{datasets: [tiny], strategy: [{strategy: bm25}, {strategy: vector}], write_preset: x.yaml}")
    with pytest.raises(InputError, match=r"two\.yaml: .*a preset belongs to one strategy"):
        read_sweep(file)


@pytest.mark.benchmarks
@pytest.mark.usefixtures("benchmarks_dir")
@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_sweeps_are_valid(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("docs-prefect", "docs-dvc", "docs-fastapi-de"):  # `tools.docs_sets` writes them
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOPBENCH_DOCS_SETS", str(tmp_path))
    plan = read_sweep(file)
    assert 1 < plan.configurations <= 80
    if file.stem.startswith("tune_"):
        presets = ROOT / "src" / "hopbench" / "retrieval" / "strategies" / "presets"
        assert plan.preset == presets / f"{file.stem.removeprefix('tune_')}.yaml"
        assert not [name for name in plan.datasets if "dev" in Path(name).name or Path(name).name == "hopworld"]


def test_the_published_schema_is_current_and_fits_the_examples() -> None:
    published = json.loads((ROOT / "flows" / "sweeps" / "sweep.schema.json").read_text())
    assert schema() == published  # hopbench sweep --schema > flows/sweeps/sweep.schema.json
    validator = jsonschema.Draft202012Validator(published)
    for file in SHIPPED:
        validator.validate(yaml.safe_load(file.read_text()))
    assert not validator.is_valid({"datasets": ["x"], "strategy": "pagerank", "grit": {}})
    assert not validator.is_valid({"datasets": ["x"], "strategy": "pagerank", "search": "annealing"})
