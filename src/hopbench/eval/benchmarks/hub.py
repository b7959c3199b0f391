"""Read sets of the Hugging Face Hub, online or as folders: corpus, queries and judgements, or one table of records."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hopbench.eval.benchmarks.beir import Parsed, missing_questions, read_card
from hopbench.eval.benchmarks.fields import Place, Rows
from hopbench.eval.benchmarks.files import with_nested_values
from hopbench.eval.benchmarks.formats import detect
from hopbench.eval.benchmarks.passages import corpus_passages, read_passages
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
    parts = {name: splits for name in (CORPUS, QUERIES, *JUDGED) if (splits := splits_of(folder / name))}
    try:
        configs = read_card(folder).get("configs")
    except InputError:  # a README.md of another kind
        configs = None
    for one in configs if isinstance(configs, list) else ():
        if isinstance(one, dict) and (splits := _config_splits(folder, one.get("data_files"))):
            parts[str(one.get("config_name"))] = splits
    return parts if CORPUS in parts else {}


def _config_splits(folder: Path, given: object) -> Splits:
    """Read a config's `data_files`: a pattern, a list of them, or a list of splits with their patterns."""
    splits: dict[str, list[Path]] = {}
    for one in given if isinstance(given, list) else [given]:
        patterns, split = (one.get("path"), one.get("split")) if isinstance(one, dict) else (one, None)
        files: list[Path] = []
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            if isinstance(pattern, str) and pattern and ".." not in Path(pattern).parts:
                with suppress(ValueError, NotImplementedError):  # absolute, or of another kind than pathlib's
                    files += sorted(folder.glob(pattern))
        for found, shards in by_split(files, folder).items():
            splits.setdefault(str(split or found), []).extend(shards)
    return splits


def read_parts(
    folder: Path, parts: Parts, format: str | None, *, need_questions: bool, mapped: Path | None
) -> tuple[str, Parsed]:
    """Read the parts; return the split that was read (empty if it tells nothing about the set) and the content."""
    if RECORDS in parts:
        split = split_name(folder, parts[RECORDS], EVALUATION_SPLITS)
        rows, reader = detect(rows_of(parts[RECORDS][split]), str(folder), format)
        return split, reader(str(folder), rows)
    judged = next((name for name in JUDGED if name in parts), None)
    split = split_name(folder / judged, parts[judged], GOLD_SPLITS) if judged else ""
    corpus = chosen_split(folder / CORPUS, parts[CORPUS], (split,))
    passages = corpus_passages(str(folder / CORPUS), corpus, mapped)
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
    """Download (once) and read `owner/name[:config[:split]]`; return a name for the benchmark and its content.

    Without a split the evaluation split is taken: validation for records with contexts, test for BEIR judgements. The
    name contains the split, from which `role_of` recognises training sets.
    """
    repository, _, rest = name.partition(":")
    config, _, split = rest.partition(":")
    hub = _Hub(repository)
    configs = hub.configs()
    if format == "beir" or (format is None and {CORPUS, QUERIES} <= set(configs)):
        parsed, config = _read_beir(hub, configs, config, split), ""
    else:
        if not config and len(configs) != 1:
            names = ", ".join(sorted(configs))
            raise InputError(f"{name}: has several configs ({names}): name one, as in {name}:{sorted(configs)[0]}")
        config = config or configs[0]
        rows, split = hub.rows(config, split, EVALUATION_SPLITS)
        rows, reader = detect(rows, hub.label(config), format)
        parsed = reader(hub.label(config), rows)
    parts = (repository.rsplit("/", maxsplit=1)[-1], config if config != "default" else "", split)
    return "-".join(part for part in parts if part), parsed


def _read_beir(hub: _Hub, configs: list[str], config: str, split: str) -> Parsed:
    """Read BEIR's two layouts: judgements as a config (`default` or `qrels`) or in a set of their own, `NAME-qrels`."""
    passages = tuple(read_passages(hub.label(CORPUS), hub.rows(CORPUS, "", ())[0]))
    questions = read_query_rows(hub.label(QUERIES), hub.rows(QUERIES, "", ())[0])
    own = next((known for known in (config, "qrels", "default") if known and known in configs), None)
    judged = hub if own else _Hub(f"{hub.repository}-qrels")
    rows, _ = judged.rows(own, split, GOLD_SPLITS)
    return passages, attach_gold(judged.label(own), questions, read_judgements(rows), ids_of(passages))


class _Hub:
    """One repository read through `datasets`, whose failures become InputErrors."""

    def __init__(self, repository: str) -> None:
        self.repository = repository
        home = Path(os.environ.get("HOPBENCH_HOME") or ".hopbench").absolute()
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        os.environ.setdefault("HF_HOME", str(home / "huggingface"))
        if not _reachable():
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
        import datasets  # seconds to import, and it reads the environment only once

        self._datasets = datasets
        self._cache = os.environ.get("HF_DATASETS_CACHE") or str(Path(os.environ["HF_HOME"]) / "datasets")

    def label(self, config: str | None) -> str:
        return f"{self.repository}:{config}" if config else self.repository

    def configs(self) -> list[str]:
        return list(self._call(self._datasets.get_dataset_config_names, self.repository))

    def rows(self, config: str | None, split: str, preferred: tuple[str, ...]) -> tuple[Rows, str]:
        splits = self._call(self._datasets.load_dataset, self.repository, config, cache_dir=self._cache)
        used = split or next((known for known in preferred if known in splits), "")
        if not used and len(splits) == 1:
            used = next(iter(splits))
        if used not in splits:
            label = self.label(config)
            raise InputError(
                f"{label}: no split {used!r}: name one of {', '.join(sorted(splits))} as owner/name:config:split"
            )
        numbered = ((Place(self.label(config), "row", n), one) for n, one in enumerate(splits[used], start=1))
        return ((place, with_nested_values(one, place)) for place, one in numbered), used

    def _call(self, call: Any, *arguments: Any, **options: Any) -> Any:
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


def _reachable() -> bool:
    """Whether the Hub's name resolves (a proxy does that itself): without it the library retries for 25 seconds."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname
    try:
        return bool(socket.getaddrinfo(host, 443))
    except OSError:
        return False
