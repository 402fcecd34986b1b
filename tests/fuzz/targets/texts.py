"""Small languages in fields: quantities, durations, schedules, selectors, patterns, times."""

from __future__ import annotations

import orjson

from tests.fuzz.target import Target, text_of
from volcano_py.api import quantity, selector
from volcano_py.api.core import LabelSelector
from volcano_py.api.cron import parse_schedule
from volcano_py.api.duration import format_duration, parse_duration
from volcano_py.api.meta import parse_time
from volcano_py.api.node_patterns import Budget, InvalidPattern, matching
from volcano_py.controllers.cronjob import timetable
from volcano_py.kube import wire
from volcano_py.kube.errors import InvalidResponse
from volcano_py.kube.flags import parse_gates
from volcano_py.sandbox.apiserver.apimachinery import selectors
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.scheduler.cache.filters import parse_node_selector

_NAMES = [f"node-{i}.rack-{i % 7}.example.com" for i in range(200)]


def _quantity(data: bytes) -> None:
    text = text_of(data)
    amount, form = quantity.parse_exactly(text)
    assert quantity.parse(text) <= quantity.MAX
    canonical = quantity.canonical(text)
    assert quantity.parse(canonical) == quantity.parse(text), (text, canonical)
    quantity.milli_value(text)
    quantity.format_amount(min(amount, quantity.MAX), form)


def _duration(data: bytes) -> None:
    seconds = parse_duration(text_of(data))
    assert abs(parse_duration(format_duration(seconds)) - seconds) <= 1e-3 * max(1.0, abs(seconds))


def _schedule(data: bytes) -> None:
    zone, _, text = text_of(data).rpartition("|")
    table = timetable.Timetable(parse_schedule(text), timetable.find_zone(zone or None))
    after = table.after(1_800_000_000.0)
    assert after is None or after > 1_800_000_000.0
    try:
        timetable.look_back(table, 1_700_000_000.0, None, 1_800_000_000.0)
        timetable.until_next(table, 1_800_000_000.0, 1_800_000_000.0)
    except timetable.NeverFires:
        pass


def _selector(data: bytes) -> None:
    found = wire.decode(data, LabelSelector)
    selector.is_empty(found)
    selector.matches(found, {"a": "b", "key": "value"})
    selector.check(found)


def _pattern(data: bytes) -> None:
    """A pattern of any user on 200 names, within the budget of a model."""
    text = text_of(data)
    Budget().use(text)
    matching([text], _NAMES)


def _time(data: bytes) -> None:
    parse_time(text_of(data))


def _gates(data: bytes) -> None:
    parse_gates(text_of(data))


def _node_selector(data: bytes) -> None:
    parse_node_selector([text_of(data)])


def _label_query(data: bytes) -> None:
    text = text_of(data)
    for parse in (selectors.parse_labels, selectors.parse_fields):
        try:
            parse(text)
        except (StatusError, ValueError):
            continue


def targets() -> list[Target]:
    import click

    terms = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "key", "operator": "In", "values": ["value"]}]}
    schedules = [
        b"*/5 * * * *",
        b"Europe/Berlin|0 2 29 2 *",
        b"@every 1h30m",
        b"@daily",
        b"UTC|1-5/2,7 0 ? JAN-MAR MON",
    ]
    amounts = [b"1", b"100m", b"1.5Gi", b"1e3", b"+0.1E2", b"12345678901n"]
    patterns = [rb"node-[0-9]+\.rack-3.*", rb"^n(ode)?-1$", rb"(a|b|c){1,5}", rb"\d+", rb"[[:alpha:]]"]
    return [
        Target("quantity", _quantity, (ValueError,), amounts, "bytes"),
        Target("duration", _duration, (ValueError,), [b"1h2m3.5s", b"100ms", b"-1.5h", b"0", b"1us"], "bytes"),
        Target("schedule", _schedule, (ValueError,), schedules, "bytes"),
        Target("label selector", _selector, (ValueError, InvalidResponse), [orjson.dumps(terms)]),
        Target("pattern of a HyperNode", _pattern, (InvalidPattern,), patterns, "bytes"),
        Target("time", _time, (ValueError,), [b"2026-01-01T00:00:00Z", b"2026-01-01T00:00:00.123456+02:00"], "bytes"),
        Target("feature gates", _gates, (click.ClickException,), [b"A=true,B=false"], "bytes"),
        Target("node selector flag", _node_selector, (ValueError, click.ClickException), [b"a:b"], "bytes"),
        Target("selector of a request", _label_query, (), [b"a=b,c!=d,e in (f,g),!h", b"metadata.name=x"], "bytes"),
    ]
