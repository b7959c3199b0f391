"""Registry of plug-ins of every kind: built-in ones and those that installed packages offer, loaded when first used.

Reading the names of a group imports no package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Generic, TypeVar

from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.retrieval.plugins.code import PluginCode

STRATEGIES = "hopbench.strategies"
METRICS = "hopbench.metrics"
LOADERS = "hopbench.loaders"
EMBEDDERS = "hopbench.embedders"
RERANKERS = "hopbench.rerankers"
EXTRACTORS = "hopbench.extractors"


def offered(group: str) -> list[EntryPoint]:
    """The entry points of a group, in the order of their names and packages."""
    return sorted(entry_points(group=group), key=lambda point: (point.name, package_of(point)))


def offered_names(group: str) -> list[str]:
    """The names in a group, whether or not the plug-ins behind them can be loaded."""
    return list(dict.fromkeys(point.name for point in offered(group)))


def package_of(point: EntryPoint) -> str:
    """`hopbench-mine 1.0`; empty for an entry point without a distribution."""
    return "" if point.dist is None else f"{point.dist.name} {point.dist.version}"


T = TypeVar("T")
REMEDY = "Correct the package and install it again, or uninstall it"


class Registry(Generic[T]):
    """What one entry point group offers, by name, beside the built-in ones.

    A plug-in that cannot be used stops no other: `broken` holds the reason by name, and only asking for it raises.
    """

    def __init__(self, noun: str, group: str, built_in: Mapping[str, str], check: Callable[[str, object], T]) -> None:
        """`built_in` maps names to `module:attribute`; `check` returns a loaded object or refuses it (InputError)."""
        self.noun = noun
        self.group = group
        self._built_in = {name: EntryPoint(name, value, group) for name, value in built_in.items()}
        self._offered: dict[str, list[EntryPoint]] = {}
        for point in offered(group):
            self._offered.setdefault(point.name, []).append(point)
        self._check = check
        self._loaded: dict[str, T] = {}
        self._added: dict[str, T] = {}
        self._code: dict[str, tuple[PluginCode, ...]] = {}
        self._broken: dict[str, str] = {}

    def add(self, name: str, value: T) -> T:
        """Register an object in this process alone; one that was added before under the same name is replaced.

        Raises InputError where `value` cannot be used, or where a built-in one or a package has the name.
        """
        if name in self._built_in or name in self._offered:
            raise InputError(f"the name {name!r} of this {self.noun} is taken: give it another one")
        from hopbench.retrieval.plugins.code import plugin_code

        self._added[name] = self._check(name, value)
        self._code[name] = plugin_code(value)
        return value

    def get(self, name: str) -> T:
        """The object registered under `name`. Raises UnknownNameError, and InputError for a broken plug-in."""
        if name in self._added:
            return self._added[name]
        if name in self._built_in and name not in self._loaded:
            self._loaded[name] = self._check(name, self._built_in[name].load())
        if name not in self._loaded and name in self._offered:
            self._load(name)
        if name in self._loaded:
            return self._loaded[name]
        if name in self._broken:
            raise InputError(self._broken[name])
        raise UnknownNameError(self.noun, name, self.names())

    def names(self) -> list[str]:
        """The names of all that can be used: the built-in ones, then the plug-ins."""
        return [*self._built_in, *self.plugins(), *self._added]

    def plugins(self) -> list[str]:
        """The names of the plug-ins that can be used."""
        for name in self._offered:
            self._load(name)
        return [name for name in self._offered if name in self._loaded and name not in self._built_in]

    @property
    def broken(self) -> Mapping[str, str]:
        """Name → why the plug-in cannot be used, with its package and the remedy."""
        self.plugins()
        return self._broken

    def code_of(self, name: str) -> tuple[PluginCode, ...]:
        """The code of the plug-in of that name; nothing for built-in and unknown names."""
        if name in self._offered:
            self._load(name)
        return self._code.get(name, ())

    def _load(self, name: str) -> None:
        """Load the plug-in of that name, once, or note in `_broken` why it cannot be used."""
        if name in self._code or name in self._broken:
            return
        from hopbench.retrieval.plugins.code import plugin_code

        points = self._offered[name]
        try:
            self._refuse_clash(name, points)
            value = points[0].load()
            usable = self._check(name, value)
            # Read now: later the files may be newer than the code that was imported.
            self._code[name] = plugin_code(value, points[0])
            self._loaded[name] = usable
        except (Exception, SystemExit) as error:  # a package may do anything when it is imported
            reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            package = package_of(points[0])
            whose = f" of the package {package}" if package else ""
            plugin = f"the plug-in {points[0].name} = {points[0].value}{whose}"
            self._broken[name] = f"{plugin} cannot be used: {reason}. {REMEDY}"

    def _refuse_clash(self, name: str, points: list[EntryPoint]) -> None:
        if name in self._built_in:
            raise InputError(f"HopBench has the {self.noun} {name!r} itself: give the plug-in another name")
        if len(points) > 1:
            packages = ", ".join(map(package_of, points))
            raise InputError(f"several packages offer the {self.noun} {name!r} ({packages}): uninstall all but one")
