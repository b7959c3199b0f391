"""2WikiMultihopQA: the official JSON (`train.json`, `dev.json`), and copies as JSON lines or on the Hub.

Source: Ho et al., 2WikiMultihopQA (arXiv 2011.01060), https://github.com/Alab-NII/2wikimultihop.
"""

from __future__ import annotations

from collections.abc import Iterator

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.fields import kind, list_field
from hopbench.eval.benchmarks.hotpotqa import read_hotpotqa
from hopbench.eval.benchmarks.place import Place, Record, Rows


def read_2wiki(source: str, rows: Rows) -> Parsed:
    """As HotpotQA, whose layout it shares; `metadata.evidences` holds (subject, relation, object) triples.

    Raises
    ------
    InputError
        As `read_hotpotqa`; also for evidences that are not triples.
    """
    return read_hotpotqa(source, _with_evidences(rows))


def _with_evidences(rows: Rows) -> Iterator[tuple[Place, Record]]:
    for place, record in rows:
        evidences = record.get("evidences")
        if isinstance(evidences, dict):  # the Hub's columns: {"fact": [...], "relation": [...], "entity": [...]}
            columns = [list_field(evidences, place, name) for name in evidences]
            evidences = [list(triple) for triple in zip(*columns, strict=False)]
        yield place, {**record, "evidences": _triples(evidences or [], place)}


def _triples(evidences: object, place: Place) -> list[list[str]]:
    if not isinstance(evidences, list | tuple):
        raise place.error(f"field 'evidences' must be a list of triples, not {kind(evidences)}")
    for triple in evidences:
        if not isinstance(triple, list | tuple) or len(triple) != 3:
            raise place.error(
                f"field 'evidences' must be a list of [subject, relation, object], but holds {kind(triple)}"
            )
    return [list(triple) for triple in evidences]
