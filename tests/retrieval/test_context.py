"""Document 5's graph context block: its text, its budget, whole entities only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.context import EntityCard, Relationship, format_context
from hopbench.retrieval.text.model_tokens import count_tokens

EXAMPLE = """\
## Knowledge Graph Context
Query entities: [Auth Service, OAuth Provider]

### Auth Service (concept)
Related: OAuth Provider (depends_on, weight: 8), User Model (implements),
  Login Flow (part_of), Session Store (uses)
Description: Core authentication service handling JWT issuance and validation...

### OAuth Provider (tool)
Related: Auth Service (depended_on_by), Google OAuth (implements),
  GitHub OAuth (implements)
Description: External OAuth2 provider integration layer...

### Relevant Relationships
- Auth Service -> OAuth Provider: "depends_on" -- Auth service delegates to OAuth
  provider for third-party login flows (strength: 8)
- Auth Service -> User Model: "implements" -- Auth service creates and validates
  user model instances during login (strength: 5)"""

CARDS = [
    EntityCard(
        "Auth Service",
        "concept",
        [
            ("OAuth Provider", "depends_on", 8.0),
            ("User Model", "implements", None),
            ("Login Flow", "part_of", None),
            ("Session Store", "uses", None),
        ],
        "Core authentication service handling JWT issuance and validation...",
    ),
    EntityCard(
        "OAuth Provider",
        "tool",
        [
            ("Auth Service", "depended_on_by", None),
            ("Google OAuth", "implements", None),
            ("GitHub OAuth", "implements", None),
        ],
        "External OAuth2 provider integration layer...",
    ),
]
RELATIONSHIPS = [
    Relationship(
        "Auth Service",
        "OAuth Provider",
        "depends_on",
        "Auth service delegates to OAuth provider for third-party login flows",
        8.0,
    ),
    Relationship(
        "Auth Service",
        "User Model",
        "implements",
        "Auth service creates and validates user model instances during login",
        5.0,
    ),
]


def test_the_block_is_the_example_of_the_source_to_the_letter() -> None:
    assert format_context(CARDS, RELATIONSHIPS) == EXAMPLE


def test_an_entity_that_does_not_fit_is_left_out_whole() -> None:
    header, first, second, _ = EXAMPLE.split("\n\n")
    room = count_tokens(header) + count_tokens(first) + count_tokens(second)
    assert format_context(CARDS, [], room) == f"{header}\n\n{first}\n\n{second}"
    assert format_context(CARDS, [], room - 1) == f"{header}\n\n{first}"
    assert format_context(CARDS, [], count_tokens(header)) == header


def test_a_relationship_that_does_not_fit_is_left_out_whole() -> None:
    last = count_tokens(EXAMPLE.rpartition("\n- ")[2]) + 1  # and its dash
    shorter = format_context(CARDS, RELATIONSHIPS, count_tokens(EXAMPLE) - 1)
    assert shorter == EXAMPLE.rpartition("\n- ")[0]
    assert count_tokens(shorter) == count_tokens(EXAMPLE) - last


def test_nothing_fits_or_nothing_is_known() -> None:
    assert format_context(CARDS, RELATIONSHIPS, 3) == ""
    assert format_context([], RELATIONSHIPS) == ""


def test_line_breaks_in_names_and_texts_cannot_begin_sections() -> None:
    card = EntityCard("A\n### B", "t\nu", [("C\n### D", "x", None)], "one\n\n### two")
    block = format_context([card], [Relationship("A\n- B", "C", "x", "said\n- more", 3.0)])
    assert [line for line in block.splitlines() if line.startswith("#")] == [
        "## Knowledge Graph Context",
        "### A ### B (t u)",
        "### Relevant Relationships",
    ]
    assert [line for line in block.splitlines() if line.startswith("-")] == [
        '- A - B -> C: "x" -- said - more (strength: 3)'
    ]


def test_a_long_description_ends_at_a_word() -> None:
    block = format_context([EntityCard("A", description="word " * 100)], [])
    assert block.splitlines()[-1].endswith("word...")
    assert len(" ".join(block.partition("Description: ")[2].split())) <= 160


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)
related = st.tuples(words, words, st.none() | st.floats(0, 10))
cards = st.lists(st.builds(EntityCard, words, words, st.lists(related, max_size=5), words), max_size=6)
relationships = st.lists(st.builds(Relationship, words, words, words, words, st.floats(0, 10)), max_size=6)


@given(cards, relationships, st.integers(0, 200))
def test_the_budget_is_never_exceeded(known: list[EntityCard], told: list[Relationship], budget: int) -> None:
    assert count_tokens(format_context(known, told, budget)) <= budget


@given(cards, relationships)
def test_more_budget_never_shortens_the_block(known: list[EntityCard], told: list[Relationship]) -> None:
    lengths = [count_tokens(format_context(known, told, budget)) for budget in (50, 100, 200, 400)]
    assert lengths == sorted(lengths)
