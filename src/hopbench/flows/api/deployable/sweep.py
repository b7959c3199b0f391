"""The flow `sweep`: what `hopbench sweep` does, from Prefect's pages or from another flow."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel

from hopbench.eval.sweep.fields import ModelFields
from hopbench.eval.sweep.file import SweepFile
from hopbench.eval.types import MAX_FAILED
from hopbench.flows import sweeps as shipped
from hopbench.flows.api.deployable.definition import deployable, same_folder
from hopbench.flows.api.sweeps import Sweep
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.parameters import Offered, fields_of, own, parameters_of
from hopbench.flows.settings.run_settings import RunSettings
from hopbench.flows.sweeps.content import plan_of_content
from hopbench.retrieval.support.errors import IncompleteError

if TYPE_CHECKING:
    from hopbench.eval.sweep.plan import SweepPlan

OWN = ("runner", "workers", "batch")
FILE = own(
    "file",
    Annotated[str, Offered("sweep_files")] | None,
    None,
    "A shipped sweep file's name, or a file where the flow runs; what differs from its default below takes the place "
    "of its field.",
)
CHAMPION = own("champion", bool, False, "Name the winner the champion of the benchmark under report_on.")
OUT = own("out", str | None, None, "Folder for the files (default: one in the home, the same for the same sweep).")
WORKERS = [one for one in parameters_of(RunSettings) if one.name in OWN]
OFFERS = {
    "datasets": "datasets",
    "embedder": "embedders",
    "extractor": "extractors",
    "store": "stores",
}
FIELDS = fields_of(SweepFile, OFFERS, datasets=[], strategy=[])
CONTENT = sorted(FIELDS, key=lambda one: one.name in ModelFields.model_fields)  # what most sweeps need comes first
PARAMETERS = [FILE, *CONTENT, CHAMPION, *WORKERS, OUT]


@deployable("sweep", PARAMETERS, "sweep {file}")
def sweep(**values: Any) -> Sweep:
    """Search a space of configurations (docs/sweeps.md); finished trials are kept and reused. Returns the sweep.

    Cancel it when you like: the same parameters go on where it stopped. Fails, as `hopbench sweep` exits with 4, where
    over 5% of a trial's questions failed.
    """
    from hopbench.flows.settings.options import WorkerOptions
    from hopbench.flows.sweeps.flow import sweep as run_sweep

    home = Home.resolve()
    given = _given(values)
    name = Path(values["file"]).stem if values["file"] else str(given.get("strategy", [{}])[0].get("strategy", "sweep"))
    out = Path(values["out"]) if values["out"] else same_folder(home.sweeps, name, {"file": values["file"], **given})
    spread = WorkerOptions(values["runner"], values["workers"], values["batch"])
    with _plan(values["file"], given, out) as plan:
        swept = run_sweep(plan, out, champion=values["champion"], spread=spread)
    if swept.incomplete:
        raise IncompleteError(
            f"over {MAX_FAILED:.0%} of the questions failed, or were not answered or judged, in "
            f"{len(swept.incomplete)} trials: these are not kept, and the same parameters do again what is missing"
        )
    return Sweep(out, swept.warnings)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the sweep file that differ from their defaults, as plain values."""
    usual = {one.name: one.parameter.default for one in CONTENT}
    return {name: _plain(values[name]) for name in usual if values[name] != usual[name]}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _plan(file: str | None, given: Mapping[str, Any], out: Path) -> AbstractContextManager[SweepPlan]:
    """The plan of a file with some fields replaced, or of the fields alone, which are written to the folder."""
    from hopbench.eval.sweep.plan import read_sweep

    if file is not None:
        return nullcontext(read_sweep(shipped_file(file) or Path(file), given))
    return plan_of_content(given, out)


def shipped_file(name: str) -> Path | None:
    """The shipped sweep file of that name; None for any other."""
    file = Path(shipped.__path__[0]) / f"{name}.yaml"
    return file if name.replace("-", "").replace("_", "").isalnum() and file.is_file() else None
