"""Questions about documentation: resolved hyperlinks, the clauses around them, and what the linked pages say."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.eval.synthesize.conftest import MADE
from tests.support.graphs import built_index, plan_of

from hopbench.eval.synthesize._documentation import HIDDEN
from hopbench.eval.synthesize._hyperlinks import Pages
from hopbench.eval.synthesize._statements import reads_as_sentence, statements
from hopbench.eval.synthesize.generate import Generator, Recipe, Searched
from hopbench.eval.synthesize.quality import quality
from hopbench.eval.types import Benchmark
from hopbench.retrieval.embedding.models import WordLlamaEmbedder
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Link, Passage, Source


def page(name: str, text: str, *links: tuple[str, str]) -> Passage:
    document = name.partition("#")[0]
    title = name.rpartition("/")[2].partition(".")[0].capitalize()
    return Passage(name, title, text, Source(None, document, document), tuple(Link(*link) for link in links))


@pytest.fixture(scope="module")
def pages() -> list[Passage]:
    return [
        page(
            "guide/workers.md",
            "Each worker uses a queue for jobs that are ready to start. See the locks page for details.",
            ("queue", "../concepts/queues"),
            ("locks page", "/v2/concepts/locks.md#leases"),
        ),
        page(
            "concepts/queues.md",
            "A queue is a list of jobs that waits in the database until a machine is free.\n"
            "The default polling interval is 15 seconds.\n--by <field> - selects the order of waiting jobs.",
        ),
        page("concepts/locks.md", "Locks keep two jobs apart. Read on.", ("Workers", "../guide/workers.md")),
        page("concepts/locks.md#leases", "The default lease of jobs is 5 minutes. You can renew it at any time."),
        page("concepts/locks.md#leases&part=2", "The `prolong` method updates the lease of running jobs by a day."),
    ]


def test_links_lead_to_pages_sections_and_their_parts(pages: list[Passage]) -> None:
    found = {(link.source, link.text): link.targets for link in Pages(pages).hyperlinks}
    assert {(0, "queue"): (1,), (0, "locks page"): (3, 4), (2, "Workers"): (0,)} == found


@pytest.mark.parametrize(
    ("target", "rows"),
    [
        ("#leases", (3, 4)),
        ("locks.md#leases", (3, 4)),
        ("/concepts/locks/", (2, 3, 4)),
        ("/en/v2/concepts/locks#unknown", (2, 3, 4)),
        ("#unknown", ()),
        ("https://example.org/concepts/locks.md", ()),
        ("mailto:ada@example.org", ()),
        ("../../../etc/passwd", ()),
        ("", ()),
    ],
)
def test_targets_are_resolved_as_a_site_does(pages: list[Passage], target: str, rows: tuple[int, ...]) -> None:
    source = pages[2]
    assert rows == tuple(Pages(pages).targets(source, Link("words", target)))


def test_a_statement_is_asked_for_its_name_setting_or_value(pages: list[Passage]) -> None:
    asked = {one.question: one.answer for row in pages for one in statements(row.text)}
    expected = {
        "What is the default polling interval?": "15 seconds",
        "Which option selects the order of waiting jobs?": "--by",
        "What is the default lease of jobs?": "5 minutes",
        "Which method updates the lease of running jobs by a day?": "prolong",
    }
    assert expected == asked


@pytest.mark.parametrize(
    "text",
    [
        "def lease(job): return 5  # The default lease is 5 minutes",
        "| lease | The default lease is 5 minutes |",
        "The run fb8e3073-c449-4b11-9a5e-2a1de8f0aa11 uses the default lease that is 5 minutes.",
        "Setup\nNext steps\nPrerequisites",
        "This is a list of jobs that waits for a free machine.",
    ],
)
def test_code_tables_identifiers_and_headings_state_nothing(text: str) -> None:
    assert [] == list(statements(text))


def test_questions_follow_hyperlinks_in_the_documents_own_words(pages: list[Passage], tmp_path: Path) -> None:
    index = built_index(plan_of(pages, embedder=WordLlamaEmbedder()), tmp_path)
    generator = Generator(index, pages)
    made = generator.make(Recipe(questions=10)).questions
    found = {
        each.wording.text: ([index.chunks[row].id for row in each.wording.draft.gold], each.wording.draft.answer)
        for each in made
    }
    lease = "Each worker uses a queue for jobs that are ready to start. What is the default lease of jobs?"
    assert (["guide/workers.md", "concepts/locks.md#leases"], "5 minutes") == found[lease]
    term = next(text for text, (_, answer) in found.items() if answer == "queue")
    assert f"uses {HIDDEN} for jobs" in term
    assert "which is a list of jobs that waits in the database" in term
    assert {"links": 1.0, "answers": 1.0, "sentences": 1.0} == {
        part: share.value for part, share in quality(generator.evidence, made, 10).shares.items()
    }


def test_passages_without_links_give_the_questions_that_they_gave(
    generator: Generator, world: Benchmark, made: Sequence[Searched]
) -> None:
    texts = [each.wording.text for each in made]
    again = Generator(generator.evidence.index, world.passages).make(MADE).questions
    assert texts == [each.wording.text for each in again]
    # Computed before hyperlinks were evidence.
    assert (
        "106edddff1aa37e5196de267fe20e91d884e6e9343fb9ecd4fe7fca001b723e1"
        == hashlib.sha256("\n".join(texts).encode()).hexdigest()
    )


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("Who founded the harbour of Merrow?", True),
        ("Workers poll something for runs. What is the default interval?", True),
        ("Only some pools need a worker. To start one, which flag do you pass?", True),
        ("How many flag deployment 474b8a1f c449 variable of the example setup?", False),
        ("the file of the file", False),
        ("What is the name name of it?", False),
        ("What does {{ secret }} hold?", False),
        ("What is " + "one of " * 30 + "them?", False),
    ],
)
def test_a_small_rule_tells_sentences_from_debris(text: str, reads: bool) -> None:
    assert reads == reads_as_sentence(text)


def test_links_that_ask_for_nothing_are_named_with_the_remedy(tmp_path: Path) -> None:
    linked = [page("a.md", "See b.", ("b", "b.md")), page("b.md", "See a.", ("a", "a.md"))]

    with pytest.raises(InputError, match=r"2 hyperlinks join the 2 passages.*hopbench annotate"):
        Generator(built_index(plan_of(linked), tmp_path), linked).make(Recipe(questions=3))
