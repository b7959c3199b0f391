"""Document 5's own example from its triples to the files of a run: what a reader is told, letter for letter.

The document's block says `Auth Service -> OAuth Provider: "depends_on"`, and in OAuth Provider's section `Auth Service
(depended_on_by)`. English words are not turned round by rule, so ours says "inverse of depends_on" there. Of two names
of equal length the rarer comes first: OAuth Provider is mentioned in two passages, Auth Service in four.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.flows.cli.conftest import call, lines

PASSAGES = {
    "auth": ("Auth Service", "Core authentication service handling JWT issuance and validation. It logs users in."),
    "oauth": ("OAuth Provider", "External OAuth2 provider integration layer. It was added last."),
    "user": ("User Model", "A user has a name and credentials."),
    "login": ("Login Flow", "Credentials are asked for, then a session begins."),
    "session": ("Session Store", "Sessions are kept in memory."),
    "billing": ("Billing", "Invoices are written every month."),
}
KINDS = {"subject_type": "concept", "object_type": "tool"}
DELEGATES = "Auth service delegates to OAuth provider for third-party login flows"
CREATES = "Auth service creates and validates user model instances during login"
TRIPLES = [
    ("auth", "Auth Service", "depends_on", "OAuth Provider", {"weight": 8, "description": DELEGATES, **KINDS}),
    ("user", "Auth Service", "implements", "User Model", {"weight": 5, "description": CREATES}),
    ("login", "Auth Service", "part_of", "Login Flow", {"weight": 4}),
    ("session", "Auth Service", "uses", "Session Store", {"confidence": 0.3}),
    ("oauth", "OAuth Provider", "implements", "Google OAuth", {"weight": 2, "object_description": "Google's."}),
]
QUESTIONS = {
    "q1": "what happens if we change the OAuth provider?",
    "q2": "What does the Auth Service delegate to the OAuth Provider?",
}
OF_OAUTH = """\
### OAuth Provider (tool)
Related: Auth Service (inverse of depends_on, weight: 8),
  Google OAuth (implements, weight: 2)
Description: External OAuth2 provider integration layer."""
DEPENDS = """\
- Auth Service -> OAuth Provider: "depends_on" -- Auth service delegates to OAuth
  provider for third-party login flows (strength: 8)"""
BLOCKS = {
    "q1": f"""\
## Knowledge Graph Context
Query entities: [OAuth Provider]

{OF_OAUTH}

### Relevant Relationships
{DEPENDS}
- OAuth Provider -> Google OAuth: "implements" (strength: 2)""",
    "q2": f"""\
## Knowledge Graph Context
Query entities: [OAuth Provider, Auth Service]

{OF_OAUTH}

### Auth Service (concept)
Related: OAuth Provider (depends_on, weight: 8), User Model (implements, weight: 5),
  Login Flow (part_of, weight: 4), Session Store (uses, weight: 3)
Description: Core authentication service handling JWT issuance and validation.

### Relevant Relationships
{DEPENDS}
- Auth Service -> User Model: "implements" -- Auth service creates and validates
  user model instances during login (strength: 5)
- Auth Service -> Login Flow: "part_of" (strength: 4)
- Auth Service -> Session Store: "uses" (strength: 3)
- OAuth Provider -> Google OAuth: "implements" (strength: 2)""",
}


@pytest.fixture
def services(tmp_path: Path) -> Path:
    """The corpus, its questions and its triples as files."""
    folder = tmp_path / "services"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": key, "title": title, "text": text} for key, (title, text) in PASSAGES.items()]
    asked = [{"_id": key, "text": text, "metadata": {"answer": "login"}} for key, text in QUESTIONS.items()]
    told = [
        {"passage_id": passage, "subject": subject, "relation": relation, "object": thing, **more}
        for passage, subject, relation, thing, more in TRIPLES
    ]
    gold = "".join(f"{key}\t{passage}\t1\n" for key in QUESTIONS for passage in ("auth", "oauth"))
    for name, rows in (("corpus", corpus), ("queries", asked), ("triples", told)):
        (folder / f"{name}.jsonl").write_text(lines(rows), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{gold}", encoding="utf-8")
    return folder


def test_the_reader_is_told_what_document_5_s_triples_say_the_right_way_round(services: Path, tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    graph = ["--dataset", services, "--triples", services / "triples.jsonl"]
    run = call("run", *graph, "--strategies", "hybrid,neighborhood", "--out", out, "--no-prefect", home=home)
    assert (0, "") == (run.code, run.err)

    table = pd.read_parquet(out / "questions.parquet").set_index(["strategy", "question_id"])
    assert BLOCKS == table.loc["neighborhood"]["graph_context"].to_dict()
    assert {"q1": "", "q2": ""} == table.loc["hybrid"]["graph_context"].to_dict()

    told = call("explain", "q2", "--run", out, "--strategy", "neighborhood", home=home).out
    assert "OAuth Provider ─RELATED_TO 0.8→ Auth Service ─MENTIONED_IN" in told  # the path goes against the relation
    assert 'Auth Service -> OAuth Provider: "depends_on"' in told
    assert 'OAuth Provider -> Auth Service: "depends_on"' not in told
    pasted = call("explain", "q2", "--run", out, "--strategy", "neighborhood", "--cypher", home=home).out
    assert "collect(coalesce(r.statements, [])) AS statements" in pasted
