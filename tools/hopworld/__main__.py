"""`python -m tools.hopworld`: write a world, or check one."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from hopbench.retrieval.support.errors import HopBenchError, InputError
from tools.hopworld.write import write_benchmark


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line; returns the exit code (1 when a check finds a promise broken)."""
    parser = ArgumentParser(prog="python -m tools.hopworld", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--out", type=Path, metavar="DIR", help="write a benchmark into this folder")
    action.add_argument("--check", type=Path, metavar="DIR", help="measure the difficulty of this benchmark")
    parser.add_argument("--seed", type=int, default=1, help="worlds with seeds that differ modulo 16 share no name")
    parser.add_argument("--passages", type=int, default=2500)
    parser.add_argument("--questions", type=int, default=400)
    given = parser.parse_args(arguments)
    try:
        if given.check:
            from tools.hopworld.difficulty import check, table

            measured = check(given.check)
            print(table(measured))
            return 1 if measured.problems else 0
        write_benchmark(given.out, given.seed, given.passages, given.questions)
    except HopBenchError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"{given.out or given.check}: {error.strerror}; choose a folder that can be used", file=sys.stderr)
        return InputError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
