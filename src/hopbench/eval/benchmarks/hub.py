"""Sets of the Hugging Face Hub, online or as folders: tables for corpus, queries and judgements, or one of records."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from hopbench.eval.benchmarks.beir import Parsed, missing_questions
from hopbench.eval.benchmarks.card import read_card
from hopbench.eval.benchmarks.fields import Place, Rows
from hopbench.eval.benchmarks.files import with_nested_values
from hopbench.eval.benchmarks.formats import detect
from hopbench.eval.benchmarks.passages import mapped_passages, read_passages
from hopbench.eval.benchmarks.questions import attach_gold, read_judgements, read_query_rows, read_questions_with_gold
from hopbench.eval.benchmarks.records import (
    EVALUATION_SPLITS,
    GOLD_SPLITS,
    Splits,
    by_split,
    chosen_split,
    rows_of,
    saved_splits,
    split_name,
    splits_of,
)
from hopbench.retrieval.corpus import ids_of
from hopbench.retrieval.support.errors import InputError

CORPUS, QUERIES = "corpus", "queries"
JUDGED = ("qrels", "default", "data")
RECORDS = ""
Parts = Mapping[str, Splits]


def parts_of(folder: Path) -> Parts:
    """Part → split → files: `corpus`, `queries` and one of `JUDGED`, or `RECORDS` alone; empty for other folders."""
    saved = saved_splits(folder)
    if saved is not None and not {CORPUS, QUERIES} <= saved.keys():
        return {RECORDS: saved}
    if saved is not None:
        return {name: {name: files} for name, files in saved.items()}
    configured = _configured(folder)
    named = {name: splits_of(folder / name) for name in (CORPUS, QUERIES, *JUDGED)}
    parts = {name: splits for name, splits in (*named.items(), *configured.items()) if splits}
    return parts if CORPUS in parts else {}


def _configured(folder: Path) -> dict[str, Splits]:
    """The parts that the card's `configs` name, as far as their files are there."""
    try:
        configs = read_card(folder).get("configs")
    except InputError:  # a README.md of another kind
        return {}
    listed = [one for one in configs if isinstance(one, dict)] if isinstance(configs, list) else []
    return {str(one.get("config_name")): _config_splits(folder, one.get("data_files")) for one in listed}


def _config_splits(folder: Path, given: object) -> Splits:
    """A config's `data_files`: a pattern, a list of them, or a list of splits with their patterns."""
    splits: dict[str, list[Path]] = {}
    for one in given if isinstance(given, list) else [given]:
        patterns, split = (one.get("path"), one.get("split")) if isinstance(one, dict) else (one, None)
        files = [file for pattern in _safe_patterns(patterns) for file in _matching(folder, pattern)]
        for found, shards in by_split(files, folder).items():
            splits.setdefault(str(split or found), []).extend(shards)
    return splits


def _safe_patterns(patterns: object) -> Iterator[str]:
    for one in patterns if isinstance(patterns, list) else [patterns]:
        if isinstance(one, str) and one and ".." not in Path(one).parts and not Path(one).is_absolute():
            yield one


def _matching(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except (ValueError, NotImplementedError):  # a pattern of another kind than pathlib's
        return []


def read_parts(
    folder: Path, parts: Parts, format: str | None, *, need_questions: bool, mapped: Path | None
) -> tuple[str, Parsed]:
    """Read the parts; return the split that was read (empty if it tells nothing about the set) and the content.

    Raises
    ------
    InputError
        For a part that is missing, splits of which none can be chosen, and anything wrong in a file.
    """
    if RECORDS in parts:
        split = split_name(folder, parts[RECORDS], EVALUATION_SPLITS)
        rows, reader = detect(rows_of(parts[RECORDS][split]), str(folder), format)
        return split, reader(str(folder), rows)
    judged = next((name for name in JUDGED if name in parts), None)
    split = split_name(folder / judged, parts[judged], GOLD_SPLITS) if judged else ""
    corpus = chosen_split(folder / CORPUS, parts[CORPUS], (split,))
    passages = mapped_passages(corpus, mapped) if mapped else read_passages(str(folder / CORPUS), rows_of(corpus))
    if QUERIES not in parts:
        if need_questions:
            raise missing_questions(folder)
        return "", (passages, ())
    source = str(folder / QUERIES)
    rows = rows_of(chosen_split(folder / QUERIES, parts[QUERIES], (split,)))
    if judged is None:
        return "", (passages, read_questions_with_gold(source, rows, ids_of(passages)))
    judgements, questions = read_judgements(rows_of(parts[judged][split])), read_query_rows(source, rows)
    return "", (passages, attach_gold(str(folder / judged), questions, judgements, ids_of(passages)))


def load_hub(name: str, format: str | None = None) -> tuple[str, Parsed]:
    """Download (once) and read `owner/name[:config[:split]]`; returns a name for the benchmark and its content.

    Without a split the evaluation split is taken: validation for records with contexts, test for BEIR judgements.
    Files are cached under `HOPBENCH_HOME`/huggingface, or under HF_HOME where that is set.

    Raises
    ------
    InputError
        When the set cannot be reached, does not exist, needs a config or split to be named, or fails validation.
    """
    repository, _, rest = name.partition(":")
    config, _, split = rest.partition(":")
    hub = _Hub(repository)
    configs = hub.configs()
    if format == "beir" or (format is None and {"corpus", "queries"} <= set(configs)):
        return _set_name(repository, "", split), _read_beir(hub, configs, config, split)
    config = config or _only_config(name, configs)
    rows, used = hub.rows(config, split, EVALUATION_SPLITS)
    rows, reader = detect(rows, hub.label(config), format)
    return _set_name(repository, config, used), reader(hub.label(config), rows)


def _set_name(repository: str, config: str, split: str) -> str:
    """A name for files and charts; it contains the split, from which `role_of` recognises training sets."""
    parts = (repository.rsplit("/", maxsplit=1)[-1], config if config != "default" else "", split)
    return "-".join(part for part in parts if part)


def _only_config(name: str, configs: list[str]) -> str:
    if len(configs) == 1:
        return configs[0]
    raise InputError(
        f"{name}: has several configs ({', '.join(sorted(configs))}): name one, as in {name}:{sorted(configs)[0]}"
    )


def _read_beir(hub: _Hub, configs: list[str], config: str, split: str) -> Parsed:
    """BEIR's two layouts: judgements as a config (`default` or `qrels`) or in a set of their own, `NAME-qrels`."""
    passages = read_passages(hub.label("corpus"), hub.rows("corpus", "", ())[0])
    questions = read_query_rows(hub.label("queries"), hub.rows("queries", "", ())[0])
    own = next((known for known in (config, "qrels", "default") if known and known in configs), None)
    judged = hub if own else _Hub(f"{hub.repository}-qrels")
    rows, _ = judged.rows(own, split, GOLD_SPLITS)
    known = (passage.id for passage in passages)
    return passages, attach_gold(judged.label(own), questions, read_judgements(rows), known)


class _Hub:
    """One repository read through `datasets`; each of its failures becomes an InputError with a plain message."""

    def __init__(self, repository: str) -> None:
        self.repository = repository
        self._datasets = _library()
        self._cache = os.environ.get("HF_DATASETS_CACHE") or str(Path(os.environ["HF_HOME"]) / "datasets")

    def label(self, config: str | None) -> str:
        """Name repository and config for messages."""
        return f"{self.repository}:{config}" if config else self.repository

    def configs(self) -> list[str]:
        """List the repository's configs."""
        return list(self._ask(self._datasets.get_dataset_config_names, self.repository))

    def rows(self, config: str | None, split: str, preferred: tuple[str, ...]) -> tuple[Rows, str]:
        """Return the rows of `split`, else of the first preferred or the only split, with that split's name."""
        splits = self._ask(self._datasets.load_dataset, self.repository, config, cache_dir=self._cache)
        used = split or next((known for known in preferred if known in splits), "")
        if not used and len(splits) == 1:
            used = next(iter(splits))
        if used not in splits:
            label = self.label(config)
            raise InputError(
                f"{label}: no split {used!r}: name one of {', '.join(sorted(splits))} as owner/name:config:split"
            )
        places = (Place(self.label(config), "row", number) for number in count(1))
        rows = ((place, with_nested_values(one, place)) for place, one in zip(places, splits[used], strict=False))
        return rows, used

    def _ask(self, call: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except ConnectionError as error:
            raise InputError(
                f"{self.repository}: not a local path, and the Hugging Face Hub cannot be reached from here: download "
                "the file (such as hotpot_dev_distractor_v1.json) or BEIR folder elsewhere and give its path"
            ) from error
        except (OSError, ValueError, RuntimeError, self._datasets.exceptions.DatasetsError) as error:
            # not found, gated, an unknown config, a script in place of data, files of different shapes
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise InputError(f"{self.repository}: cannot be read from the Hugging Face Hub ({reason})") from error


def _library() -> ModuleType:
    """Import `datasets`, configured first: no telemetry, files in HopBench's home, offline without a connection."""
    home = Path(os.environ.get("HOPBENCH_HOME") or ".hopbench").absolute()
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HOME", str(home / "huggingface"))
    if not _reachable():
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import datasets  # seconds to import, and it reads the environment only once

    return datasets  # type: ignore[no-any-return] # untyped


def _reachable() -> bool:
    """Whether the Hub's name resolves (a proxy does that itself): without it the library retries for 25 seconds."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname
    try:
        return bool(socket.getaddrinfo(host, 443))
    except OSError:
        return False
