from hopbench.retrieval.strategies.hoprank.strategy import HopRank

__all__ = ["HopRank"]
