"""Errors a user can act on: each names what was wrong, the value, the limit and the remedy.

The command line prints the message of a `HopBenchError` without a traceback and exits with its `exit_code`.
Anything else that escapes is a defect of the program and keeps its traceback (exit code 1).
"""

from __future__ import annotations

from collections.abc import Iterable

from hopbench.retrieval.support.spelling import meant


class HopBenchError(Exception):
    """Base of every error that HopBench raises on purpose."""

    exit_code = 1


class InputError(HopBenchError):
    """A file, flag, parameter or environment variable that cannot be used as given."""

    exit_code = 2


class ParameterError(InputError):
    """A strategy or build parameter outside its bounds."""


class UnknownNameError(InputError):
    """A name that no registry knows; the message has the whole list, and the name that was misspelt if there is one.

    `also` are names that are known too and not listed.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], also: Iterable[str] = ()) -> None:
        names = sorted(known)
        near = meant(name, [*names, *also])
        hint = f" Did you mean {near!r}?" if near else ""
        super().__init__(f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}")


class MissingExtraError(InputError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the optional packages of {extra!r}: pip install 'hopbench[{extra}]'")


class RegressionError(HopBenchError):
    """A nightly run is significantly worse than the run it is compared with."""

    exit_code = 3


class TargetError(HopBenchError):
    """A figure misses a target that it was to keep."""

    exit_code = 3


class IncompleteError(HopBenchError):
    """The work stopped before its end and can be continued by the same command."""

    exit_code = 4


class StrategyError(HopBenchError):
    """A strategy failed on a question that a program asked it."""


class StoreError(HopBenchError):
    """The graph store refused, failed or went away; what is finished is kept."""

    exit_code = 4


class DamagedGraphError(StoreError):
    """The file of an embedded graph does not read as it was written; it can be built again."""
