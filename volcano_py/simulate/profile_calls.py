"""The calls of a profile's plugins, in order: which points ran for which pod, and the result of each plugin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any

import msgspec
import numpy as np

from volcano_py.scheduler.profiles.plugin_api import extension_points
from volcano_py.scheduler.profiles.plugin_api.extension_points import PostFilterResult, ProfilePlugin
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Status
from volcano_py.scheduler.profiles.registry import Registration, Registry

_POINTS = {
    "pre_enqueue": "PreEnqueue",
    "sort_key": "QueueSort",
    "pre_filter": "PreFilter",
    "add_pod": "AddPod",
    "remove_pod": "RemovePod",
    "filter": "Filter",
    "filter_columns": "Filter",
    "filter_fitting": "Filter",
    "filter_codes": "Filter",
    "filter_nodes": "Filter",
    "post_filter": "PostFilter",
    "pod_group_post_filter": "PodGroupPostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "score_columns": "Score",
    "score_fitting": "Score",
    "normalize": "NormalizeScore",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
"""Methods of plugins → the extension point."""
_ARRAY_FORMS = ("filter_columns", "filter_fitting", "filter_codes", "score_columns", "score_fitting")
_LONG = 200
"""Maximum number of characters of one result."""


class PluginCall(msgspec.Struct):
    at: float
    """Virtual time in seconds."""
    pod: str
    plugin: str
    point: str
    node: str
    """Empty: the call concerns several nodes, or none."""
    answer: str


def recorded(registry: Registry, record: Callable[[PluginCall], None]) -> Registry:
    """A registry whose plugins report their calls. Results that are kept for equal pods are reported once."""
    return {name: _recorded(registration, record) for name, registration in registry.items()}


def _recorded(registration: Registration, record: Callable[[PluginCall], None]) -> Registration:
    def make(arguments: Any, handle: Handle) -> ProfilePlugin:
        plugin = registration.make(arguments, handle)
        for method, point in _POINTS.items():
            own = getattr(type(plugin), method, None)
            if own is not None and own.__module__ != extension_points.__name__:
                setattr(plugin, method, _reporting(plugin, method, point, handle, record))
        return plugin

    return registration._replace(make=make)


def _reporting(
    plugin: ProfilePlugin, method: str, point: str, handle: Handle, record: Callable[[PluginCall], None]
) -> Callable[..., Any]:
    ask = getattr(plugin, method)

    @wraps(ask)
    def recorded(*given: Any) -> Any:
        try:
            answer = ask(*given)
        except Exception as e:
            text = f"raised {type(e).__name__}: {e}"
            record(PluginCall(handle.now, _pod(given), plugin.name, point, _node(given), text))
            raise
        columns = method in _ARRAY_FORMS
        if answer is not None or not columns:  # None: the plugin has no array form for this pod
            text = _text(given[-1] if method == "normalize" else answer)
            record(PluginCall(handle.now, _pod(given), plugin.name, point, _node(given), text))
        return answer

    return recorded


def _pod(given: Collection[Any]) -> str:
    return next((g.key for g in given if isinstance(g, PodInfo)), "")


def _node(given: Collection[Any]) -> str:
    return next((g if isinstance(g, str) else g.name for g in given if isinstance(g, str | NodeInfo)), "")


def _text(answer: Any) -> str:
    match answer:
        case None:
            return ""
        case Status():
            text = ": ".join(filter(None, (answer.code.value, answer.message)))
        case PostFilterResult():
            victims = ", ".join(v.key for v in answer.victims)
            text = _text(answer.status)
            text += f"; nominated to {answer.nominated}" if answer.nominated else ""
            text += f"; evicts {victims}" if victims else ""
        case (None, Status() as status):
            text = _text(status)
        case (only, Status() as status):
            text = f"{_text(status)}; only {', '.join(sorted(only)) or 'no node'}"
        case (Status() as status, float() | int() as seconds):
            text = f"{_text(status)} for {seconds:g} s" if seconds else _text(status)
        case (np.ndarray() as codes, _):
            text = _text(codes == 0)
        case np.ndarray() if answer.dtype == np.bool_:
            text = f"{int(answer.sum())} of {len(answer)} nodes"
        case np.ndarray():
            text = f"{answer.min()} to {answer.max()} on {len(answer)} nodes" if len(answer) else "no nodes"
        case Mapping():
            text = ", ".join(f"{k}={_text(v)}" for k, v in answer.items()) or "no node"
        case _:
            text = str(answer)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"
