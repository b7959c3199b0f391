"""Turn sentences of documentation into questions: what a sentence says of a name, a setting or a value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from hopbench.retrieval.text import STOP_WORDS, folded_words, sentences

MIN_WORDS, MAX_WORDS = 5, 32
MIN_FUNCTION = 0.15  # share of stop words below which a line is a list, a table or code
_CODE = re.compile(r"[{}|=;<>\\]|^[^ ]+:|\w\(|->|\$\s|::|^\s|^[-#$>@]|^\d+\.\s")
_IDENTIFIER = re.compile(r"\b[0-9a-f]{7,}\b|[0-9a-f]{8}-[0-9a-f]{4}|https?:|\w@\w", re.IGNORECASE)
_POINTER = re.compile(
    r"\b(?:this|these|those|above|below|following|here|previous|next section|see|refer|examples?|let's|we|our)\b",
    re.IGNORECASE,
)
_NAME = r"""(?:`[^`]{2,60}`|--?[a-z][\w-]+|[@/~.]?[A-Za-z][\w-]*(?:[_./:][\w-]+)+(?:\(\))?
    |[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Z]{2,}(?:_[A-Z0-9]+)+|\.[a-z][\w.-]+|\w+\(\))"""
_VALUE = r"""(?:`[^`]{1,60}`|"[^"]{1,40}"|'[^']{1,40}'
    |\d[\d,.]*(?:\s?(?:%|MB|GB|KB|ms|seconds?|minutes?|hours?|days?|weeks?|times))?
    |True|False|None|true|false|null|UTC)"""
_KIND = r"""(?:\ (?P<kind>command|flag|option|setting|parameter|argument|method|function|decorator|class|file
    |directory|environment\ variable|variable|field|key|endpoint|attribute|policy|block|module|package|profile|API))?"""
SAYS = frozenset(
    """controls enables determines specifies allows lets creates runs returns sets disables defines adds shows lists
    removes downloads uploads contains accepts prevents handles provides represents stores records tracks configures
    retries caches starts displays prints executes saves restores moves copies imports updates replaces generates tells
    checks deletes registers retrieves manages overrides includes excludes limits forces skips ignores applies causes
    keeps reads writes pulls pushes builds exports reverts selects filters appends""".split()
)
DOES = frozenset(
    """use do get make share specify modify include write find learn deploy schedule work access define declare track
    install understand connect send customize automate monitor apply disable enable provision log""".split()
) | {verb.removesuffix("s") for verb in SAYS}
"""What a setting says it does, and what one does with it: verbs of documentation."""


MAX_QUESTION = 40  # words
DEBRIS = re.compile(
    r"[{}=<>\\|$]|https?|\bwww\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{4,}\b|_{2,}", re.IGNORECASE
)
_ASKS = re.compile(
    r"(?:\A|[.!:] |, )(?:what|which|who|whose|whom|where|when|why|how|is|are|was|were|do|does|did|can|"
    r"(?:with|in|to|from|of|for|by) (?:which|what|whom))\b",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|do|does|did|has|have|had|can|became|came|went|won|wrote|made|took|led|held|began|built|run|\w+(?:s|ed|en|ing))\b",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """A sentence as a question: its text, the question it answers, and the answer's words in it."""

    sentence: str
    question: str
    answer: str


def _compiled(pattern: str) -> re.Pattern[str]:
    names = {"NAME": _NAME, "VALUE": _VALUE, "KIND": _KIND, "SAYS": f"(?P<verb>{'|'.join(sorted(SAYS))})"}
    for key, text in names.items():
        pattern = pattern.replace(key, text)
    return re.compile(pattern, re.VERBOSE)


_ANSWER = "(?P<answer>VALUE|NAME)(?=[\\s.,;]|$)"
_NAMED = r"(?P<answer>NAME)KIND"
_FORMS = tuple(
    (_compiled("".join(pattern)), question)
    for question, *pattern in (
        (
            "What is the default {of}?",
            r"^(?:[^,]{3,60},\ )?[Tt]he\ default\ (?P<of>[\w\ -]{3,60}?)\ is\ (?:to\ )?",
            _ANSWER,
        ),
        ("What does {of} default to?", r"^(?P<of>(?:The|A|An|Each|[A-Z`])[\w\ `./-]{2,60}?)\ defaults\ to\ ", _ANSWER),
        (
            "To {do}, which {kind} do you {verb}?",
            r"^[Tt]o\ (?P<do>[a-z][\w\ ,'/-]{8,90}?),\ (?:you\ can\ |simply\ )?",
            r"(?P<verb>use|set|run|pass|add|call|enable|specify)\ (?:the\ |a\ |an\ )?",
            _NAMED,
        ),
        (
            "Which {kind} do you use to {do}?",
            r"^(?:You\ can\ )?(?:[Uu]se|[Ss]et|[Pp]ass|[Rr]un|[Cc]all|[Aa]dd)\ (?:the\ )?",
            _NAMED,
            r"\ to\ (?P<do>[a-z][^.:;()]{8,110})\.?$",
        ),
        (
            "With which {kind} can you {do}?",
            r"^You\ can\ (?:also\ )?(?P<do>[a-z][\w\ ,'/-]{8,90}?)\ ",
            r"(?:with|(?:by\ )?using|by\ running|via|by\ setting|through|by\ passing)\ (?:the\ |a\ )?",
            _NAMED,
            r"(?=[\s.,;]|$)",
        ),
        (
            "Which {kind} {verb} {do}?",
            r"^(?:The\ )?",
            _NAMED,
            r"\ (?:also\ |automatically\ )?SAYS\ (?P<do>[^.:;()]{8,120})\.?$",
        ),
        (
            "Where {be} {of} {verb}?",
            r"^(?P<of>(?:The|All|Each)\ [\w\ -]{3,60}?|",
            r"(?!If|When|Once|Ensure|By|In|Make|Note|Where|This|These)[A-Z][\w-]+(?:\ [\w-]+){0,4})\ (?P<be>is|are)\ ",
            r"(?P<verb>stored|saved|defined|located|found|written|kept|placed|specified|configured)\ ",
            r"(?:in|at|under)\ (?:the\ |a\ )?(?P<answer>NAME)(?=[\s.,;]|$)",
        ),
        (
            "What is {what} called?",
            r"^(?:The\ |An?\ )?(?P<answer>NAME|[A-Z][\w-]*(?:\ [a-z][\w-]+){0,2})\ (?P<be>is|are)\ ",
            r"(?P<what>(?:an?|the)\ [a-z][^.,:;()]{20,120})\.?$",
        ),
    )
)
_PRONOUNS = frozenset(
    """this that these those it they there here which what you we one the a an each both all some below above
    since""".split()
)
_SHORT = r"-\w(?:\ <[\w\ -]+>)?"
_OPTION = re.compile(
    rf"^(?:{_SHORT},\ )?(?P<answer>--[a-z][\w-]+|{_NAME})(?:\ <[\w\ -]+>)?(?:,\ {_SHORT})?"
    r"(?:\ [-–—]\ |:\ )(?P<does>.+)",
    re.VERBOSE,
)


def prose(text: str) -> Iterator[str]:
    """Yield the sentences of a passage that are people's prose: no code, table, list of links or heading."""
    for line in text.split("\n"):
        if _CODE.search(line[:2]) or " | " in line:
            continue
        for sentence in sentences(line):
            words = folded_words(sentence)
            if not MIN_WORDS <= len(words) <= MAX_WORDS or _CODE.search(sentence) or _IDENTIFIER.search(sentence):
                continue
            if sum(word in STOP_WORDS for word in words) >= MIN_FUNCTION * len(words) and sentence[0].isupper():
                yield sentence


def statements(text: str) -> Iterator[Statement]:
    """Yield what a passage says of names, settings and values: by its prose, and by its lists of options."""
    for sentence in prose(text):
        found = next(((match, ask) for form, ask in _FORMS if (match := form.match(sentence))), None)
        if found is None:
            continue
        parts = {name: value or "" for name, value in found[0].groupdict().items()}
        answer = parts.pop("answer").strip("`\"'")
        asked = found[1].format(**{**parts, "kind": parts.get("kind") or "name or setting"})
        if _sayable(asked, answer):
            yield Statement(sentence, _small_articles(asked), answer)
    for line in text.split("\n"):
        if (option := _OPTION.match(line)) and (asked := _of_option(option)) and _sayable(asked, option["answer"]):
            yield Statement(line, asked, option["answer"])


def _of_option(option: re.Match[str]) -> str:
    """Ask for an option of a list by the first sentence about it; empty where that says too little."""
    does = next(iter(sentences(option["does"])), "").rstrip(".")
    words = does.split()
    if not MIN_WORDS <= len(words) <= MAX_WORDS or re.search(r"[{}|=;<>\\:]|\w\(", does) or _IDENTIFIER.search(does):
        return ""
    kind, first = "option" if option["answer"].startswith("-") else "setting", words[0].lower()
    does = " ".join([first, *words[1:]])
    if first in SAYS:
        return f"Which {kind} {does}?"
    if first in DOES and words[1] != "not":
        return f"With which {kind} do you {does}?"
    return f"Which {kind} is {does}?" if first in {"the", "a", "an"} else ""


def _sayable(asked: str, answer: str) -> bool:
    said = folded_words(asked)
    if _POINTER.search(asked) or _PRONOUNS & set(folded_words(answer)):
        return False
    return not set(folded_words(answer)) & set(said) and answer.lower() not in asked.lower()


def _small_articles(asked: str) -> str:
    return re.sub(r"(?<=\w )(The|A|An|All|Each)(?= )", lambda found: found[0].lower(), asked)


def reads_as_sentence(text: str) -> bool:
    """Whether a question asks, has a verb and no code in it, repeats no part of itself, and is not too long."""
    words = folded_words(text)
    threes = Counter(zip(words, words[1:], words[2:], strict=False))
    repeated = any(one == other for one, other in pairwise(words)) or max(threes.values(), default=0) > 1
    asks = _ASKS.search(text) is not None and _VERB.search(text) is not None
    return asks and not repeated and 3 <= len(words) <= MAX_QUESTION and not DEBRIS.search(text)
