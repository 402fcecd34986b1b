"""`--scheduler-configmap`: the flag, and the handling of the ConfigMap's versions. More is in tests/e2e."""

from __future__ import annotations

import click
import pytest

from volcano_py.api.core import ConfigMap
from volcano_py.api.meta import ObjectMeta
from volcano_py.kube.wire import Undecodable
from volcano_py.scheduler.configuration.configmap import ConfigurationMap
from volcano_py.scheduler.configuration.options import CONFIGURATION_KEY as KEY
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.framework.config import ConfigurationError
from volcano_py.scheduler.model.plan import Event
from volcano_py.scheduler.runtime.command import options_of, scheduler

GOOD = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'


def parse(*arguments: str) -> Options:
    return options_of(scheduler.make_context("scheduler", list(arguments)).params)


def test_the_flag_contains_one_configmap() -> None:
    assert parse().scheduler_configmap is None
    assert parse("--scheduler-configmap=a/b").scheduler_configmap == ("a", "b", "volcano-scheduler.conf")
    assert parse("--scheduler-configmap=a/b/ci.conf").scheduler_configmap == ("a", "b", "ci.conf")
    for wrong in ("a", "/b", "a/", "a/b/", "a/b/c/d"):
        with pytest.raises(click.UsageError, match="use NAMESPACE/NAME"):
            parse(f"--scheduler-configmap={wrong}")
    with pytest.raises(click.UsageError, match="use one of them"):
        parse("--scheduler-configmap=a/b", "--scheduler-conf=c")


def version(text: str | None = GOOD, key: str = KEY) -> ConfigMap:
    data = None if text is None else {key: text}
    return ConfigMap(metadata=ObjectMeta(name="conf", namespace="system", uid="1"), data=data)


def source(first: ConfigMap | None = None, **more: bool) -> ConfigurationMap:
    made = ConfigurationMap("system", "conf", KEY, ("enqueue", "allocate"), ("gang",), **more)
    made._found = first
    made._first()
    return made


def events(made: ConfigurationMap) -> list[tuple[str, str, str]]:
    found = [operation for operation in made.operations() if isinstance(operation, Event)]
    assert all((event.kind, event.namespace, event.name) == ("ConfigMap", "system", "conf") for event in found)
    return [(event.type, event.reason, event.message) for event in found]


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (None, "ConfigMap system/conf not found; create it with the key volcano-scheduler.conf"),
        (version(None), "ConfigMap system/conf: data: no key volcano-scheduler.conf"),
        (version(key="scheduler.conf"), "no key volcano-scheduler.conf; rename scheduler.conf"),
        (version("actions: ["), "ConfigMap system/conf: line 1, column 11: not valid YAML"),
    ],
)
def test_a_bad_start_is_an_error_unless_it_is_allowed(first: ConfigMap | None, problem: str) -> None:
    with pytest.raises(ConfigurationError, match="ConfigMap system/conf") as caught:
        source(first)
    assert problem in str(caught.value)


def test_the_built_in_configuration_is_used_until_the_configmap_exists() -> None:
    made = ConfigurationMap("system", "conf", KEY, ("enqueue", "allocate", "backfill"), ("gang",), strict=False)
    made._first()
    assert made.configuration.actions == ("enqueue", "allocate", "backfill") and not made.poll()
    made._set(version())
    assert made.poll() and made.configuration.actions == ("enqueue", "allocate")


def test_invalid_versions_change_nothing_and_are_reported_once() -> None:
    made = source(version())
    assert not made.poll() and events(made) == []
    made._set(version())
    assert not made.poll()
    for _ in range(2):
        made._set(version(GOOD.replace("allocate", "alocate")))
        assert not made.poll()
    text = 'actions: failed to find Action "alocate"; did you mean allocate?; the configuration in force is kept'
    assert events(made) == [("Warning", "InvalidConfiguration", text)]
    assert events(made) == []
    made._set(None)
    assert not made.poll() and "it was deleted" in events(made)[0][2]
    made._undecodable(Undecodable("system", "conf", "1", "2", b"", "nested too deep"))
    assert not made.poll() and "nested too deep" in events(made)[0][2]
    assert made.configuration.actions == ("enqueue", "allocate")
    made._set(version())
    assert not made.poll(), "it is the current one"
    assert [row[1] for row in events(made)] == ["ConfigurationInForce"]
    made._set(version(GOOD.replace("gang", "gnag")))
    assert made.poll()
    assert [row[1:] for row in events(made)] == [
        ("ConfigurationWarning", "tiers[0].plugins[0]: no plugin gnag, it is skipped; did you mean gang?"),
        ("ConfigurationInForce", "a new configuration is in force: actions enqueue, allocate"),
    ]
