"""HopBench measures graph-expansion retrieval for multi-hop questions."""

from importlib.metadata import version

__version__ = version("hopbench")
