"""Sets on the Hugging Face Hub: BEIR's (configs `corpus` and `queries`) and the official multi-hop ones."""

from __future__ import annotations

import os
import socket
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.cells import with_nested_values
from hopbench.eval.benchmarks.fields import Place, Rows
from hopbench.eval.benchmarks.official import detect
from hopbench.eval.benchmarks.passages import read_passages
from hopbench.eval.benchmarks.question_files import read_judgements, read_query_rows
from hopbench.eval.benchmarks.questions import attach_gold
from hopbench.eval.benchmarks.splits import EVALUATION_SPLITS, GOLD_SPLITS
from hopbench.retrieval.support.errors import InputError


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
        return _name(repository, "", split), _read_beir(hub, configs, config, split)
    config = config or _only_config(name, configs)
    rows, used = hub.rows(config, split, EVALUATION_SPLITS)
    rows, reader = detect(rows, hub.label(config), format)
    return _name(repository, config, used), reader(hub.label(config), rows)


def _name(repository: str, config: str, split: str) -> str:
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
    beside = next((known for known in (config, "qrels", "default") if known and known in configs), None)
    judged = hub if beside else _Hub(f"{hub.repository}-qrels")
    rows, _ = judged.rows(beside, split, GOLD_SPLITS)
    known = (passage.id for passage in passages)
    return passages, attach_gold(judged.label(beside), questions, read_judgements(rows), known)


class _Hub:
    """One repository, asked through `datasets`; every failure of that library becomes one plain message."""

    def __init__(self, repository: str) -> None:
        self.repository = repository
        self._datasets = _library()
        self._cache = os.environ.get("HF_DATASETS_CACHE") or str(Path(os.environ["HF_HOME"]) / "datasets")

    def label(self, config: str | None) -> str:
        """The repository and config as messages name them."""
        return f"{self.repository}:{config}" if config else self.repository

    def configs(self) -> list[str]:
        """The names of the repository's configs."""
        return list(self._ask(self._datasets.get_dataset_config_names, self.repository))

    def rows(self, config: str | None, split: str, preferred: tuple[str, ...]) -> tuple[Rows, str]:
        """The rows of `split`, or of the first preferred (else the only) split; with the name of that split."""
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
    """`datasets`, configured before its import: no telemetry, files beside ours, offline where the Hub is away."""
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
