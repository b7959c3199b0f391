"""What the tests of reading and judging share: a scripted model whose answers follow from the prompt, and samples."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from typing import Any

from hopbench.eval.answering.judge.sample import Sample
from hopbench.retrieval.llm.adaptation import SCHEMA_PROMPT

Body = dict[str, Any]


def scripted_model(body: Body) -> str:
    """JSON of the wanted schema, drawn from a seed that the messages make: the same prompt gives the same answer."""
    seed = hashlib.sha256(json.dumps(body["messages"]).encode()).digest()
    form, shown = body.get("response_format") or {}, body["messages"][-1]["content"].partition(SCHEMA_PROMPT)[2]
    schema = form["json_schema"]["schema"] if "json_schema" in form else json.loads(shown)
    return json.dumps(_drawn(schema, schema.get("$defs", {}), random.Random(seed)))


def _drawn(schema: Mapping[str, Any], known: Mapping[str, Any], dice: random.Random) -> Any:
    if "$ref" in schema:
        return _drawn(known[schema["$ref"].rpartition("/")[2]], known, dice)
    if "enum" in schema:
        return dice.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        return {name: _drawn(part, known, dice) for name, part in schema["properties"].items()}
    if kind == "array":
        # Two of everything: RAGAS's noise sensitivity wants as many verdicts as it gave statements.
        length = min(max(2, schema.get("minItems", 2)), schema.get("maxItems", 2))
        return [_drawn(schema["items"], known, dice) for _ in range(length)]
    return dice.randint(0, 1) if kind == "integer" else " ".join(dice.choices(WORDS, k=3))


WORDS = "Lindholm bridge was built in 1911 by Ada Rask near the old harbour".split()

SAMPLES = (
    Sample(
        "q1",
        "Where was the architect of the Lindholm bridge born?",
        ("Lindholm bridge. The bridge was built by Ada Rask in 1911.", "Ada Rask. Ada Rask was born in Torvik."),
        "Where was the architect of the Lindholm bridge born? Torvik.",
        "The architect of the Lindholm bridge was born in Torvik.",
    ),
    Sample(
        "q2",
        "Is the old harbour older than the Lindholm bridge?",
        ("Old harbour. The old harbour dates from 1840.", "Lindholm bridge. Built in 1911.", "Torvik. A town."),
        "Is the old harbour older than the Lindholm bridge? Yes.",
        "Yes, the old harbour is older than the Lindholm bridge.",
    ),
)
