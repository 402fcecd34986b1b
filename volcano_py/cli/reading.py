"""Input of commands: lines from files and standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from volcano_py.simulate.manifests import ManifestError


def lines(files: tuple[str, ...]) -> Iterator[bytes]:
    """The lines of all files, or of standard input. Raises ManifestError."""
    for path in files or ("-",):
        if path == "-":
            yield from sys.stdin.buffer
            continue
        try:
            with open(path, "rb") as file:
                yield from file
        except OSError as e:
            raise ManifestError(f"{path}: {e.strerror}; use existing files, or - for standard input") from None
