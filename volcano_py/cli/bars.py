"""Bars of characters: blocks where the terminal's encoding has them, ASCII elsewhere."""

from __future__ import annotations

from typing import TextIO

BLOCKS = "█▉▊▋▌▍▎▏"
"""From full to one eighth."""


def has_blocks(stream: TextIO) -> bool:
    """Whether a stream can write block characters."""
    try:
        (BLOCKS + "░").encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def bar(part: float, whole: float, width: int, blocks: bool) -> str:
    """`part` of `whole` as a bar of `width` characters; more than the whole is a full bar."""
    share = min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
    if not blocks:
        full = round(share * width)
        return "[" + "#" * full + "." * (width - full) + "]"
    full, eighths = divmod(round(share * width * 8), 8)
    text = "█" * full + (BLOCKS[8 - eighths] if eighths else "")
    return text + "░" * (width - len(text))
