"""Calls to language models: each is paced, retried, cached, validated and written into a ledger."""

from hopbench.retrieval.llm.client import LLM, Call, Reply, ask
from hopbench.retrieval.llm.endpoint import Endpoint, Price, price_of
from hopbench.retrieval.llm.faults import LLMError, Settings
from hopbench.retrieval.llm.ledger import BudgetReached, CallLedger, Scope, Totals, calling

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
