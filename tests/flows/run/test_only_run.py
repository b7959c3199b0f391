"""One run at a time in an --out folder."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from tests.flows.cli.conftest import call, write_benchmark

from hopbench.flows.settings.locks import LOCK

HOLD = """
import sys, time
from pathlib import Path
from hopbench.flows.settings.locks import only_run
with only_run(Path(sys.argv[1]), "tiny"):
    print("held", flush=True)
    time.sleep(120)
"""


def test_a_second_run_in_a_folder_is_refused_until_the_first_has_ended(
    home_with_database: Callable[[Path], Path], tmp_path: Path
) -> None:
    home, out = home_with_database(tmp_path / "home"), tmp_path / "out"
    run = ("run", "--dataset", write_benchmark(tmp_path / "tiny"), "--strategies", "bm25", "--no-ragas", "--no-prefect")
    arguments = [sys.executable, "-c", textwrap.dedent(HOLD), str(out)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        refused = call(*run, "--out", out, home=home)
        elsewhere = call(*run, "--out", tmp_path / "other", home=home)
        assert not (out / "results.json").exists()
        holder.kill()
        holder.wait()
    assert refused.code == 2
    assert f"{out} is in use by another run: process {holder.pid}, tiny, since" in refused.err
    assert "name another --out" in refused.err
    assert (0, 0) == (elsewhere.code, call(*run, "--out", out, home=home).code)
    assert not (out / LOCK).exists()
