"""Which graph of which corpus: the one declaration of these settings."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any, Self

from hopbench.flows.settings.models import ReaderOptions
from hopbench.flows.settings.setting import MODELS, flag, flags_of, named_flags, values_for
from hopbench.retrieval.graph.construction.plan import (
    EXACT_PASSAGES,
    METHODS,
    NAMELESS,
    build_numbers,
    extractor_names,
    method_for,
)
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.home import Home
    from hopbench.retrieval.embedding.base import Embedder
    from hopbench.retrieval.graph.construction.plan import GraphPlan
    from hopbench.retrieval.graph.stores.base import GraphStore
    from hopbench.retrieval.llm import LLM
    from hopbench.retrieval.types import Passage

MIN_CACHED_PASSAGES = 10_000  # their digest takes a tenth of a second
_DIGEST = re.compile(r"[0-9a-f]{64}")


def known_digest(passages: Sequence[Passage], cache: Path) -> str:
    """`corpus_digest`, from `cache` where the same passages in the same order were seen before; "" for small ones.

    The key is a digest of ids, titles and texts as they stand, a tenth of the work; what does not read as a digest is
    computed again. Mapped passages have a key of their own.
    """
    if len(passages) <= MIN_CACHED_PASSAGES:
        return ""
    from hopbench.eval.files import write_atomically
    from hopbench.retrieval.corpus import MappedPassages
    from hopbench.retrieval.graph.construction.plan import corpus_digest

    if isinstance(passages, MappedPassages):
        content = passages.key
    else:
        as_they_stand = hashlib.sha256()
        for column in ("id", "title", "text"):
            values = [getattr(passage, column) for passage in passages]
            as_they_stand.update(repr([*map(len, values)]).encode())  # so that no two corpora run together alike
            as_they_stand.update("".join(values).encode("utf-8", "surrogatepass"))
        content = as_they_stand.hexdigest()
    note = cache / "corpora" / content
    with suppress(OSError, ValueError):
        known = note.read_text(encoding="ascii")
        if _DIGEST.fullmatch(known):
            return known
    digest = corpus_digest(passages)
    write_atomically(note, digest.encode())
    return digest


BUILD_NUMBERS = build_numbers()
MODEL_FIELDS = ("llm", "reasoning_effort", "completion_tokens", "gleaning")


def build_number(name: str) -> Any:
    """A number of `BuildSettings` as a setting; left out, it has the default declared there."""
    number = BUILD_NUMBERS[name]
    about = f"{number.help[0].upper()}{number.help[1:]} (default {number.default})."
    return flag(None, about, ge=number.low, le=number.high, ranged=False)


class GraphOptions(ReaderOptions):
    """Which graph: of what corpus, by which extractor and embedder, in which store; None is the builder's default."""

    dataset: str = flag(..., "A shipped benchmark's name, a folder, an official file or a Hub name.", values="datasets")
    store: str = flag(
        "kglite",
        "Where the graph is kept: kglite (a file), arrays (mapped files, for large corpora) or neo4j (NEO4J_URI or "
        "make neo4j).",
        values="stores",
    )
    embedder: str = flag(
        "wordllama",
        "wordllama, minilm, multilingual, fastembed:MODEL, openai:MODEL or a plug-in's NAME[:MODEL].",
        values="embedders",
    )
    extractor: str = flag(
        "rules",
        "What reads entities and relations: rules, spacy, rules+triples, llm or a plug-in.",
        values="extractors",
    )
    triples: Path | None = flag(None, "Ready triples (JSONL) in place of the extractor.")
    questions: Path | None = flag(
        None,
        "Questions (JSONL, CSV, TSV, Parquet) in place of the data set's own; qrels/ beside, or gold in it.",
        builds=False,
    )
    limit: int | None = flag(None, "Only the first N questions (the whole corpus stays).", ge=1, builds=False)
    min_grade: int = flag(
        1, "The lowest grade of judgements that counts as gold; nDCG takes all grades.", ge=1, builds=False
    )
    strict: bool = flag(
        False, "Refuse gold passages that the corpus lacks, which else count as never found.", builds=False
    )
    mapping: Path | None = flag(
        None, "YAML with the names of a Neo4j graph built elsewhere, which is only read (docs/neo4j.md).", builds=False
    )
    gleaning: int = flag(0, "Extractor llm: how often it is asked what it missed.", ge=0, le=3, group=MODELS)
    neo4j_vector_index: bool = flag(
        False, "Search chunks by Neo4j's own vector index: approximate, so rankings may differ.", builds=False
    )
    dense: str | None = flag(
        None,
        f"How dense search finds chunks: exact or approximate (default exact up to {EXACT_PASSAGES:,} passages).",
        values="methods",
        builds=False,
    )
    similar_top_k: int | None = build_number("similar_top_k")
    similar_floor: float | None = build_number("similar_floor")
    max_tokens: int | None = build_number("max_tokens")
    similar: str | None = flag(
        None,
        f"How SIMILAR_TO is found: exact or approximate (default exact up to {EXACT_PASSAGES:,} passages).",
        values="methods",
    )
    language: str | None = flag(
        None, "The corpus's language, as ISO 639 has it: de, zh, … (default: detected from its passages)."
    )

    def graph_settings(self) -> dict[str, str | int | float | bool | None]:
        """What a later command needs to find this benchmark and its graph again, as plain values."""
        values = self.model_dump(mode="json", include=set(GraphOptions.model_fields))
        unset = {*BUILD_NUMBERS, "similar", "dense", "language", "reasoning_effort", "completion_tokens"}
        return {name: value for name, value in values.items() if value is not None or name not in unset}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], dataset: str) -> Self:
        """The options that `graph_settings` recorded, for the benchmark that is at `dataset` now."""
        return cls(**{**values_for(cls, settings), "dataset": dataset})

    def absolute(self) -> Self:
        """The options with paths that mean the same from a worker's folder."""
        paths = {name: value.absolute() for name, value in self if isinstance(value, Path)}
        place = Path(self.dataset)
        return self.changed(**paths, dataset=str(place.absolute()) if place.exists() else self.dataset)

    @property
    def read_by_model(self) -> bool:
        """Whether a language model reads the graph from the passages."""
        return self.extractor == "llm" and not self.triples

    def refuse_unread_model(self, command: str) -> None:
        """Raise InputError for a model, or how it is asked, where no model reads the passages."""
        plain = GraphOptions(dataset=self.dataset)
        given = [name for name in MODEL_FIELDS if getattr(self, name) != getattr(plain, name)]
        if self.read_by_model or not given:
            return
        flags = named_flags(given)
        asked, remedy = f"extractor {self.extractor}", "add --extractor llm"
        if self.triples:
            asked, remedy = f"a graph of --triples {self.triples}", "name --extractor llm without --triples"
        raise InputError(
            f"{command} {flags}: {asked} asks no language model: {remedy} to have one read the passages, or leave "
            f"{flags} out (run gives a model to strategies, reader and judge)"
        )

    def model_settings(self) -> dict[str, Any]:
        """The model and how it is asked, as `ModelOptions` takes them."""
        return self.model_dump(include=set(ReaderOptions.model_fields))

    def build_command(self) -> str:
        """The command that builds the graph, to be pasted into a shell."""
        plain = GraphOptions(dataset=self.dataset)
        unread = () if self.read_by_model else MODEL_FIELDS
        fields = flags_of(GraphOptions, without=("dataset", *unread))
        names = [name for name, _, flag in fields if flag.builds and getattr(self, name) != getattr(plain, name)]
        flags = [word for name in names for word in (named_flags([name]), str(getattr(self, name)))]
        return join(["hopbench", "graph", "build", "--dataset", self.dataset, *flags])

    def benchmark(self, home: Home | None = None, *, need_questions: bool = True) -> Benchmark:
        """The benchmark, loaded and validated; a graph needs no questions.

        But for the embedded engine, which is for corpora that memory holds, the passages are mapped from the `home`
        where one is given.
        """
        from hopbench.eval.benchmarks import load_benchmark

        mapped = home.cache / "passages" if home is not None and self.store in ("arrays", "neo4j") else None
        return load_benchmark(
            self.dataset,
            limit=self.limit,
            questions=self.questions,
            need_questions=need_questions,
            mapped=mapped,
            min_grade=self.min_grade,
            strict=self.strict,
        )

    def open_embedder(self, home: Home) -> Embedder:
        """The embedder behind its cache; refuses an unknown store or extractor too, before any work begins."""
        from hopbench.flows.settings.home import check_store

        check_store(self.store, home)
        if self.extractor not in extractor_names():
            raise UnknownNameError("extractor", self.extractor, extractor_names())
        for name, method in (("--similar", self.similar), ("--dense", self.dense)):
            if method not in (None, *METHODS):
                raise UnknownNameError(name, str(method), METHODS)
        if self.extractor == "spacy" or not self.triples:
            self._recogniser_name(self.extractor)  # refuses what is not installed or broken
        if self.mapping or self.neo4j_vector_index:
            self._check_neo4j_flags()
        if self.extractor == "rules+triples" and not self.triples:
            raise InputError(
                "--extractor rules+triples adds ready triples to the rules' graph: --triples FILE names them"
            )
        if self.triples and not self.triples.is_file():
            what = "that is no regular file" if self.triples.exists() else "there is no such file"
            raise InputError(f"--triples {self.triples}: {what}: name a JSONL file of triples")
        from hopbench.retrieval.embedding.cache import EmbeddingCache  # loads numpy
        from hopbench.retrieval.embedding.factory import get_embedder

        return get_embedder(self.embedder, EmbeddingCache(home.embeddings))

    def _recogniser_name(self, extractor: str) -> str:
        """A model with its versions and prompts, or a plug-in's code; empty for rules and files of triples alone.

        Raises InputError where it is not installed, not named or broken.
        """
        if extractor in NAMELESS:
            return ""
        if extractor == "llm":
            if self.llm is None:
                raise InputError("--extractor llm needs a model: name one with --llm MODEL[@URL]")
            from hopbench.retrieval.graph.extract.model import recogniser as model_recogniser
            from hopbench.retrieval.llm import Endpoint

            return model_recogniser(Endpoint.parse(self.llm, **self.asked), self.gleaning)
        if extractor == "spacy":
            from hopbench.retrieval.graph.extract.spacy_names import recogniser

            return recogniser()
        from hopbench.retrieval.graph.construction.extraction import extractors  # loads pandas
        from hopbench.retrieval.plugins.code import stamp

        extractors().get(extractor)  # refuses a broken plug-in
        return stamp(extractors().code_of(extractor))

    def _check_neo4j_flags(self) -> None:
        for name, given in (("--mapping", self.mapping), ("--neo4j-vector-index", self.neo4j_vector_index)):
            if given and self.store != "neo4j":
                raise InputError(f"{name} is for --store neo4j; the store is {self.store}")
        if self.dense and self.neo4j_vector_index:
            raise InputError(
                f"--dense {self.dense} and --neo4j-vector-index are two ways to find chunks: leave one out"
            )
        if self.mapping and self.neo4j_vector_index:
            raise InputError(
                "--neo4j-vector-index searches an index of HopBench's own, which --mapping graphs lack: leave one out"
            )
        if self.mapping:
            from hopbench.retrieval.graph.stores.graph_mapping import load_mapping

            load_mapping(self.mapping)

    def graph_plan(self, benchmark: Benchmark, home: Home) -> GraphPlan:
        """The plan of the graph; where extractor `llm` reads it, `with_reader` adds the opened model."""
        from hopbench.eval.benchmarks import load_triples
        from hopbench.retrieval.graph.construction.plan import BuildSettings, GraphPlan

        triples = load_triples(self.triples, benchmark.titles) if self.triples else ()
        extractor = "triples" if triples and self.extractor != "rules+triples" else self.extractor
        similar = self.similar or method_for(len(benchmark.passages))
        numbers: dict[str, Any] = {name: value for name in BUILD_NUMBERS if (value := getattr(self, name)) is not None}
        settings = BuildSettings(
            extractor=extractor,
            recogniser=self._recogniser_name(extractor),
            similar=similar,
            language=self.language or "",
            **numbers,
        )
        corpus = known_digest(benchmark.passages, home.cache)
        return GraphPlan(benchmark.name, benchmark.passages, settings, self.open_embedder(home), triples, corpus=corpus)

    def with_reader(self, plan: GraphPlan, llm: LLM | None) -> GraphPlan:
        """The plan with the model that reads its passages, where it has the extractor `llm`."""
        if plan.settings.extractor != "llm" or llm is None:
            return plan
        from hopbench.retrieval.graph.extract.model import TripleReader

        return replace(plan, reader=TripleReader(llm, self.gleaning))

    def open_store(self, plan: GraphPlan, home: Home) -> GraphStore:
        """The store that holds, or will hold, the plan's graph."""
        from hopbench.flows.settings.home import check_store, open_store

        if self.mapping is None:
            return open_store(self.store, plan.namespace, home)
        from hopbench.retrieval.corpus import chunk_passages
        from hopbench.retrieval.graph.stores.graph_mapping import load_mapping
        from hopbench.retrieval.graph.stores.mapped_store import MappedStore
        from hopbench.retrieval.graph.stores.neo4j_connection import Connection

        check_store("neo4j", home)
        chunks = frozenset(chunk.id for chunk in chunk_passages(plan.passages, plan.settings.max_tokens))
        server = Connection.resolve(os.environ, home.neo4j_env)
        return MappedStore(server, load_mapping(self.mapping), chunks=chunks, build_key=plan.build_key)
