"""How often a search reports a rate that breaks the promise: run trials, print the table."""

import argparse
import os
import signal
import sys

from benchmarks.search_policy import table, truths
from benchmarks.search_policy.cases import CASES
from benchmarks.search_policy.policies import POLICIES
from benchmarks.search_policy.trials import jobs_of, run


def main() -> None:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_policy", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run", help="run trials that are not in the results yet")
    command.add_argument("--policy", default=",".join(POLICIES), help="names, with commas")
    command.add_argument("--shape", default=",".join(CASES), help="names, with commas")
    command.add_argument("--seeds", default="1-100", help="first-last")
    command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    command.set_defaults(do=_run)
    command = commands.add_parser("truth", help="compute the true limits (minutes)")
    command.add_argument("--shape", default=",".join(CASES), help="names, with commas")
    command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    command.set_defaults(do=lambda given: truths.write(given.shape.split(","), given.jobs))
    command = commands.add_parser("table", help="write TABLE.md and the method page's table")
    command.set_defaults(do=_table)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the pool ends too
    arguments = parser.parse_args()
    arguments.do(arguments)


def _run(arguments: argparse.Namespace) -> None:
    first, _, last = arguments.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    jobs = jobs_of(arguments.policy.split(","), arguments.shape.split(","), seeds)
    for count, _ in enumerate(run(jobs, arguments.jobs), 1):
        print(f"\r{count} trials", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def _table(_: argparse.Namespace) -> None:
    for path, text in table.texts().items():
        path.write_text(text, encoding="utf-8")
    print(table.TABLE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
