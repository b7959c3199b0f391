"""What trees see of the best candidates of the last pass: each by itself, among the others, and with the first ones.

Most features are shares, ranks or distances within one question, which mean the same in every corpus. Nothing here is
about the question alone: such features told data sets apart, not passages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hopbench.retrieval.search.exact import COSINE_DECIMALS
from hopbench.retrieval.strategies.hoprank.candidates import BASE_FEATURES, Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE
from hopbench.retrieval.strategies.hoprank.edges import EDGE_FEATURES
from hopbench.retrieval.strategies.hoprank.links import TOP, Closeness, ListFacts, Pairs, WordLinks
from hopbench.retrieval.strategies.hoprank.paths import PATHS, Passed, listed
from hopbench.retrieval.strategies.hoprank.questions import word_batches
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, ListedWords, Numbers
from hopbench.retrieval.support.arrays import distinct, rows_of

LISTED = 100  # candidates among which ranks and edges are counted
READ = 50  # of those, the best ones, which trees put in order
MIN_EDGE = 0.1  # P(edge)
FEATURE_DECIMALS = 6  # a threshold of a tree is never nearer to a value than that


Feature = Callable[[ListFacts], Floats]


def rank_of(values: Floats) -> Floats:
    """Rank each value within its list from 0, equal ones in their order."""
    order, ranks = (-values).argsort(axis=-1, kind="stable"), np.empty(values.shape)
    np.put_along_axis(ranks, order, np.arange(values.shape[-1], dtype=np.float64)[None], axis=-1)
    return ranks


def behind(values: Floats) -> Floats:
    """Subtract the best value of each list."""
    return np.asarray(values - values.max(axis=-1, keepdims=True))


def edges_above(facts: ListFacts) -> Floats:
    """P(edge) of the best edge from each candidate to those below it, (n, r, r)."""
    read = facts.shape[1]
    return np.asarray(facts.edge[:, :read, :read] * facts.above[:read, :read].T)


def same_title_above(facts: ListFacts) -> Floats:
    """1 where a candidate above it is titled by the same entity."""
    own = facts.own[:, : facts.shape[1]]
    same = (own[:, None] == own[..., None]) & (own != NOWHERE)[..., None]
    return np.asarray((same & facts.above[: own.shape[1], : own.shape[1]]).any(axis=2), np.float64)


def like_best(facts: ListFacts) -> Floats:
    """The larger cosine of it and the first two, itself aside."""
    alike = facts.alike[..., :2]
    return np.asarray((alike * (1.0 - np.eye(*alike.shape[1:]))).max(axis=2))


def length(facts: ListFacts) -> Floats:
    """Its words / the mean of the corpus's chunks, at most 4."""
    corpus = facts.candidates.corpus
    mean = max(len(corpus.words.numbers), 1) / max(corpus.chunks, 1)
    return np.asarray(np.minimum(corpus.words.lengths(facts.chunks) / mean, 4.0))


# docs/hoprank.md has the formula of each feature.
STANDING: Mapping[str, Feature] = {
    "lead_1": lambda facts: facts.lead(0),
    "lead_2": lambda facts: facts.lead(1),
    "lead_3": lambda facts: facts.lead(2),
    "lead_4": lambda facts: facts.lead(3),
    "lead_5": lambda facts: facts.lead(4),
    "gap_above": lambda facts: -np.diff(facts.score, prepend=facts.score[:, :1]),
    "gap_below": lambda facts: -np.diff(facts.score, append=facts.score[:, -1:]),
    "rank": lambda facts: np.broadcast_to(np.arange(facts.score.shape[1], dtype=np.float64), facts.score.shape),
    "first_lead": lambda facts: behind(facts.first_score),
    "first_rank": lambda facts: rank_of(facts.first_score),
    "pool_lead": lambda facts: behind(facts.pool_score),
    "pool_rank": lambda facts: rank_of(facts.pool_score),
    "bm25_rank": lambda facts: rank_of(facts.base[..., BASE_FEATURES.index("bm25")]),
    "dense_rank": lambda facts: rank_of(facts.base[..., BASE_FEATURES.index("dense")]),
    "coverage_rank": lambda facts: rank_of(facts.base[..., BASE_FEATURES.index("coverage")]),
    "sentence_rank": lambda facts: rank_of(facts.base[..., BASE_FEATURES.index("sentence")]),
    "walk_rank": lambda facts: rank_of(facts.base[..., BASE_FEATURES.index("walk")]),
    "path_rank": lambda facts: rank_of(facts.paths[..., PATHS.index("path_any")]),
}
LIST: Mapping[str, Feature] = {
    "best_anchor": lambda facts: facts.best_anchor,
    "best_edge": lambda facts: facts.best_edge,
    "edges_in": lambda facts: (facts.edge > 0).sum(axis=1).astype(np.float64),
    "is_anchor": lambda facts: facts.anchor.astype(np.float64),
    "edge_from_above": lambda facts: edges_above(facts).max(axis=1, initial=0.0),
    "linked_above": lambda facts: (edges_above(facts)[:, :TOP] > MIN_EDGE).sum(axis=1).astype(np.float64),
    "edge_from_best": lambda facts: facts.edge[:, :2].max(axis=1, initial=0.0),
    "leads_to_best": lambda facts: facts.edge[..., :TOP].max(axis=2, initial=0.0),
    "leads_on": lambda facts: (facts.edge * facts.sure[:, None]).max(axis=2, initial=0.0),
    "adds_open": lambda facts: facts.share(facts.new_words(), of_open=True),
    "adds": lambda facts: facts.share(facts.new_words()),
    "same_title_above": same_title_above,
    "cosine": lambda facts: facts.cosine,
    "like_best": like_best,
    "length": length,
}


def close_adds(facts: ListFacts) -> Floats:
    """idf share by which it comes closer to the question's words than the first four, as far as they stand above it."""
    close = facts.close
    known = np.maximum.accumulate(close[:, :TOP], axis=1)
    above = np.minimum(np.arange(close.shape[1]), known.shape[1])  # how many of these
    before = np.concatenate([np.zeros_like(known[:, :1]), known], axis=1)[:, above]
    return facts.share(np.maximum(close - before, 0.0))


def best_sentence(facts: ListFacts, values: Floats) -> Floats:
    """Find the largest value of the sentences of each that is read, (n, r)."""
    return facts.closeness.read.best(values).reshape(facts.shape)


def close_sentence(facts: ListFacts) -> Floats:
    """How close its best sentence comes to the open words, by their idf shares."""
    closeness = facts.closeness
    share = facts.candidates.questions.open_share(closeness.sentence, closeness.read.of_sentence)
    return best_sentence(facts, share)


def pair_or_own(facts: ListFacts, where: Flags) -> Floats:
    """How close it and a partner come together, or it alone, by idf shares, minus the best."""
    return behind(np.maximum(facts.of_partners(facts.pairs.together, where), facts.pairs.own))


def pair_sure(facts: ListFacts, where: Flags) -> Floats:
    """How close it and a partner come together, times the partner's σ."""
    return facts.of_partners(facts.pairs.together, where, sure=True)


def sentences_sure(facts: ListFacts, where: Flags) -> Floats:
    """The same of the title and best sentence of both, minus the best."""
    return behind(facts.of_partners(facts.pairs.of_sentences, where, sure=True))


def pair_adds(facts: ListFacts, where: Flags) -> Floats:
    """What it adds to how close a partner comes alone, the best; -1 without partner."""
    pairs = facts.pairs
    alone = pairs.own[:, None, : pairs.together.shape[2]]
    return np.asarray(np.max(np.where(where, pairs.together - alone, -1.0), axis=2, initial=-1.0))


def pair_edge_gain(facts: ListFacts) -> Floats:
    """P(edge) · what such a partner adds to how close it comes alone, the best."""
    pairs = facts.pairs
    return facts.of_partners((pairs.together - pairs.own[..., None]) * pairs.edge, pairs.linked)


def pair_title_open(facts: ListFacts) -> Floats:
    """`pair_title` for the open words."""
    pairs = facts.pairs
    return behind(np.maximum(facts.of_partners(pairs.open_together, pairs.titled), pairs.open_own))


def pair_linked_sure(facts: ListFacts) -> Floats:
    """`pair_any_sure` with partners linked either way, but minus the value of the first one."""
    values = pair_sure(facts, facts.pairs.linked | facts.pairs.titled)
    return np.asarray(values - values[:, :1])


CLOSENESS: Mapping[str, Feature] = {
    "close_adds": close_adds,
    "close_gain": lambda facts: facts.share(np.maximum(facts.close - facts.close[:, :1], 0.0), of_open=True),
    "close_open": lambda facts: behind(facts.pairs.open_own),
    "close_sentence": close_sentence,
    "sentence_dense": lambda facts: best_sentence(facts, facts.closeness.dense),
    "sentence_dense_open": lambda facts: best_sentence(facts, facts.closeness.dense_open),
    "sentence_dense_rank": lambda facts: rank_of(best_sentence(facts, facts.closeness.dense)),
}
PAIRS: Mapping[str, Feature] = {
    "pair_any": lambda facts: pair_or_own(facts, facts.pairs.others),
    "pair_any_sure": lambda facts: behind(pair_sure(facts, facts.pairs.others)),
    "pair_edge": lambda facts: pair_or_own(facts, facts.pairs.linked),
    "pair_edge_sure": lambda facts: behind(pair_sure(facts, facts.pairs.linked)),
    "pair_edge_gain": pair_edge_gain,
    "pair_edge_adds": lambda facts: pair_adds(facts, facts.pairs.linked),
    "pair_title": lambda facts: pair_or_own(facts, facts.pairs.titled),
    "pair_title_open": pair_title_open,
    "pair_title_adds": lambda facts: pair_adds(facts, facts.pairs.titled),
    "pair_title_sentences": lambda facts: sentences_sure(facts, facts.pairs.titled),
    "pair_linked": lambda facts: pair_or_own(facts, facts.pairs.linked | facts.pairs.titled),
    "pair_linked_sure": pair_linked_sure,
    "pair_linked_sentences": lambda facts: sentences_sure(facts, facts.pairs.linked | facts.pairs.titled),
    "titles_linked": lambda facts: facts.pairs.titled.sum(axis=2).astype(np.float64),
}


def title_new(facts: ListFacts) -> Floats:
    """Σ idf of its title's words that a partner has and the question lacks / ln(n + 1), times its σ, the best."""
    return facts.of_partners(facts.links.new, sure=True)


def title_explained(facts: ListFacts) -> Floats:
    """idf share of its title that stands in a partner or in the question, times the partner's σ, the best."""
    return facts.of_partners(facts.links.explained, sure=True)


def title_together(facts: ListFacts) -> Floats:
    """`title_explained`, times how close both come to the question together, the best."""
    return facts.of_partners(facts.links.explained * facts.pairs.together, sure=True)


def holds_title_sure(facts: ListFacts) -> Floats:
    """idf share of a partner's title that stands in it, times the partner's σ, the best."""
    return facts.of_partners(facts.links.holds, sure=True)


def rare_words_sure(facts: ListFacts) -> Floats:
    """What rare words count that it shares with a partner, times the partner's σ, the best."""
    return facts.of_partners(facts.links.rare, sure=True)


def title_told(facts: ListFacts, *, first: bool = False) -> Floats:
    """idf share of its title in a partner's sentence, times how close that comes to the question, times σ, the best."""
    links = facts.links
    values = links.stated_title * links.relevance
    return facts.stated(links.titled, values, links.stated_by, sure=not first, first=first)


def title_new_told(facts: ListFacts) -> Floats:
    """`title_new` of a partner's sentence, times how close that comes to the question, the best."""
    links = facts.links
    return facts.stated(links.titled, links.stated_new * links.relevance, links.stated_by)


def title_told_together(facts: ListFacts) -> Floats:
    """idf share of its title in a partner's sentence, times how close both come to the question together, times σ."""
    links = facts.links
    return facts.stated(links.titled, links.stated_title * links.joint_relevance, links.stated_by)


def holds_title_told(facts: ListFacts, *, sure: bool = False) -> Floats:
    """idf share of a partner's title in one of its sentences, times how close that comes to the question, the best."""
    links = facts.links
    return facts.stated(links.stated_by, links.stated_title * links.relevance, links.titled, sure=sure)


WORD_LINKS: Mapping[str, Feature] = {
    "title_in": lambda facts: facts.of_partners(facts.links.title),
    "title_in_sure": lambda facts: facts.of_partners(facts.links.title, sure=True),
    "title_in_best": lambda facts: facts.links.title[..., 0],
    "title_new": title_new,
    "title_new_behind": lambda facts: behind(title_new(facts)),
    "title_explained": title_explained,
    "title_explained_behind": lambda facts: behind(title_explained(facts)),
    "title_gain": lambda facts: facts.of_partners(facts.links.explained - facts.links.asked[..., None], sure=True),
    "title_together": title_together,
    "title_together_behind": lambda facts: behind(title_together(facts)),
    "holds_title": lambda facts: facts.of_partners(facts.links.holds),
    "holds_title_sure": holds_title_sure,
    "holds_title_behind": lambda facts: behind(holds_title_sure(facts)),
    "title_told": title_told,
    "title_told_best": lambda facts: title_told(facts, first=True),
    "title_new_told": title_new_told,
    "title_new_told_behind": lambda facts: behind(title_new_told(facts)),
    "title_told_together": title_told_together,
    "title_told_together_behind": lambda facts: behind(title_told_together(facts)),
    "holds_title_told": holds_title_told,
    "holds_title_told_sure": lambda facts: holds_title_told(facts, sure=True),
    "rare_words": lambda facts: facts.of_partners(facts.links.rare),
    "rare_words_sure": rare_words_sure,
    "rare_words_behind": lambda facts: behind(rare_words_sure(facts)),
    "rare_words_best": lambda facts: facts.links.rare[..., 0],
}
# Groups of features that only trees see, by the name of their ablation.
GROUPS: Mapping[str, Mapping[str, Feature]] = {
    "standing": STANDING,
    "list": LIST,
    "closeness": CLOSENESS,
    "pairs": PAIRS,
    "word_links": WORD_LINKS,
}
TREE_FEATURES = (
    *BASE_FEATURES,
    *PATHS,
    *(name for group in GROUPS.values() for name in group),
    *(f"best_{name}" for name in EDGE_FEATURES),
)


def tree_features(facts: ListFacts) -> Floats:
    """Compute the features of read candidates, (n, r, f), rounded: no last bit decides at a threshold."""
    read = facts.shape[1]
    listed = [feature(facts)[:, :read] for group in GROUPS.values() for feature in group.values()]
    parts = facts.base[:, :read], facts.paths[:, :read], np.stack(listed, axis=2), facts.best[:, :read]
    return np.concatenate(parts, axis=2).round(FEATURE_DECIMALS)


def tree_lists(candidates: Candidates, passed: Sequence[Passed]) -> dict[int, tuple[Numbers, Floats]]:
    """The chunks that trees read, (r,), best first, and their features (r, f), by question.

    Each question's passes must have followed paths.
    """
    return {
        number: (chunks[: facts.shape[1]], features)
        for facts in list_facts(candidates, passed)
        for number, chunks, features in zip(facts.of.tolist(), facts.chunks, tree_features(facts), strict=True)
    }


def list_facts(candidates: Candidates, passed: Sequence[Passed]) -> Iterator[ListFacts]:
    """Collect the facts about questions after the last of each one's passes.

    Lists of the same size are side by side, as many as have some words to be read.
    """
    each, corpus = [listed(one, LISTED) for one in passed], candidates.corpus
    sizes = np.array([len(one["chunks"]) for one in each])
    for size in distinct(sizes).tolist():
        of = np.flatnonzero(sizes == size)
        lengths = [corpus.words.lengths(each[number]["chunks"][:READ]).sum() for number in of.tolist()]
        for part in word_batches(np.array(lengths)):
            columns = [each[number] for number in of[part].tolist()]
            facts: dict[str, Any] = {name: np.stack([one[name] for one in columns]) for name in columns[0]}
            yield _side_by_side(candidates, of[part], facts)


def _side_by_side(candidates: Candidates, of: Numbers, facts: Mapping[str, Any]) -> ListFacts:
    corpus, questions, chunks = candidates.corpus, candidates.questions, facts["chunks"]
    rows = candidates.rows((chunks + of[:, None] * corpus.chunks).ravel()).reshape(chunks.shape)
    read = chunks[:, :READ]
    vectors = rows_of(corpus.vectors, read).astype(np.float64)
    words = ListedWords.read(corpus.words, read.ravel(), of.repeat(read.shape[1]))
    closeness = Closeness.of(corpus, questions, words, candidates.word_vectors)
    edge = facts["edge"][:, :READ, :READ]
    return ListFacts(
        **facts,
        candidates=candidates,
        of=of,
        base=candidates.base.take(rows, axis=0),
        covers=candidates.covered.take(rows, axis=0),
        own=corpus.mentions.own[chunks],
        cosine=(vectors @ candidates.vectors[of, :, None].astype(np.float64))[..., 0].round(COSINE_DECIMALS),
        alike=(vectors @ vectors.swapaxes(1, 2)).round(COSINE_DECIMALS),
        closeness=closeness,
        pairs=Pairs.of(corpus, questions, read.ravel(), closeness, edge),
        links=WordLinks.of(corpus, questions, closeness, read.shape),
    )
