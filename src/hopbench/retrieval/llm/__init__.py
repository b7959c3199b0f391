"""Calls to language models: each is paced, retried, cached, validated and written into a ledger."""

from hopbench.retrieval.llm.batch import Call, Reply, ask
from hopbench.retrieval.llm.client import LLM
from hopbench.retrieval.llm.endpoint import Endpoint
from hopbench.retrieval.llm.faults import LLMError
from hopbench.retrieval.llm.ledger import BudgetReached, CallLedger, Totals
from hopbench.retrieval.llm.patience import Settings
from hopbench.retrieval.llm.prices import Price, price_of
from hopbench.retrieval.llm.scope import Scope, calling

__all__ = [
    "LLM",
    "BudgetReached",
    "Call",
    "CallLedger",
    "Endpoint",
    "LLMError",
    "Price",
    "Reply",
    "Scope",
    "Settings",
    "Totals",
    "ask",
    "calling",
    "price_of",
]
