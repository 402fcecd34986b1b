"""The table of a benchmark: figures, their targets, and what missed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson


def show(
    figures: Mapping[str, float],
    rows: Sequence[tuple[str, str, str]],
    targets: Mapping[str, tuple[str, float]],
    words: Mapping[str, Any],
    out: Path | None,
) -> None:
    """Print the figures there are, and write them to a file; ends the process when one missed its target.

    `rows`: (key, text with {words} in it, unit). `targets`: key to (">=", "<=" or "<", number).
    """
    labels = [(key, text.format(**words), unit) for key, text, unit in rows if key in figures]
    width = max(len(text) for _, text, _ in labels)
    print(f"{'figure':{width}}  {'value':>10}  {'unit':4}  target")
    missed = []
    for key, text, unit in labels:
        sign, target = targets.get(key, ("", 0.0))
        met = {"": True, ">=": figures[key] >= target, "<=": figures[key] <= target, "<": figures[key] < target}[sign]
        note = f"{sign} {target:g}{'' if met else '  MISSED'}" if sign else ""
        missed += [] if met else [text.strip()]
        digits = 1 if figures[key] >= 100 else 2
        print(f"{text:{width}}  {figures[key]:10.{digits}f}  {unit:4}  {note}".rstrip())
    if out is not None:
        document = {**words, "cpus": os.cpu_count(), **{key: round(value, 3) for key, value in figures.items()}}
        out.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    if missed:
        sys.exit(f"short of the target: {', '.join(missed)}")
