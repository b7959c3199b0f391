"""The history of nightly runs: a folder each, with nightly.json and the per-question scores for later comparison.

It is stored in HOPBENCH_HOME/nightly, whatever a run's `--out`, and needs none of the run's own files.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically
from hopbench.flows.settings.home import NIGHT_RECORD
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
    def selection(self) -> list[str] | None:
        """The selection: `--strategies` and each `--set`; None in records older than this field."""
        return self.content.get("selection")

    @property
    def circumstances(self) -> Mapping[str, Any]:
        """See `circumstances.circumstances`."""
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
    """The nightly records in `folder`, newest first; only those of one benchmark where `digest` is given."""
    results = [night for night in _read(folder) if digest is None or night.digest == digest]
    return sorted(results, key=lambda night: (str(night.content["started"]), night.name), reverse=True)


def damaged_records(folder: Path) -> list[Path]:
    """The nightly.json files that are damaged; `nights` renames them."""
    return [file for file in sorted(folder.glob(f"*/{NIGHT_RECORD}")) if _loaded(file)[1] is not None]


def _loaded(file: Path) -> tuple[dict[str, Any], Exception | None]:
    try:
        content = json.loads(file.read_bytes())
        _refuse_damaged(file, content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return {}, error
    return content, None


def _read(folder: Path) -> Iterator[NightlyRecord]:
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
        yield NightlyRecord(file.parent, content)


def _refuse_damaged(file: Path, content: Any) -> None:
    """Raise ValueError, TypeError or KeyError where the record is damaged; older records have no checksum."""
    if content.get("schema") != SCHEMA:
        return
    if SUM not in content:
        _ = [content[name] for name in ("benchmark", "started", "outcome", "labels", "circumstances")]
    elif content[SUM] != _sum({name: value for name, value in content.items() if name != SUM}, file.parent / ROWS_FILE):
        raise ValueError(f"its checksum does not match this file and {ROWS_FILE}")


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
        kept.parent
        for kept in folder.glob(f"{glob.escape(benchmark)}-{STAMP}/.unfinished")
        if not (kept.parent / NIGHT_RECORD).exists() and any(kept.iterdir())
    ]
    return max(results, key=lambda path: path.name, default=None)


def remove(night: NightlyRecord) -> None:
    """Delete a nightly record, nightly.json first, so that a half-deleted folder does not count."""
    (night.folder / NIGHT_RECORD).unlink(missing_ok=True)
    shutil.rmtree(night.folder, ignore_errors=True)
