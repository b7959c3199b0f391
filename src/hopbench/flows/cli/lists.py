"""`hopbench strategies`, `benchmarks` and `metrics`: what there is to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from rich.text import Text

from hopbench.flows.cli.flags import Json, argument
from hopbench.flows.cli.output import Grid, console, echo, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from hopbench.retrieval.strategies.base import Strategy

FOLDED = ("takes", "meaning")
PROVENANCE = ("sweep", "objective", "value", "trials")


def strategies_command(
    name: Annotated[str | None, argument(metavar="[NAME]", help="Only this strategy.", values="strategies")] = None,
    as_json: Json = False,
) -> None:
    """List the strategies with their parameters, bounds, defaults and presets."""
    from hopbench.retrieval.strategies.registry import registry
    from hopbench.retrieval.strategies.reranker import rerankers

    known = registry()
    chosen = [known.get(name)] if name else [known.get(each) for each in known.names()]
    described = {strategy.name: describe(strategy) for strategy in chosen}
    if as_json:
        print_json(described)
    else:
        screen = console()
        for one in described.values():
            _print_strategy(screen, one)
        screen.print("Labels: NAME, NAME:tuned, NAME[field=value,…]; all; all:tuned.", markup=False)
        for each in rerankers().plugins():
            kind, package = rerankers().get(each), ", ".join(map(str, rerankers().code_of(each)))
            fields = ", ".join(f"{field}={_plain(spec.default)}" for field, spec in kind.parameters().items())
            screen.print(f"Reranker {each}, as in LABEL+{each}[{fields}]: {kind.summary} ({package})", markup=False)
    for reason in (*known.broken.values(), *rerankers().broken.values()):
        echo(f"warning: {reason}", err=True)


def describe(strategy: type[Strategy]) -> dict[str, Any]:
    """A strategy as plain values: what it does, its edges, its parameters, its presets and where they come from."""
    from hopbench.retrieval.strategies.label import WITHOUT_SOURCE
    from hopbench.retrieval.strategies.registry import kind_of, make, preset, registry

    tuned = preset(strategy.name)
    values = tuned.parameters if tuned else {}
    is_tuned = tuned is not None or strategy.name in WITHOUT_SOURCE  # without a source the defaults are tuned values
    plain = kind_of(strategy.name, make(strategy.name))
    parameters = {}
    for name, spec in strategy.parameters().items():
        bounds = spec.metadata["bounds"]
        parameters[name] = {
            "type": type(spec.default).__name__,
            "default": spec.default,
            "tuned": values.get(name, spec.default) if is_tuned else None,
            "low": bounds.low,
            "high": bounds.high,
            "choices": list(bounds.choices),
            "bounds": bounds.describe(),
            "help": bounds.help,
            "aliases": list(bounds.aliases),
        }
    return {
        "name": strategy.name,
        "summary": strategy.summary,
        "plugins": [str(one) for one in registry().code_of(strategy.name)],
        "edges": list(strategy.edges),
        "plain_label": plain.kind,
        "presets": [
            *([] if strategy.name in WITHOUT_SOURCE else ["documented"]),
            *([] if tuned is None else ["tuned"]),
        ],
        "provenance": dict(tuned.provenance) if tuned else None,
        "fitted_on": [one.name for one in plain.fitted_on],
        "parameters": parameters,
    }


def _print_strategy(screen: Console, strategy: dict[str, Any]) -> None:
    screen.print(Text.assemble((strategy["name"], "bold"), f"  {strategy['summary']}"))
    for plugin in strategy["plugins"]:
        screen.print(f"  plug-in {plugin}", markup=False)
    follows = ", ".join(strategy["edges"]) or "no edges"
    presets = ", ".join(strategy["presets"]) or "none"
    screen.print(f"  follows {follows}; presets: {presets}; the plain label is {strategy['plain_label']}", markup=False)
    if facts := strategy["provenance"]:  # digests are in its file and in --json
        details = [f"{name} {_plain(value)}" for name, value in facts.items() if name in PROVENANCE]
        origin = "; ".join([f"tuned on {', '.join(facts['tuned_on'])}", *details])
        screen.print(f"  {origin}", markup=False, soft_wrap=True)
    elif strategy["fitted_on"]:
        screen.print(
            f"  {strategy['plain_label']} from {', '.join(strategy['fitted_on'])}", markup=False, soft_wrap=True
        )
    rows = Grid("  parameter", "default", "tuned", "takes", "meaning", right=("default", "tuned"), fold=FOLDED)
    for name, entry in strategy["parameters"].items():
        tuned = "" if entry["tuned"] is None or entry["tuned"] == entry["default"] else _plain(entry["tuned"])
        takes = entry["bounds"] or {"bool": "true, false", "str": "text"}.get(entry["type"], entry["type"])
        also = f" (also {', '.join(entry['aliases'])})" if entry["aliases"] else ""
        rows.add_row(f"  {name}", _plain(entry["default"]), tuned, takes, entry["help"] + also)
    screen.print(rows)
    screen.print()


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value) or '""'


def benchmarks_command(as_json: Json = False) -> None:
    """List the benchmarks that --dataset knows by name."""
    from hopbench.eval.benchmarks import shipped_benchmarks
    from hopbench.eval.benchmarks.formats import loaders

    found = shipped_benchmarks()
    if as_json:
        names = ("name", "title", "role", "passages", "questions", "folder")
        print_json({each.name: {name: getattr(each, name) for name in names} for each in found})
        return
    rows = Grid("name", "role", "passages", "questions", "title", right=("passages", "questions"))
    for each in found:
        rows.add_row(each.name, each.role, f"{each.passages:,}", f"{each.questions:,}", each.title)
    screen = console()
    screen.print(rows)
    screen.print(
        "--dataset also takes a folder in BEIR layout (qrels are optional), a folder of documents (Markdown, HTML, PDF "
        "and others), an official HotpotQA, 2WikiMultihopQA or MuSiQue file, or a Hub set as owner/name:config.",
        markup=False,
    )
    for name in loaders().plugins():
        screen.print(f"format {name}: read by the plug-in {', '.join(map(str, loaders().code_of(name)))}", markup=False)
    for reason in loaders().broken.values():
        echo(f"warning: {reason}", err=True)


def metrics_command(
    as_json: Json = False,
) -> None:
    """List the metrics, and the families that take a cut-off of one's own (--metric NAME@k)."""
    from hopbench.eval.metrics import all_metrics, catalogue

    described: dict[str, dict[str, Any]] = {
        name: {
            "meaning": metric.meaning,
            "needs": list(metric.needs),
            "better": "higher" if metric.higher_is_better else "lower",
            "source": metric.citation,
            "plugin": ", ".join(code.name for code in catalogue().code_of(name)),
        }
        for name, metric in all_metrics().items()
    }
    if as_json:
        print_json(described)
    else:
        rows = Grid("metric", "needs", "better", "meaning", "plug-in", fold=("meaning",))
        for name, entry in described.items():
            rows.add_row(name, ", ".join(entry["needs"]), entry["better"], entry["meaning"], entry["plugin"])
        screen = console()
        screen.print(rows)
        families = (f"{family.name}@1..{family.largest}" for family in catalogue().families.values())
        screen.print(f"With a cut-off of your own, by --metric: {', '.join(families)}", markup=False)
    for reason in catalogue().registry.broken.values():
        echo(f"warning: {reason}", err=True)
