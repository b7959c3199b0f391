"""One way to language models: every call is paced, retried, cached, validated and written into a ledger."""

from retrieval.llm.batch import Call, Reply, ask
from retrieval.llm.client import LLM
from retrieval.llm.endpoint import Endpoint
from retrieval.llm.faults import LLMError
from retrieval.llm.ledger import BudgetReached, CallLedger, Totals
from retrieval.llm.prices import Price, price_of
from retrieval.llm.scope import Scope, calling
from retrieval.llm.settings import Settings

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
