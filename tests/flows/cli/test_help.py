"""Help and completion: flags in named groups, brackets as they are written, names offered without heavy packages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from rich.markup import escape
from rich.text import Text
from typer.main import get_command
from typer.testing import CliRunner

from hopbench.flows.cli.main import app
from hopbench.flows.settings.home import STORES
from hopbench.flows.settings.setting import ORDER
from hopbench.flows.settings.values import RUNNERS, complete
from hopbench.retrieval.embedding.factory import specs
from hopbench.retrieval.graph.construction.plan import extractor_names
from hopbench.retrieval.strategies import label as names
from hopbench.retrieval.strategies.registry import registry, resolve

HEAVY = ("numpy", "pandas", "scipy", "yaml", "prefect", "mlflow", "kglite", "openai", "pyarrow")


def commands(found: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its name."""
    found = found or get_command(app)
    yield path, found
    for name, inner in getattr(found, "commands", {}).items():
        yield from commands(inner, (*path, name))


COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_nothing_that_help_says_is_taken_for_markup(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "600"}).stdout
    assert not Text.from_markup(COMMANDS[path].help or "").spans
    for one in COMMANDS[path].params:
        text = Text.from_markup(getattr(one, "help", None) or "").plain
        assert escape(text) == (getattr(one, "help", None) or ""), one.name  # an unescaped bracket would be eaten
        assert " ".join(text.split()) in " ".join(shown.split()), one.name


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("run",), "MODEL[@URL]"),
        (("run",), "finalists[:N]"),
        (("explain",), "NAME[field=value]"),
        (("sweep",), "MODEL[@URL]"),
    ],
)
def test_brackets_survive(path: tuple[str, ...], text: str) -> None:
    assert text in CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"}).stdout


@pytest.mark.parametrize("path", [path for path, one in COMMANDS.items() if path and not hasattr(one, "commands")])
def test_every_flag_stands_in_a_named_group(path: tuple[str, ...]) -> None:
    for one in COMMANDS[path].params:
        if one.param_type_name == "option" and one.name != "help":
            assert one.rich_help_panel in ORDER, one.name


def test_groups_come_in_one_order() -> None:
    for path in (("run",), ("nightly",), ("explain",), ("graph", "build")):
        shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "100"}).stdout
        places = [shown.index(f"─ {panel} ─") for panel in ORDER if f"─ {panel} ─" in shown]
        assert len(places) > 2
        assert places == sorted(places)


def completed(line: str) -> list[str]:
    """What bash is offered for the end of a line."""
    words = line.split(" ")
    told = {"_HOPBENCH_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    found = CliRunner().invoke(app, [], env=told, prog_name="hopbench")
    return found.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("hopbench nigh", ["nightly"]),
        ("hopbench graph co", ["copy"]),
        ("hopbench run --judge-", ["--judge", "--judge-on", "--judge-profile", "--judge-metrics"][1:]),
        ("hopbench run --dataset hop", ["hopworld", "hopworld-tune"]),
        ("hopbench run --strategies bm25,pager", ["bm25,pagerank"]),
        ("hopbench run --strategies al", ["all", "all:tuned"]),
        ("hopbench explain q --strategy kg", ["kg2rag", "kg2rag:tuned"]),
        ("hopbench run --set pager", ["pagerank."]),
        ("hopbench compare cham", ["champion"]),
        ("hopbench run --store n", ["neo4j"]),
        ("hopbench strategies vec", ["vector"]),
    ],
)
def test_a_shell_is_offered(line: str, offered: list[str]) -> None:
    assert offered == completed(line)


def test_completion_can_be_shown_and_loads_nothing_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    # Typer asks which shell started it: none, where the tests' runner has no shell for a parent.
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    program = (
        "import sys; from hopbench.flows.settings.values import complete\nfrom hopbench.flows.cli.main import app\n"
        "offered = [complete(name, '') for name in ('labels', 'stores', 'sides', 'changes')]\n"
        f"print([name for name in {HEAVY} if name in sys.modules], all(offered))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "[] True" == found.stdout.strip()
    script = CliRunner().invoke(app, ["--show-completion", "bash"], prog_name="hopbench")
    assert "complete -o default -F" in script.stdout


def test_the_names_that_are_offered_are_the_names_that_are_taken() -> None:
    assert list(names.BUILT_IN) == registry().names()
    assert [f"{name}:tuned" for name in names.tuned_names()] == list(resolve("all:tuned"))
    assert [spec.replace("MODEL", "") for spec in sorted(specs())] == sorted(complete("embedders", ""))
    assert list(STORES) == complete("stores", "")
    assert list(RUNNERS) == [name.rstrip(":") for name in complete("runners", "")]
    assert extractor_names() == complete("extractors", "")


def test_an_unknown_command_or_flag_gets_the_nearest() -> None:
    assert "Did you mean 'sweep'" in CliRunner().invoke(app, ["swep"]).stderr
    assert "Did you mean 'build'" in CliRunner().invoke(app, ["graph", "buid"]).stderr
    assert "--strategies" in CliRunner().invoke(app, ["run", "--strategie", "x"]).stderr
