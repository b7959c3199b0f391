from hopbench.eval.benchmarks.fields import shown_warnings
from hopbench.eval.benchmarks.loader import (
    FORMATS,
    ShippedBenchmark,
    benchmark_names,
    load_benchmark,
    shipped_benchmarks,
)
from hopbench.eval.benchmarks.run_files import RunFile, load_rankings, load_run
from hopbench.eval.benchmarks.triples import load_triples

__all__ = [
    "FORMATS",
    "RunFile",
    "ShippedBenchmark",
    "benchmark_names",
    "load_benchmark",
    "load_rankings",
    "load_run",
    "load_triples",
    "shipped_benchmarks",
    "shown_warnings",
]
