"""Why one question's gold passages were found or lost: re-runs a strategy, relaxes its limits, walks the graph."""

from hopbench.eval.explain.answer import Answer, RankedPassage, answer
from hopbench.eval.explain.changes import Change, HelpfulChange, Outcome, changes_of, helpful, outcomes_of
from hopbench.eval.explain.examine import Examiner, SideBySide, side_by_side
from hopbench.eval.explain.fates import Fate, Kind, Rival
from hopbench.eval.explain.linked import Linked, Names, linked_entities
from hopbench.eval.explain.queries import Query, browser_text, literal, pasteable, queries_of
from hopbench.eval.explain.routes import Route, Routes
from hopbench.eval.explain.wording import Quote, pairs_of, quote, stated

__all__ = [
    "Answer",
    "Change",
    "Examiner",
    "Fate",
    "HelpfulChange",
    "Kind",
    "Linked",
    "Names",
    "Outcome",
    "Query",
    "Quote",
    "RankedPassage",
    "Rival",
    "Route",
    "Routes",
    "SideBySide",
    "answer",
    "browser_text",
    "changes_of",
    "helpful",
    "linked_entities",
    "literal",
    "outcomes_of",
    "pairs_of",
    "pasteable",
    "queries_of",
    "quote",
    "side_by_side",
    "stated",
]
