from hopbench.eval.benchmarks.loader import FORMATS, load_benchmark
from hopbench.eval.benchmarks.published import RunFile, load_rankings, load_run
from hopbench.eval.benchmarks.registry import ShippedBenchmark, benchmark_names, shipped_benchmarks
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
]
