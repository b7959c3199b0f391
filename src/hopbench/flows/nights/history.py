"""The history of nightly runs: a folder each, with nightly.json and the per-question scores for later comparison."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import PRIMARY
from hopbench.flows.settings.home import NIGHT_RECORD
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.notice import notice

if TYPE_CHECKING:
    import pandas as pd

ROWS_FILE = "night.parquet"
SCHEMA = "hopbench.nightly/2"
SUM = "sha256"
STAMP = "????-??-??T??????Z"
"""The time in a folder's name: `hopworld-*` alone would take in the nights of hopworld-tune."""
GOOD = ("baseline", "good")


@dataclass(frozen=True)
class NightlyRecord:
    """A nightly run that reached its verdict; `content` is its nightly.json."""

    folder: Path
    content: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of its folder: benchmark and time."""
        return self.folder.name

    @property
    def digest(self) -> str:
        """Digest of its benchmark."""
        return str(self.content["benchmark"]["digest"])

    @property
    def good(self) -> bool:
        """Whether later nights may be compared with it: complete and without a regression."""
        return self.content["outcome"] in GOOD

    @property
    def labels(self) -> Mapping[str, Mapping[str, Any]]:
        """Label → mean of the primary metric, p50 latency, pace beside the yardstick."""
        result: Mapping[str, Mapping[str, Any]] = self.content["labels"]
        return result

    @property
    def environment(self) -> Mapping[str, Any]:
        """The environment it ran in, see `environment.environment_of`."""
        result: Mapping[str, Any] = self.content["circumstances"]
        return result

    @cached_property
    def rows(self) -> pd.DataFrame:
        """A row for each question × label: question_id, strategy, the primary metric, failure."""
        import pandas as pd

        try:
            return pd.read_parquet(self.folder / ROWS_FILE)
        except (ValueError, OSError) as error:
            raise InputError(
                f"{self.folder / ROWS_FILE} cannot be read ({error}): remove the folder {self.folder}, and the next "
                "night is compared with the one before it"
            ) from error

    def rows_of(self, label: str) -> pd.DataFrame:
        """The rows of a label by question id."""
        return self.rows[self.rows["strategy"] == label].set_index("question_id")


def nights(folder: Path, digest: str | None = None) -> list[NightlyRecord]:
    """The nightly records in `folder`, newest first; only those of one benchmark where `digest` is given.

    A damaged one is renamed with a notice. Raises InputError for a record of another version.
    """
    results = []
    for file in folder.glob(f"*/{NIGHT_RECORD}"):
        content, error = _loaded(file)
        if error is not None:
            reason = error.strerror if isinstance(error, OSError) else error
            problem = f"the night {file.parent.name} is damaged ({reason}): no night is compared with it"
            notice(f"{problem}; see {set_aside(file)}")
            continue
        if content.get("schema") != SCHEMA:
            raise InputError(
                f"{file}: its schema is {content.get('schema')!r}, this HopBench reads {SCHEMA!r}: use the newer "
                "HopBench that wrote it, or remove that folder"
            )
        night = NightlyRecord(file.parent, content)
        if digest in (None, night.digest):
            results.append(night)
    return sorted(results, key=lambda night: (str(night.content["started"]), night.name), reverse=True)


def damaged_records(folder: Path) -> list[Path]:
    """The nightly.json files that are damaged; `nights` renames them."""
    return [file for file in sorted(folder.glob(f"*/{NIGHT_RECORD}")) if _loaded(file)[1] is not None]


def _loaded(file: Path) -> tuple[dict[str, Any], Exception | None]:
    try:
        content = json.loads(file.read_bytes())
        summed = {name: value for name, value in content.items() if name != SUM}
        fits = content.get("schema") != SCHEMA or content[SUM] == _sum(summed, file.parent / ROWS_FILE)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return {}, error
    return content, None if fits else ValueError(f"its checksum does not match this file and {ROWS_FILE}")


def _sum(content: Mapping[str, Any], rows: Path) -> str:
    """The SHA-256 of nightly.json (without the checksum field) and of the rows file beside it."""
    text = json.dumps(content, sort_keys=True).encode()
    return hashlib.sha256(hashlib.sha256(text).digest() + hashlib.sha256(rows.read_bytes()).digest()).hexdigest()


def set_aside(file: Path) -> Path:
    """Rename a damaged nightly.json, so that its folder no longer counts as a record; returns the new path."""
    aside = file.with_name(f"{file.name}.damaged")
    with suppress(OSError):  # on a disk that cannot be written the notice is repeated
        file.rename(aside)
    return aside


def last_good(earlier: Sequence[NightlyRecord], label: str) -> NightlyRecord | None:
    """The newest good night among `earlier` (newest first) that has the label."""
    return next((night for night in earlier if night.good and label in night.labels), None)


def write_night(folder: Path, content: Mapping[str, Any], rows: pd.DataFrame) -> None:
    """Write a nightly record, nightly.json last: a folder without it does not count."""
    buffer = io.BytesIO()
    rows.to_parquet(buffer, index=False, compression="zstd")
    write_atomically(folder / ROWS_FILE, buffer.getvalue())
    plain = json.loads(json.dumps({"schema": SCHEMA, **content}, allow_nan=False))
    sealed = {**plain, SUM: _sum(plain, folder / ROWS_FILE)}
    write_atomically(folder / NIGHT_RECORD, (json.dumps(sealed, indent=2, ensure_ascii=False) + "\n").encode())


def started_as(night: str) -> str:
    """The data set in the name of a nightly run's folder; it may be a file's name instead of the benchmark's."""
    return night[: -len(STAMP) - 1]


def unfinished(folder: Path, benchmark: str) -> Path | None:
    """The newest folder of a night of this benchmark that was interrupted and kept finished trials."""
    results = [
        trials.parent
        for trials in folder.glob(f"{glob.escape(benchmark)}-{STAMP}/.unfinished")
        if not (trials.parent / NIGHT_RECORD).exists() and any(trials.iterdir())
    ]
    return max(results, key=lambda path: path.name, default=None)


def remove(night: NightlyRecord) -> None:
    """Delete a nightly record, nightly.json first, so that a half-deleted folder does not count."""
    (night.folder / NIGHT_RECORD).unlink(missing_ok=True)
    shutil.rmtree(night.folder, ignore_errors=True)


CHARTED = 60
"""Nights in a report's chart; `hopbench history` has all of them."""

INTERVAL = "interval"


@dataclass(frozen=True)
class Point:
    """A label in one night: the mean of the primary metric with its 95% interval, and its p50 latency in ms.

    `low` and `high` are None where the night's rows have under two questions.
    """

    night: str
    started: str
    outcome: str
    digest: str
    label: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    latency_ms_p50: float | None


def points_of(night: NightlyRecord, wanted: str | None = None) -> Iterator[Point]:
    """The points of a night, by label; only the `wanted` one where that is given."""
    content, metric = night.content, str(night.content.get("metric") or PRIMARY)
    about = night.name, str(content["started"]), str(content["outcome"]), night.digest
    for label in sorted(night.labels):
        if wanted in (None, label):
            entry = night.labels[label]
            low, high = entry.get(INTERVAL) or (None, None)
            yield Point(*about, label, metric, entry.get(metric), low, high, entry.get("latency_ms_p50"))


def charted(tonight: NightlyRecord, earlier: Sequence[NightlyRecord]) -> list[dict[str, Any]]:
    """What a report draws over the nights of one benchmark, oldest first; empty where tonight's is the only one.

    `earlier` are nights on the same questions, newest first. Only tonight's labels and metric are drawn.
    """
    metric = tonight.content.get("metric") or PRIMARY
    alike = [night for night in earlier if (night.content.get("metric") or PRIMARY) == metric]
    if not alike:
        return []
    return [
        {name: getattr(point, name) for name in ("started", "label", "metric", "value", "low", "high")}
        for night in [*reversed(alike[: CHARTED - 1]), tonight]
        for point in points_of(night)
        if point.label in tonight.labels and point.value is not None
    ]


Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class LabelMatches:
    """`before`: each label that has a past, with the night and the label that it is compared with.

    `new` labels have none. `missing` labels were in the reference night `measure` and are not among
    tonight's; `vanished` is true if the same selection included them then.
    """

    before: Mapping[str, tuple[NightlyRecord, str]] = field(default_factory=dict)
    new: Sequence[str] = ()
    missing: Sequence[str] = ()
    measure: NightlyRecord | None = None
    vanished: bool = False

    @property
    def replaced(self) -> dict[str, str]:
        """Labels that replace another label of their strategy."""
        return {label: known_as for label, (_, known_as) in self.before.items() if label != known_as}


def match_labels(
    tonight: Mapping[str, Parameters], earlier: Sequence[NightlyRecord], selection: Sequence[str]
) -> LabelMatches:
    """Match tonight's labels, by their parameters, with those of `earlier` nights (newest first).

    `selection` is `--strategies` and each `--set`. The reference is the newest good night with the same selection, else
    the newest good night.
    """
    good = [night for night in earlier if night.good]
    if not good:
        return LabelMatches(new=tuple(tonight))
    alike = [night for night in good if night.content.get("selection") == list(selection)]
    measure = [*alike, *good][0]
    before = {label: (night, label) for label in tonight if (night := last_good(earlier, label)) is not None}
    of_past = {strategy_of(label) for label in before}
    for label in (label for label in tonight if label not in before):
        strategy = strategy_of(label)
        night = measure if _lacking(measure, tonight, strategy) else None
        if night is None and strategy not in of_past:
            night = next((one for one in good if _lacking(one, tonight, strategy)), None)
        if night is not None:
            before[label] = (night, nearest(label, tonight[label], _lacking(night, tonight, strategy)))
    taken = {known_as for _, known_as in before.values()}
    missing = tuple(label for label in measure.labels if label not in tonight and label not in taken)
    new = tuple(label for label in tonight if label not in before)
    return LabelMatches(
        {label: before[label] for label in tonight if label in before}, new, missing, measure, bool(alike and missing)
    )


def strategy_of(label: str) -> str:
    """`NAME:tuned[field=value]` → `NAME`; with a reranker, `NAME+RERANKER`."""
    return Label.of_any(label).stages


def nearest(label: str, parameters: Parameters, candidates: Mapping[str, Parameters]) -> str:
    """The candidate of the same preset, then with the fewest other parameters, then the first by name."""

    def distance(candidate: str) -> tuple[bool, int, str]:
        other = candidates[candidate]
        differing = sum(parameters.get(name) != other.get(name) for name in {*parameters, *other})
        return Label.of_any(candidate).unchanged != Label.of_any(label).unchanged, differing, candidate

    return min(candidates, key=distance)


def _lacking(night: NightlyRecord, tonight: Mapping[str, Parameters], strategy: str) -> dict[str, Parameters]:
    """The night's labels of a strategy that tonight lacks, with their parameters."""
    specs = night.environment.get("specs", {})
    return {
        label: specs.get(label, {}) for label in night.labels if label not in tonight and strategy_of(label) == strategy
    }
