"""What a strategy noted, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Name = Callable[[str], str]
MAX_NOTED = 10


def note_words(value: object, name: Name) -> str:
    """What a strategy notes: ids by their names, the first of long lists, nested lists as chains."""
    if isinstance(value, Mapping):
        items = [f"{name(str(key))}: {_item_words(item, name)}" for key, item in value.items()]
    elif isinstance(value, list | tuple):
        items = [_item_words(item, name) for item in value]
    else:
        return _item_words(value, name)
    more = f", and {len(items) - MAX_NOTED} more" if len(items) > MAX_NOTED else ""
    return ", ".join(items[:MAX_NOTED]) + more if items else "none"


def _item_words(value: object, name: Name) -> str:
    if isinstance(value, Mapping):
        return "(" + "; ".join(f"{key} {_item_words(item, name)}" for key, item in value.items()) + ")"
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        return note_words(value, name)
    if isinstance(value, list | tuple):
        return " → ".join(
            _group_words(item, name) if isinstance(item, list | tuple) else _item_words(item, name) for item in value
        )
    return f"{value:.4g}" if isinstance(value, float) else name(str(value)) or "none"


def _group_words(values: Sequence[object], name: Name) -> str:
    """A list that is one link of a chain, such as the tags of an edge: its items in no order."""
    return "{" + ", ".join(_item_words(item, name) for item in values) + "}"
