"""Bars of characters: blocks where the terminal's encoding has them, ASCII elsewhere."""

from __future__ import annotations

from fractions import Fraction
from typing import TextIO

BLOCKS = "█▉▊▋▌▍▎▏"
"""From full to one eighth."""


def has_blocks(stream: TextIO) -> bool:
    """Whether a stream can encode block characters."""
    try:
        (BLOCKS + "░▒┃▁│├└─").encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def bar(part: float, whole: float, width: int, blocks: bool) -> str:
    """`part` of `whole` as a bar of `width` characters; a part above the whole is a full bar."""
    share = min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
    if not blocks:
        full = round(share * width)
        return "[" + "#" * full + "." * (width - full) + "]"
    full, eighths = divmod(round(share * width * 8), 8)
    text = "█" * full + (BLOCKS[8 - eighths] if eighths else "")
    return text + "░" * (width - len(text))


def measured(
    part: Fraction,
    more: Fraction,
    mark: Fraction | None,
    whole: Fraction,
    width: int,
    blocks: bool,
    floor: Fraction | None = None,
    limit: Fraction | None = None,
) -> str:
    """A bar of `whole`: `part`, then `more`, with a mark at one position.

    The remainder has another character up to `floor`, and a blank beyond `limit`.
    """
    full, plus, rest, sign, kept = ("█", "▒", "░", "┃", "▁") if blocks else ("#", "+", ".", "|", "_")

    def cells(amount: Fraction) -> int:
        return min(width, round(amount / whole * width)) if whole > 0 else 0

    end, further = cells(part), cells(part + more)
    # any amount above zero shows at least one character
    end = max(end, 1 if part > 0 else 0)
    further = max(further, end + (1 if more > 0 and end < width else 0))
    signs = [full] * end + [plus] * (further - end) + [rest] * (width - further)
    if floor is not None:
        signs[further : cells(floor)] = [kept] * (cells(floor) - further)
    if limit is not None:
        behind = max(further, cells(limit))
        signs[behind:] = " " * (width - behind)
    if mark is not None and whole > 0:
        signs[min(width - 1, max(0, cells(mark) - 1))] = sign
    return "".join(signs) if blocks else f"[{''.join(signs)}]"
