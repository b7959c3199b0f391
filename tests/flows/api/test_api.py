"""The Python API: what it returns, how a notebook shows it, and what it refuses."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import hopbench
from hopbench.flows.cli.overview import list_runs
from hopbench.flows.settings.home import Home
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.support.errors import InputError, ParameterError, UnknownNameError

QUESTION = "Which river flows past the birthplace of Johnny Depp?"


def test_import_loads_nothing_heavy() -> None:
    program = (
        "import sys, hopbench; heavy = {'numpy', 'pandas', 'scipy', 'mlflow', 'prefect', 'ragas', 'typer'}; "
        "print(sorted(heavy & set(sys.modules)), hopbench.__version__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"[] {hopbench.__version__}" == done.stdout.strip()


def test_every_public_name_is_there_and_no_other() -> None:
    assert [name for name in hopbench.__all__ if getattr(hopbench, name, None) is None] == []
    assert set(hopbench.__all__) < set(dir(hopbench))
    with pytest.raises(AttributeError, match="module 'hopbench' has no attribute 'opne'"):
        hopbench.opne  # noqa: B018 - the access is the test


def test_a_question_is_answered_with_passages_and_what_led_to_them(corpus: hopbench.Corpus) -> None:
    found = corpus.retrieve(QUESTION, "hoprank", k=12)
    assert isinstance(found, hopbench.Retrieved)
    assert list(range(1, 13)) == [passage.rank for passage in found]
    texts = {passage.id: passage.text for passage in corpus.passages}
    assert [texts[passage.id] for passage in found] == [passage.text for passage in found]
    assert ["rank", "id", "title", "score", "origin", "path", "text"] == list(found.to_frame().columns)
    reached = next(path for path in found.paths() if path)
    assert " -MENTIONED_IN-> [" in reached
    shown = found._repr_html_()
    assert "<caption>Which river flows past" in shown
    assert "-MENTIONED_IN-&gt;" in shown


def test_a_page_number_of_the_corpus_comes_with_its_passage(corpus: hopbench.Corpus) -> None:
    passage = corpus.retrieve("Tim Burton", "bm25", k=1)[0]
    assert ("p02", "directors.pdf, page 12") == (passage.id, str(passage.source))


def test_text_of_a_corpus_is_no_markup_in_a_notebook(tmp_path: Path, tiny: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "corpus.jsonl").write_text(
        '{"_id": "<i>", "title": "<script>alert(1)</script>", "text": "A & B <b>bold</b>"}\n', encoding="utf-8"
    )
    (tmp_path / "c" / "queries.jsonl").write_text('{"_id": "q", "text": "Who is <b>bold</b>?"}\n', encoding="utf-8")
    shown = hopbench.open(tmp_path / "c").retrieve("Who is <b>bold</b>?", "bm25")._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown


@pytest.mark.parametrize(
    ("question", "strategy", "k", "error", "message"),
    [
        (" ", "bm25", 5, InputError, "question 0 is blank"),
        (QUESTION, "bm25", 0, InputError, "k = 0: a whole number of passages is wanted, at least 1"),
        (QUESTION, "bm25", 2.5, InputError, "k = 2.5: a whole number"),
        (None, "bm25", 5, InputError, "question 0 is of type NoneType"),
        (QUESTION, None, 5, InputError, "strategy = None: write a label, such as 'hoprank'"),
        (QUESTION, "bm52", 5, UnknownNameError, "unknown strategy 'bm52'. Did you mean 'bm25'"),
        (QUESTION, "pagerank[restart=2]", 5, ParameterError, r"pagerank.restart = 2.0 is not allowed"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    corpus: hopbench.Corpus, question: Any, strategy: Any, k: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        corpus.retrieve(question, strategy, k)


def test_several_questions_share_one_search_and_a_single_text_is_no_list(corpus: hopbench.Corpus) -> None:
    retriever = corpus.retriever("hoprank")
    texts = list(corpus.questions.values())
    assert [retriever(text).ids for text in texts] == [found.ids for found in retriever.batch(texts)]
    assert len(texts) == len(retriever.batch(text for text in texts))  # a generator is read once
    with pytest.raises(InputError, match="pass a list"):
        retriever.batch(QUESTION)


def test_objects_name_themselves_in_a_line(corpus: hopbench.Corpus) -> None:
    retriever = corpus.retriever("bm25")
    assert f"<hopbench.Retriever bm25 over {len(corpus)} passages>" == repr(retriever)
    found = retriever(QUESTION, k=2)
    assert f"<hopbench.Retrieved {found.ids} for {QUESTION!r} by bm25>" == repr(found)
    assert f"<hopbench.Corpus tiny: {len(corpus)} passages, 4 questions>" == repr(corpus)


def test_a_notebook_shows_what_a_corpus_holds(corpus: hopbench.Corpus) -> None:
    shown = corpus._repr_html_()
    assert "<caption>tiny</caption>" in shown
    rows = dict(re.findall("<tr><th>(.*?)</th><td>(.*?)</td></tr>", shown))
    assert ("12", "4", "12") == (rows["passages"], rows["questions"], rows["Chunk nodes"])
    assert int(rows["MENTIONED_IN edges"]) > 0


def test_a_retriever_of_what_is_no_strategy_is_refused(corpus: hopbench.Corpus) -> None:
    with pytest.raises(InputError, match="strategy = 3: write a label, such as 'hoprank', or a Strategy"):
        corpus.retriever(3)  # type: ignore[arg-type]


def test_a_sweep_shows_what_varies(tiny: Path, tmp_path: Path) -> None:
    space = {"datasets": [str(tiny)], "strategy": "pagerank", "grid": {"restart": [0.1, 0.3], "steps": [5]}}
    swept = hopbench.sweep(space, tmp_path / "out")
    shown = swept._repr_html_()
    for restart in (0.1, 0.3):
        assert f"<td>pagerank[restart={restart}]</td>" in shown
    heads = re.findall("<th>(.*?)</th>", shown)
    assert ["configuration", "questions", "all_gold@10"] == heads[:3]
    assert not {"build", "dataset", "without", "trial_id"} & set(heads)

    before = (tmp_path / "out" / "sweep.yaml").read_bytes()
    with pytest.raises(InputError, match="holds a sweep with other settings"):
        hopbench.sweep({**space, "grid": {"restart": [0.2]}}, tmp_path / "out")
    assert before == (tmp_path / "out" / "sweep.yaml").read_bytes()


def test_an_explanation_shows_its_picture_without_restyling_the_notebook(corpus: hopbench.Corpus) -> None:
    why = corpus.explain("q1", "hoprank")
    shown = why._repr_html_()
    picture = re.search(r'<img alt="(.*?) \(hoprank\)" src="data:image/svg\+xml;base64,(.*?)">', shown)
    assert picture
    assert (why.question, why.svg()) == (picture[1], base64.b64decode(picture[2]).decode())
    assert "<style" not in shown  # its rules for text and labels would apply to every chart beside it
    assert 2 == shown.count("<table")  # fates and hits


def test_what_cannot_be_explained_is_refused(corpus: hopbench.Corpus) -> None:
    with pytest.raises(InputError, match="top = 0: at least one hit"):
        corpus.explain("q1", "bm25", top=0)
    with pytest.raises(InputError, match="question = None: write a question's id or text"):
        corpus.explain(None, "bm25")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"^'{'x' * 100}…' is no question of"):
        corpus.explain("x" * 100_000, "bm25")


def test_arguments_that_cannot_be_used_are_named(tiny: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown setting 'embeder'. Did you mean 'embedder'"):
        hopbench.open(tiny, embeder="minilm")  # type: ignore[call-arg]
    with pytest.raises(UnknownNameError, match="unknown setting 'seeds'"):
        hopbench.run(tiny, "bm25", seeds=3)  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"strategies: BM25\(.*\) is no label: write a name"):
        hopbench.run(tiny, [make("bm25")])  # type: ignore[list-item]
    with pytest.raises(InputError, match="function 'a=b': choose another name, one that has up to 80 letters"):
        hopbench.run(tiny, "bm25", retrievers={"a=b": lambda texts, _: [[] for _ in texts]})


@pytest.fixture(scope="module")
def finished(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> hopbench.Run:
    return hopbench.run(tiny, ["bm25", "vector", "pagerank"], out=tmp_path_factory.mktemp("run") / "out")


def test_a_run_has_its_tables_and_its_report(finished: hopbench.Run) -> None:
    board = finished.leaderboard()
    assert {"bm25", "vector", "pagerank"} == set(board.index)
    assert board["all_gold@10"].is_monotonic_decreasing
    assert 12 == len(finished.questions())
    assert ["q1", "q2", "q3", "q4"] == sorted(finished.questions("bm25").index)
    assert finished.report().read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "<td>" in finished._repr_html_()
    assert ["MRR"] == [name for name in finished.leaderboard(["MRR"]).columns if name in finished.metric_names]


def test_a_run_compares_and_recommends(finished: hopbench.Run) -> None:
    table = finished.compare("bm25", "pagerank", baseline="bm25").to_frame()
    assert [("pagerank", "bm25", 4)] == list(table[["label", "baseline", "n"]].itertuples(index=False, name=None))
    assert 3 == len(finished.compare().pairs)  # every two of three labels
    advice = finished.recommend(latency_ms=1e-6)
    assert finished.recommend().best is not None
    assert {"bm25", "vector", "pagerank"} == set(advice.to_frame()["label"])
    assert all("ms" in reason for reason in advice.to_frame()["left out because"])
    assert advice._repr_html_().startswith("<p>No label can be recommended")
    assert 4 == advice._repr_html_().count("<tr")  # heading and three labels


def test_a_run_can_be_opened_again(finished: hopbench.Run) -> None:
    again = hopbench.load_run(finished.folder)
    assert finished.leaderboard().equals(again.leaderboard())
    assert finished.warnings == again.warnings


def test_a_run_without_out_goes_into_the_home(tiny: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path))
    folder = hopbench.run(tiny, "bm25").folder
    assert tmp_path / "runs" == folder.parent
    assert folder.name.startswith("tiny-")
    runs, _ = list_runs(Home.resolve())
    assert [(folder.name, folder)] == [(run.name, run.folder) for run in runs]  # not the copy that MLflow has


def test_what_a_run_does_not_have_is_refused(finished: hopbench.Run, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown metric of this run 'MRRR'. Did you mean 'MRR'"):
        finished.leaderboard(["MRRR"])
    with pytest.raises(UnknownNameError, match=r"unknown label in .* 'hoprank'"):
        finished.questions("hoprank")
    with pytest.raises(InputError, match="name the --out folder of a finished run"):
        hopbench.load_run(tmp_path)


def test_a_strategy_of_one_s_own_is_registered_run_and_replaced(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hopbench.retrieval.strategies.baselines import BM25
    from hopbench.retrieval.strategies.registry import make, registry

    monkeypatch.setattr(registry(), "_added", {})  # other tests of this process must not meet it

    class Mine(BM25):
        name = "mine"
        summary = "bm25 under another name"

    class Again(BM25):
        name = "mine"
        summary = "the cell was run again"

    hopbench.register(Mine)
    run = hopbench.run(tiny, ["bm25", "mine"], out=tmp_path / "out", ragas=False)
    board = run.leaderboard()["all_gold@10"]
    assert board["bm25"] == board["mine"]
    hopbench.register(Again)
    assert isinstance(make("mine"), Again)
    with pytest.raises(InputError, match="the name 'bm25' of this strategy is taken"):
        hopbench.register(BM25)


def test_a_function_is_compared_with_our_labels(tiny: Path, tmp_path: Path) -> None:
    def first(questions: Sequence[str], k: int) -> Sequence[Sequence[str]]:
        return [["p04", "p05"][:k] for _ in questions]

    run = hopbench.run(tiny, "bm25", out=tmp_path / "out", retrievers={"first": first}, ragas=False)
    assert {"bm25", "first"} == set(run.labels)
    assert 1.0 == run.questions("first").loc["q2", "all_gold@2"]  # p04 and p05 are q2's gold passages


def test_why_a_passage_was_found_is_told_as_tables_and_a_picture(corpus: hopbench.Corpus) -> None:
    why = corpus.explain("q2", "pagerank")
    assert ["p04", "p05"] == why.gold()["passage"].tolist()
    assert "Johnny Depp" in why.entities()["words"].tolist()
    assert why.svg().startswith("<svg")
    assert "data:image/svg+xml;base64," in why._repr_html_()  # an image: its style stays its own
    assert "pagerank" in why.details["labels"]
    assert corpus.explain("Where was Tim Burton born?", "bm25").gold().empty
