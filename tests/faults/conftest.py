"""What all fault tests share: they start dozens of API servers, and reading the CRDs takes half a second."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest

from volcano_py.sandbox import volcano

_read = volcano.definitions


@cache
def _definitions() -> list[dict[str, Any]]:
    return list(_read())


@pytest.fixture(autouse=True)
def definitions_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volcano, "definitions", lambda: copy.deepcopy(_definitions()))
