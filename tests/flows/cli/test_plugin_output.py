"""What plug-ins print never mixes with a command's own output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.flows.cli.conftest import Hopbench
from tests.support.plugins import FILES, STRATEGY, install, use

SPEAKING = f"""
import sys
import threading
import typer
from rich import print as rich_print
print("spoken while imported")
{STRATEGY}
    def rank(self, batch, counters):
        print("spoken while ranking")
        sys.stdout.writelines(["spoken in lines\\n"])
        typer.echo("spoken by typer")
        rich_print("spoken by rich")
        speaker = threading.Thread(target=print, args=("spoken in a thread",))
        speaker.start()
        speaker.join()
        return super().rank(batch, counters)
"""


def test_what_a_plug_in_prints_goes_to_standard_error(
    hopbench: Hopbench, bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = use(tmp_path / "site", monkeypatch)
    install(site, {**FILES, "hopbench_mine/strategy.py": SPEAKING})
    listed = hopbench("strategies", "--json")
    assert "mine" in json.loads(listed.out)
    assert "spoken while imported\n" in listed.err
    flags = ("--strategies", "bm25,mine", "--no-ragas", "--no-prefect", "--out", tmp_path / "out")
    done = hopbench("run", "--dataset", bench, *flags)
    assert done.code == 0
    assert "mine" in done.out
    assert "spoken" not in done.out
    for how in ("while ranking", "in lines", "by typer", "by rich", "in a thread"):
        assert f"spoken {how}\n" in done.err
