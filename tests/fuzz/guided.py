"""One target under atheris, in this process: `python -m tests.fuzz.guided TARGET [options of libFuzzer]`."""

from __future__ import annotations

import contextlib
import logging
import sys

import atheris  # type: ignore[import-not-found]

with atheris.instrument_imports(include=["volcano_py"], enable_loader_override=False):
    from tests.fuzz.targets import ALL

name = sys.argv[1]
target = ALL[name]
logging.disable(logging.CRITICAL)


def run(data: bytes) -> None:
    """One input; an error that is not declared is a fault."""
    with contextlib.suppress(*target.errors):
        target.run(data)


atheris.Setup([sys.argv[0], *sys.argv[2:]], run)
atheris.Fuzz()
