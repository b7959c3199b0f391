"""HotpotQA: the official JSON (`hotpot_train_v1.1.json`, `hotpot_dev_distractor_v1.json`) and the Hub's records.

Source: Yang et al., HotpotQA (arXiv 1809.09600), https://hotpotqa.github.io.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.fields import required
from hopbench.eval.benchmarks.place import Place, Record, Rows
from hopbench.eval.benchmarks.pool import Pool, pooled_id, read_context, read_facts
from hopbench.eval.benchmarks.validation import keep_judged, make_question, read_questions
from hopbench.eval.types import BenchmarkQuestion

_READ = frozenset({"_id", "id", "question", "context", "supporting_facts"})


def read_hotpotqa(source: str, rows: Rows) -> Parsed:
    """Contexts pooled into one corpus; the passages that supporting facts name are gold.

    `metadata` keeps `level` and whatever else the record has, with `supporting_facts` as [passage id, sentence] and
    `context_ids` as the passages that came with the question.

    Raises
    ------
    InputError
        For a record of another shape (file, record and field are named) and for gold titles that no context holds.
    """
    pool = Pool()
    questions = read_questions(source, ((place, _question(record, place, pool)) for place, record in rows))
    pool.refuse_missing(source)
    return pool.corpus(source), keep_judged(source, questions)


def _question(record: Record, place: Place, pool: Pool) -> BenchmarkQuestion:
    context = read_context(record, place)
    ids = [pool.add(title, text, place) for title, text in context]
    own = dict(zip((title for title, _ in reversed(context)), reversed(ids), strict=True))
    facts = read_facts(record, place)
    supporting = [[own.get(fact.title) or pool.find(fact.title, place), fact.sentence] for fact in facts]
    metadata: Mapping[str, Any] = {
        **{key: value for key, value in record.items() if key not in _READ},
        "context_ids": ids,
        "supporting_facts": supporting,
    }
    question_id = pooled_id(record, place, (title for title, _ in context))
    gold = [str(passage_id) for passage_id, _ in supporting]
    return make_question(place, question_id, required(record, place, "question"), metadata, gold)
