"""Published runs: the rankings of other systems, to check our metrics against their published scores."""

from __future__ import annotations

from pathlib import Path

from hopbench.eval.benchmarks.fields import Place, Record, id_value, list_field, record_id
from hopbench.eval.benchmarks.files import read_jsonl
from hopbench.eval.benchmarks.passages import Unique
from hopbench.retrieval.support.errors import InputError


def load_run(path: str | Path) -> dict[str, list[str]]:
    """Question id → passage ids, best first, from JSON lines with `id` and `ranked_ids`; other fields are ignored.

    Raises
    ------
    InputError
        For an empty file, a question twice, a passage twice in one ranking, or a field of the wrong type.
    """
    unique = Unique("question")
    run: dict[str, list[str]] = {}
    for place, record in read_jsonl(Path(path)):
        question_id = record_id(record, place)
        unique.add(question_id, place)
        run[question_id] = _ranking(record, place)
    if not run:
        raise InputError(f"{path}: holds no rankings: each line must be an object with id and ranked_ids")
    return run


def _ranking(record: Record, place: Place) -> list[str]:
    ranked = [id_value(place, "ranked_ids", value) for value in list_field(record, place, "ranked_ids")]
    seen: set[str] = set()
    for passage_id in ranked:
        if passage_id in seen:
            raise place.error(f"field 'ranked_ids' holds {passage_id!r} twice: a ranking names each passage once")
        seen.add(passage_id)
    return ranked
