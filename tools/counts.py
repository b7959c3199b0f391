"""Count the code and the docs of a checkout, and how much code a short run executes.

    python -m tools.counts [--root CHECKOUT] [--no-run]

An empty `__init__.py` is no module. Only named functions and files of HopBench count as executed.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PRODUCT, TOOLS = "src/hopbench", "tools"
MAX_MODULE_LINES, MAX_FUNCTION_LINES = 400, 50
RUN = ("run", "--dataset", "hopworld", "--strategies", "bm25", "--limit", "20")

_PROFILED = """
import atexit, sys, threading
seen, (product, out) = set(), sys.argv[1:3]
def note(frame, event, arg):
    if event == "call":
        seen.add(frame.f_code)
def report():
    sys.setprofile(None)
    with open(out, "w", encoding="utf-8") as file:
        for code in seen:
            name = code.co_filename
            if name.startswith(product) and name.endswith(".py") and code.co_name[0] != "<" and code.co_flags & 1:
                file.write(f"{code.co_filename} {code.co_qualname}\\n")
atexit.register(report)
threading.setprofile(note)
sys.setprofile(note)
sys.argv = ["hopbench", *sys.argv[3:]]
from hopbench.flows.cli.main import main
sys.exit(main())
"""


@dataclass(frozen=True)
class Module:
    """A module below `source`, the folder on sys.path, with its text."""

    file: Path
    source: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed module."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """Its number of lines."""
        return self.text.count("\n")

    @property
    def name(self) -> str:
        """Its dotted name; a package's is that of its folder."""
        parts = self.file.relative_to(self.source).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def package(self) -> str:
        """The dotted name of its folder."""
        return ".".join(self.file.parent.relative_to(self.source).parts)

    @property
    def classes(self) -> int:
        """How many classes it defines."""
        return sum(isinstance(node, ast.ClassDef) for node in ast.walk(self.tree))

    def long_functions(self) -> Iterator[str]:
        """Functions of more than `MAX_FUNCTION_LINES` lines."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    yield f"{self.file.relative_to(self.source)}:{node.lineno} {node.name} ({lines})"

    def imports(self) -> Iterator[tuple[str, str]]:
        """What it imports, as (module, name); the name is empty for `import module`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                yield from ((node.module or "", alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)


def modules_below(folder: Path, source: Path) -> list[Module]:
    """The modules below a folder, in the order of their paths."""
    read = (Module(file, source, file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.py")))
    return [module for module in read if module.text.strip() or module.file.name != "__init__.py"]


def importers(modules: Sequence[Module]) -> Mapping[str, set[str]]:
    """Module → the modules that import it, also by names that a package exports; packages themselves do not count."""
    known = {module.name for module in modules}
    exported: dict[tuple[str, str], str] = {
        (module.name, name): origin
        for module in modules
        if module.file.name == "__init__.py"
        for origin, name in module.imports()
    }
    found: dict[str, set[str]] = {name: set() for name in known}
    for module in modules:
        if module.file.name == "__init__.py":
            continue
        for origin, name in module.imports():
            for candidate in (f"{origin}.{name}", exported.get((origin, name), origin)):
                if candidate in known and candidate != module.name:
                    found[candidate].add(module.name)
    return found


def with_one_importer(modules: Sequence[Module]) -> list[str]:
    """Modules that a single module imports, which is in the same folder."""
    users = importers(modules)
    package = {module.name: module.package for module in modules}
    return [
        module.name
        for module in modules
        if module.file.name != "__init__.py"
        and len(users[module.name]) == 1
        and {package[user] for user in users[module.name]} == {module.package}
    ]


def words_of_docs(root: Path) -> int:
    """The words of README.md and of the pages in docs/; the lines of tables are none."""
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return sum(len(re.findall(r"\S*\w\S*", page.read_text(encoding="utf-8"))) for page in pages if page.is_file())


def executed(root: Path, arguments: Sequence[str]) -> list[tuple[str, str]]:
    """(file, function) for every named function of HopBench that a command executes, in a home of its own."""
    product = root.resolve() / PRODUCT
    with tempfile.TemporaryDirectory(prefix="hopbench-counts-") as folder:
        out = Path(folder) / "executed"
        environment = {**os.environ, "PYTHONPATH": str(product.parent), "HOPBENCH_HOME": f"{folder}/home"}
        command = [sys.executable, "-c", _PROFILED, str(product), str(out), *arguments]
        subprocess.run(command, check=True, env=environment, cwd=folder, stdout=subprocess.DEVNULL)
        lines = out.read_text(encoding="utf-8").splitlines()
    return sorted((file, function) for file, _, function in (line.partition(" ") for line in lines))


def counts(root: Path) -> dict[str, int]:
    """The counts that need no run, by what they count."""
    product, tools = modules_below(root / PRODUCT, root / "src"), modules_below(root / TOOLS, root)
    both = [*product, *tools]
    return {
        "modules of the product": len(product),
        "modules of the tools": len(tools),
        "lines of the product": sum(module.lines for module in product),
        "lines of the tools": sum(module.lines for module in tools),
        "classes": sum(module.classes for module in both),
        f"functions over {MAX_FUNCTION_LINES} lines": sum(len(list(module.long_functions())) for module in both),
        f"modules over {MAX_MODULE_LINES} lines": sum(module.lines > MAX_MODULE_LINES for module in both),
        "modules with one importer, in their own folder": len(with_one_importer(product)),
        "words of docs": words_of_docs(root),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the counts, one a line."""
    parser = argparse.ArgumentParser(description="Count the code and the docs of a checkout.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="another checkout")
    parser.add_argument("--no-run", action="store_true", help="leave out what a short run executes")
    given = parser.parse_args(arguments)
    found = counts(given.root)
    if not given.no_run:
        functions = executed(given.root, [*RUN, "--out", "run"])
        found["files executed by a short run"] = len({file for file, _ in functions})
        found["functions executed by a short run"] = len(functions)
    for name, count in found.items():
        print(f"{name:<50}{count:>10,}")


if __name__ == "__main__":
    main()
