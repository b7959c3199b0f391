"""One regression tree as plain lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tree:
    """A binary tree of n splits and n + 1 leaves.

    At split i a row goes to `left[i]` where its `feature[i]` is at most `threshold[i]`, else to `right[i]`: a split's
    number, or ~k for leaf k. `value` and `count` (n + 1,) are what each leaf adds and its share of training rows.
    """

    feature: Sequence[int]
    threshold: Sequence[float]
    left: Sequence[int]
    right: Sequence[int]
    value: Sequence[float]
    count: Sequence[int]

    def leaves(self) -> list[tuple[int, list[tuple[int, bool]]]]:
        """The leaves from left to right, each with its way from the root: splits, and whether it goes right."""
        found: list[tuple[int, list[tuple[int, bool]]]] = []
        todo: list[tuple[int, list[tuple[int, bool]]]] = [(0 if self.feature else ~0, [])]
        while todo:
            node, way = todo.pop()
            if node < 0:
                found.append((~node, way))
                continue
            todo.append((self.right[node], [*way, (node, True)]))
            todo.append((self.left[node], [*way, (node, False)]))
        return found
