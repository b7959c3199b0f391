"""Shell completion of values: names that are known without loading a model, a graph or a heavy package.

Where nothing fits, the shell offers files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


def _fitting(begun: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(begun)]


def one_of(*names: str) -> Callable[[str], list[str]]:
    """Completes with one of these names."""
    return lambda incomplete: _fitting(incomplete, names)


def datasets(incomplete: str) -> list[str]:
    """The shipped benchmarks."""
    from hopbench.eval.benchmarks.loader import shipped_folders

    return _fitting(incomplete, shipped_folders())


def stores(incomplete: str) -> list[str]:
    """The graph stores."""
    from hopbench.flows.settings.home import STORES

    return _fitting(incomplete, STORES)


def methods(incomplete: str) -> list[str]:
    """How the nearest chunks are found."""
    from hopbench.retrieval.graph.construction.plan import METHODS

    return _fitting(incomplete, METHODS)


def extractors(incomplete: str) -> list[str]:
    """The extractors."""
    from hopbench.retrieval.graph.construction.plan import extractor_names

    return _fitting(incomplete, extractor_names())


def embedders(incomplete: str) -> list[str]:
    """The embedders, those with a model to name up to the colon."""
    from hopbench.retrieval.embedding import BUILT_IN, EXAMPLES
    from hopbench.retrieval.plugins.registry import EMBEDDERS, offered_names

    ours = (f"{name}:" if name in EXAMPLES else name for name in BUILT_IN)
    return _fitting(incomplete, dict.fromkeys([*ours, *offered_names(EMBEDDERS)]))


def names(incomplete: str) -> list[str]:
    """The strategies' own names."""
    from hopbench.retrieval.strategies.label import strategy_names

    return _fitting(incomplete, strategy_names())


def label(incomplete: str) -> list[str]:
    """A label: a strategy, or its tuned preset."""
    from hopbench.retrieval.strategies.label import strategy_names, tuned_names

    first, plus, second = incomplete.rpartition("+")
    if plus:
        from hopbench.retrieval.plugins.registry import RERANKERS, offered_names

        return [f"{first}+{name}" for name in _fitting(second, offered_names(RERANKERS))]
    tuned = (f"{name}:tuned" for name in tuned_names())
    return _fitting(incomplete, (*strategy_names(), *tuned))


def labels(incomplete: str) -> list[str]:
    """The last of several labels with commas between."""
    before, comma, last = incomplete.rpartition(",")
    offered = [*_fitting(last, ("all", "all:tuned")), *label(last)]
    return [before + comma + one for one in offered if one not in before.split(",")]


def metrics(incomplete: str) -> list[str]:
    """Groups of metrics that plug-ins offer, and ours that take a cut-off; their names would take loading them."""
    from hopbench.retrieval.plugins.registry import METRICS, offered_names

    return _fitting(incomplete, (f"{name}@" for name in ("recall", "all_gold", *offered_names(METRICS))))


def changes(incomplete: str) -> list[str]:
    """The strategy that `--set` changes; its fields would take loading it."""
    return [] if "." in incomplete else [f"{name}." for name in names(incomplete)]


def sides(incomplete: str) -> list[str]:
    """What `compare` takes beside folders and run ids."""
    return [*_fitting(incomplete, ("champion",)), *label(incomplete)]


def judge_metrics(incomplete: str) -> list[str]:
    """Every judged metric; the names of some would take loading them."""
    return _fitting(incomplete, ("all",))


judge_on = one_of("all", "finalists")
efforts = one_of("none", "minimal", "low", "medium", "high", "xhigh")
judge_profiles = one_of("full", "compact")
runners = one_of("threads", "processes", "dask")
set_roles = one_of("tune", "report", "halves")
question_writers = one_of("rules", "ragas")
