"""A readable log of the results of the plugins' callbacks in a cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np

from volcano_py.scheduler.framework.callbacks import name_of
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.registry import Registry

_LONG = 200
"""Maximum number of characters of one result."""


def logged(registry: Registry, log: Callable[[str], None]) -> Registry:
    """A registry whose plugins report each result of their callbacks as a line of text."""
    plugins = {name: _logged(name, builder, log) for name, builder in registry.plugins.items()}
    return Registry(plugins, registry.actions)


def _logged(name: str, builder: Any, log: Callable[[str], None]) -> Any:
    def build(arguments: Any) -> Plugin:
        plugin: Plugin = builder(arguments)
        opened = plugin.on_session_open

        def on_session_open(session: Any) -> None:
            opened(session)
            for point, fn, basis in session.callbacks.registered_by(name):
                session.callbacks.add(point, _with_log(name, point, fn, log), basis)
            for rule in session.rules.rules_of(name):
                _log_rule(name, rule, log)

        plugin.on_session_open = on_session_open  # type: ignore[method-assign]
        return plugin

    return build


def _with_log(plugin: str, point: str, fn: Callable[..., Any], log: Callable[[str], None]) -> Callable[..., Any]:
    @wraps(fn)
    def answered(*subjects: Any) -> Any:
        answer = fn(*subjects)
        log(f"{plugin}.{point}({', '.join(_text(s) for s in subjects)}): {_text(answer)}")
        return answer

    return answered


def _log_rule(plugin: str, rule: Any, log: Callable[[str], None]) -> None:
    """Log a filter's or a score's results for all nodes."""
    for method in ("filter", "score"):
        answer = getattr(rule, method, None)
        if answer is None:
            continue

        @wraps(answer)
        def answered(task: Any, *rest: Any, answer: Any = answer, method: str = method) -> Any:
            found = answer(task, *rest)
            log(f"{plugin}.{method} {rule.name}({_text(task)}): {_nodes(rule, method, found)}")
            return found

        with suppress(AttributeError):  # methods of a rule with slots cannot be replaced
            setattr(rule, method, answered)


def _nodes(rule: Any, method: str, found: Any) -> str:
    values = np.asarray(found)
    if method == "score":
        return f"{values.min():g} to {values.max():g}" if values.size else "no node"
    rejected = Counter(values[values != 0].tolist())
    reasons = [f"{count} {_reason(rule, int(code))}" for code, count in sorted(rejected.items())]
    return f"accepts {values.size - sum(rejected.values())} of {values.size} nodes" + "".join(f"; {r}" for r in reasons)


def _reason(rule: Any, code: int) -> str:
    with suppress(IndexError, AttributeError, TypeError):
        return str(getattr(rule.reasons[code - 1], "text", rule.reasons[code - 1]))
    return f"code {code}"


def _text(value: Any) -> str:
    if isinstance(value, str | int | float | bool | None):
        return str(value)
    if isinstance(value, list | tuple):
        return _cut("[" + ", ".join(_text(v) for v in value) + "]")
    return _cut(name_of(value) or str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else text[:_LONG] + "…"
