"""A benchmark as a set on which numbers are tuned or from which they are learned: what provenance keeps of it."""

from __future__ import annotations

from hopbench.eval.types import Benchmark
from hopbench.retrieval.fitted import FittedOn, packed, question_hash, shipped_hashes


def fitted_on(benchmark: Benchmark) -> FittedOn:
    """The set by name, digest and the hashes of its questions."""
    hashes = frozenset(question_hash(question.text) for question in benchmark.questions)
    return FittedOn(benchmark.name, benchmark.digest, hashes)


def hashes_of(benchmark: Benchmark) -> dict[str, str]:
    """`question_hashes` for a provenance; nothing for sets whose hashes travel with HopBench."""
    if benchmark.digest in shipped_hashes():
        return {}
    return {"question_hashes": packed(question.text for question in benchmark.questions)}
