"""Line charts as SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT, _LEFT, _TOP = 760, 180, 70, 30
_COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#bf8700")
_MOST = 400
"""Points of one line."""


class Series(NamedTuple):
    """One line."""

    name: str
    points: Sequence[tuple[float, float]]


def svg(panels: Sequence[tuple[str, Sequence[Series]]], across: str) -> str:
    """Panels below each other; `across` names the horizontal axis."""
    height = len(panels) * (_HEIGHT + 60) + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 30}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, (title, lines) in enumerate(panels):
        out += _panel(title, lines, _TOP + number * (_HEIGHT + 60), across)
    return "\n".join([*out, "</svg>", ""])


def _panel(title: str, lines: Sequence[Series], top: float, across: str) -> list[str]:
    points = [point for line in lines for point in line.points]
    if not points:
        return []
    right = max(x for x, _ in points) or 1.0
    high = max(y for _, y in points) or 1.0
    bottom = top + _HEIGHT
    out = [f'<text x="{_LEFT}" y="{top - 8}" font-weight="bold">{escape(title)}</text>']
    for part in range(5):
        y, value = bottom - part * _HEIGHT / 4, high * part / 4
        out.append(f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}" stroke="#d0d7de"/>')
        out.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:.3g}</text>')
        x = _LEFT + part * _WIDTH / 4
        out.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{right * part / 4:.6g}</text>')
    out.append(f'<text x="{_LEFT + _WIDTH}" y="{bottom + 32}" text-anchor="end">{escape(across)}</text>')
    for line, colour in zip(lines, _COLOURS * (1 + len(lines) // len(_COLOURS)), strict=False):
        step = max(1, len(line.points) // _MOST)
        path = " ".join(
            f"{_LEFT + x / right * _WIDTH:.1f},{bottom - y / high * _HEIGHT:.1f}" for x, y in line.points[::step]
        )
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    for index, line in enumerate(lines):
        x = _LEFT + 10 + 160 * index
        colour = _COLOURS[index % len(_COLOURS)]
        out.append(f'<text x="{x}" y="{bottom + 32}" fill="{colour}">{escape(line.name)}</text>')
    return out
