"""The selection of list commands: label selectors, and Volcano's `--selector`, a part of the name.

`--selector` is a part of the name, as in Volcano, unless its value can only be a label selector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_SIGNS = ("=", "!", " in ", " notin ")
"""Characters that no name contains and nearly every label selector does."""


def label_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds -l/--label-selector."""
    return click.option("-l", "--label-selector", default="", help="Label selector: a=b, a!=b, 'a in (b,c)', a, !a.")(
        command
    )


def selector_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds -l/--label-selector, and --selector."""
    return click.option(
        "--selector", default="", help="Part of the name; a label selector if it contains =, ! or ' in '."
    )(label_option(command))


def is_label_selector(text: str) -> bool:
    """Whether the value of --selector is a label selector, and not a part of a name."""
    return any(sign in text for sign in _SIGNS)


def split(selector: str, label_selector: str) -> tuple[str, str]:
    """The two options as (part of the name, label selector)."""
    if is_label_selector(selector):
        return "", ",".join(filter(None, (label_selector, selector)))
    return selector, label_selector
