"""Links are resolved as their site would: paths, anchors, spellings of addresses, redirects; the rest is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hopbench.eval.benchmarks.documents import read_documents
from hopbench.retrieval.graph.construction.hyperlinks import resolve
from hopbench.retrieval.types import Link, Passage, Source

PAGES = {
    "index.md": ["", "welcome"],
    "guide/install.md": ["", "on-windows", "on-windows&part=2"],
    "guide/index.md": ["", "first-steps"],
    "guide/_über mich.md": [""],
    "api/client.mdx": ["", "pool-settings"],
    "ref/README.md": [""],
}


def passage(document: str, section: str = "", *targets: str) -> Passage:
    """A passage of a document, whose heading is the section's slug in words, with links to these targets."""
    heading = section.replace("-", " ").capitalize()
    title = f"{heading} ({document})" if section else document
    links = tuple(Link("here", target) for target in targets)
    return Passage(f"{document}#{section}" if section else document, title, "Text.", Source(None, document), links)


def reached(target: str, document: str = "guide/install.md") -> dict[str, float] | None:
    """What a link in a document leads to: passages with weights, or None for nothing."""
    pages = [passage(page, section) for page, sections in PAGES.items() for section in sections]
    found = resolve([*pages, Passage("x", "", "", Source(None, document), (Link("here", target),))])
    return None if found.unresolved or found.external else {to: edge[0] for (_, to), edge in found.edges.items()}


CLIENT = {"api/client.mdx": 1.0, "api/client.mdx#pool-settings": 0.5}
GUIDE = {"guide/index.md": 1.0, "guide/index.md#first-steps": 0.5}
POOL = {"api/client.mdx#pool-settings": 1.0}


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("../api/client.mdx", CLIENT),
        ("../api/client", CLIENT),
        ("../api/client.html?tab=2", CLIENT),
        ("/api/client/", CLIENT),
        ("/docs/v3/api/client", CLIENT),  # the site's root is a folder above the corpus
        ("../../api/client/", CLIENT),  # as a browser reads it at guide/install/
        ("../api/client.mdx#pool-settings", POOL),
        ("../api/client.mdx#Pool%20settings", POOL),
        ("/api/client#_pool_settings", POOL),  # AsciiDoc's slug
        ("/api/client#no-such-section", CLIENT),
        ("xref:../api/client.adoc#pool-settings", POOL),
        ("doc:/api/client", CLIENT),
        ("ref:pool_settings", POOL),
        ('{{< ref "/api/client.md" >}}', CLIENT),
        ("@site/docs/api/client.mdx", CLIENT),
        ("#on-windows", {"guide/install.md#on-windows": 1.0}),
        ("../guide/", GUIDE),
        ("index.html", GUIDE),
        ("/guide", GUIDE),
        ("/", {"index.md": 1.0, "index.md#welcome": 0.5}),
        ("../ref/", {"ref/README.md": 1.0}),
        ("_%C3%BCber%20mich.md", {"guide/_über mich.md": 1.0}),
        ("api/client.mdx#pool-settings", POOL),  # a passage's id
        ("missing.md", None),
        ("ref:missing", None),
        ("/client-v2", None),
        ("https://example.org/api/client", None),
        ("//example.org/api/client", None),
        ("mailto:a@example.org", None),
        ("../../../../etc/passwd", None),
    ],
)
def test_a_target_leads_where_its_site_would_lead(target: str, found: dict[str, float] | None) -> None:
    assert found == reached(target)


def test_links_of_a_pair_are_one_edge_and_one_to_itself_is_none() -> None:
    first = Passage(
        "a.md",
        "A",
        "",
        Source(None, "a.md"),
        (Link("all of it", "b.md"), Link("setup", "b.md#setup"), Link("setup", "b.md#setup"), Link("me", "#a")),
    )
    found = resolve([first, passage("b.md"), passage("b.md", "setup")])
    # The page first with 0.5 for its section, then the section itself with 1.
    assert {
        ("a.md", "b.md"): (1.0, ["all of it"]),
        ("a.md", "b.md#setup"): (1.0, ["all of it", "setup"]),
    } == found.edges
    assert (4, 0, []) == (found.internal, found.external, found.unresolved)


def site(folder: Path, name: str, content: str) -> Path:
    """A folder of documents with a file of redirects."""
    (folder / "kept").mkdir(parents=True)
    (folder / "a.md").write_text("# A\n\nSee [pools](/old/pools#size) and [the API](old-api.md).", encoding="utf-8")
    (folder / "kept" / "pools.md").write_text("# Pools\n\nText.\n\n## Size\n\nTen.", encoding="utf-8")
    (folder / "api.md").write_text("# API\n\nText.", encoding="utf-8")
    (folder / name).write_text(content, encoding="utf-8")
    return folder


MOVED = [("/old/:slug*", "/kept/:slug*"), ("/old-api", "/api")]
MKDOCS = """site_name: x
markdown_extensions:
  - pymdownx.emoji: {emoji_index: !!python/name:material.extensions.emoji.twemoji }
plugins:
  - search
  - redirects:
      redirect_maps: {old/pools.md: kept/pools.md, old-api.md: api.md}
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("docs.json", json.dumps({"redirects": [{"source": old, "destination": new} for old, new in MOVED]})),
        ("mint.json", json.dumps({"redirects": [{"source": old, "destination": new} for old, new in MOVED]})),
        ("mkdocs.yml", MKDOCS),
        ("../mkdocs.yml", MKDOCS),
        ("_redirects", "# moved\n/old/*  /kept/:splat  301\n/old-api  /interim\n/interim /api\n"),
    ],
)
def test_links_to_old_addresses_follow_the_redirects(tmp_path: Path, name: str, content: str) -> None:
    corpus = read_documents(site(tmp_path / "site", name, content))
    found = resolve(corpus.passages)
    assert {("a.md", "kept/pools.md#size"), ("a.md", "api.md")} == found.edges.keys()
    assert [] == found.unresolved
    assert () == corpus.left_out


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("docs.json", "{", "docs.json: its redirects cannot be read"),
        ("mkdocs.yml", "plugins: [\n", "mkdocs.yml: its redirects cannot be read"),
        ("docs.json", '{"redirects": [{"source": "/old-api", "destination": "/old-api"}, 3, {}]}', ""),
        ("_redirects", "/old-api /b\n/b /old-api\n", ""),  # a circle
    ],
)
def test_broken_redirects_are_named_and_harm_nothing(tmp_path: Path, name: str, content: str, problem: str) -> None:
    corpus = read_documents(site(tmp_path / "site", name, content))
    assert bool(problem) == any(line.startswith(problem) for line in corpus.left_out)
    assert 2 == len(resolve(corpus.passages).unresolved)
