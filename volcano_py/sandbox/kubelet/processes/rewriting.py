"""Replaces mount paths by real folders, and host names by loopback addresses, in arguments and values."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from volcano_py.sandbox.kubelet.processes.addresses import mentioned

Rewrite = Callable[[str], str]


def inside(root: Path, path: str) -> Path:
    """A container's path below its root folder; `..` does not leave it."""
    return root / posixpath.normpath("/" + path).lstrip("/")


def mount_paths(root: Path, paths: Iterable[str]) -> Rewrite:
    """Replace these paths, at the beginning of a path, by paths below a folder: `--out=/data/x`, not `host/data`."""
    real = {path.rstrip("/"): str(inside(root, path)) for path in paths if path.strip("/")}
    if not real:
        return lambda text: text
    longest_first = "|".join(re.escape(path) for path in sorted(real, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w./~-])({longest_first})(?![\w.-])")
    return lambda text: pattern.sub(lambda match: real[match[1]], text)


def host_names(namespace: str, subdomain: str, address: Callable[[str], str | None]) -> Rewrite:
    """Replace names of a subdomain's pods by their addresses; `address` returns None for other names."""

    def rewrite(text: str) -> str:
        pattern = mentioned(text, namespace, subdomain) if subdomain else None
        return pattern.sub(lambda match: address(match[1]) or match[0], text) if pattern is not None else text

    return rewrite
