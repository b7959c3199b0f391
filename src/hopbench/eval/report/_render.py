"""One self-contained page: template, style, scripts and data in a single file that asks nothing of a network."""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import cache
from importlib.resources import files
from operator import itemgetter
from pathlib import Path
from typing import Any

from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import best_value, lacking, ragas_metrics, sign_of
from hopbench.eval.report._questions import packed_details, question_index
from hopbench.eval.report._tables import board, breakdowns, failures, models, observations, reach
from hopbench.eval.report.charts import figures
from hopbench.eval.report.data import ReportData, shown_interval
from hopbench.eval.report.recommend import recommended
from hopbench.eval.report.summary import MINUS, conclusion, in_sample_words, points, points_limit
from hopbench.eval.statistics import limit

SCRIPTS = ("page.js", "charts.js", "questions.js")


def write_report(data: ReportData, path: Path) -> None:
    """Write the report of a run, whole or not at all.

    Raises InputError when the folder cannot be written.
    """
    details = packed_details(data)
    split = breakdowns(data)
    page = render_page(
        "run.html.j2",
        data=data,
        recommendation=recommended(data),
        conclusion=conclusion(data),
        lacking=lacking(data.primary or None),
        **board(data),
        breakdowns=split,
        reach=reach(data),
        observations=observations(data),
        stages={label: spent for label in data.labels if (spent := data.strategies[label].get("stage_seconds"))},
        ragas=ragas_metrics(data.metrics),
        ragas_pairs={(pair["label"], pair["metric"]): pair for pair in data.ragas_comparisons},
        targets=sorted(
            (
                (outcome["passed"], condition, label, outcome["value"])
                for condition, labels in (data.results.get("targets") or {}).items()
                for label, outcome in labels.items()
            ),
            key=itemgetter(0),  # failed ones first
        ),
        failures=failures(data),
        models=models(data),
        figures=figures(data, split),
        index=question_index(data, details),
        details=details,
    )
    write_atomically(path, page.encode())


def render_page(template: str, **context: Any) -> str:
    """Fill a template that extends base.html.j2; text is escaped, scripts run only if the page's policy names them.

    The policy (CSP) lists the hash of our script and of Plotly's, which the page adds when a chart comes into view.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("hopbench.eval.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"points": points, "limit": points_limit, "value": _value, "signed": _signed}
    environment.globals |= {"best_value": best_value, "sign_of": sign_of, "shown_interval": shown_interval}
    environment.globals |= {"in_sample_words": in_sample_words}
    assets = files("hopbench.eval.report").joinpath("assets")
    script = "\n".join(assets.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    packed, library_hash = _plotly()
    return environment.get_template(template).render(
        style=assets.joinpath("report.css").read_text(encoding="utf-8"),
        script=script,
        plotly=packed,
        script_hashes=[_hash(script), library_hash],
        **context,
    )


@cache
def _plotly() -> tuple[str, str]:
    """Plotly's script as gzip in base64 (1.9 MB for 4.8), and the hash that the policy needs."""
    from plotly.offline import get_plotlyjs

    source = get_plotlyjs()
    return base64.b64encode(gzip.compress(source.encode(), 6, mtime=0)).decode(), _hash(source)


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _value(number: float | None, form: str = ".3f") -> str:
    """A metric as in results.json and MLflow, three decimals, or in another form; a dash where it was not measured."""
    return "–" if number is None else format(number, form)


def _signed(number: float) -> str:
    """A difference, or a limit of its interval; one that rounds to 0 is shown with its side of 0."""
    return limit(number).replace("-", MINUS)
