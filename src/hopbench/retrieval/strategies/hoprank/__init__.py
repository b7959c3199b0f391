"""hoprank: a learned ranking of chunks by their words and by the best paths into them.

The modules in the order of a ranking; docs/hoprank.md has the method and the formula of every feature, edge and pass:

- `words`, `corpus`: words, mentions and graph of a corpus, read once per index.
- `questions`, `candidates`: questions, their pools of chunks, and the base features of these.
- `edges`, `paths`: edges from the best chunks with their features, and the value of paths over them.
- `links`, `tree_features`: what trees see of the best candidates.
- `trees`, `weights`: trees, the file of all learned numbers, and the passes that apply them.
- `strategy`: the rankings with paths and contributions.
"""

from hopbench.retrieval.strategies.hoprank.strategy import HopRank

__all__ = ["HopRank"]
