"""A stand-in for the judge's model: it counts what it is asked and answers in a typical shape, without any model.

RAGAS's own code runs on it, so the number of calls and the prompts of an estimate are real; how long real answers are
is assumed: two statements in a list, a dozen words in a statement, twice as many in a reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.text.model_tokens import count_tokens

WORDS = {"reason": 24, "statement": 12, "question": 12}
OTHER_WORDS = 8
ITEMS = 2
CHAT_TOKENS = 8  # what a chat format adds to a prompt


@dataclass
class CountingAsker:
    """Counts calls and tokens."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    async def __call__(self, prompt: str, wanted: type[BaseModel]) -> BaseModel:
        """A typical value of what is wanted."""
        schema = wanted.model_json_schema()
        value = typical(schema, schema.get("$defs", {}))
        self.calls += 1
        self.tokens_in += count_tokens(prompt) + CHAT_TOKENS
        self.tokens_out += count_tokens(json.dumps(value))
        return wanted.model_validate(value)


def typical(schema: Mapping[str, Any], known: Mapping[str, Any], name: str = "") -> Any:
    """A value of the schema with as many words and items as usual."""
    if "$ref" in schema:
        return typical(known[schema["$ref"].rpartition("/")[2]], known, name)
    if "enum" in schema:
        return schema["enum"][-1]
    kind = schema.get("type")
    if kind == "object":
        return {field: typical(part, known, field) for field, part in schema.get("properties", {}).items()}
    if kind == "array":
        length = min(max(ITEMS, schema.get("minItems", 0)), schema.get("maxItems", ITEMS))
        return [typical(schema["items"], known, name.removesuffix("s")) for _ in range(length)]
    return 1 if kind == "integer" else " ".join(["word"] * WORDS.get(name, OTHER_WORDS))


@dataclass(frozen=True)
class OneDirection:
    """An embedder to whom all texts are the same: no estimate needs a real one."""

    name: str = "none"
    dimension: int = 1
    synonym_threshold: float = 1.0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Ones."""
        return np.ones((len(texts), 1), dtype=np.float32)
