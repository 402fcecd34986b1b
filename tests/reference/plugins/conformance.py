"""Keeps system pods from being victims; nothing else, so that it is silent until actions evict."""

from __future__ import annotations

from typing import Any

from tests.reference.session import Session


def conformance(session: Session, arguments: dict[str, Any]) -> None:
    return None
