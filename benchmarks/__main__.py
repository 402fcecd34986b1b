"""`python -m benchmarks`."""

from __future__ import annotations

import sys

import click
import orjson

from benchmarks.apiserver import apiserver
from benchmarks.churn import churn
from benchmarks.control_plane import control_plane
from benchmarks.decision import decision, run_one
from benchmarks.explaining import explaining
from benchmarks.growth import growth
from benchmarks.limits import limits
from benchmarks.packing import packing
from benchmarks.profiles import profiles
from benchmarks.requests import requests
from benchmarks.restart import restart
from benchmarks.sandbox import sandbox
from benchmarks.sizing import sizing
from benchmarks.watching import watching


@click.group()
def main() -> None:
    """Benchmarks of volcano_py."""


@main.command(hidden=True)
def one() -> None:
    """Run the scenario on standard input; used by `decision`."""
    sys.stdout.buffer.write(orjson.dumps(run_one(orjson.loads(sys.stdin.buffer.read()))))


main.add_command(decision)
main.add_command(apiserver)
main.add_command(churn)
main.add_command(explaining)
main.add_command(growth)
main.add_command(limits)
main.add_command(packing)
main.add_command(profiles)
main.add_command(requests)
main.add_command(restart)
main.add_command(sandbox)
main.add_command(control_plane)
main.add_command(sizing)
main.add_command(watching)

if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
