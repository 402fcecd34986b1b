"""The configuration: errors, warnings, and the arguments of plugins."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import field

from volcano_py.scheduler.framework import deviations
from volcano_py.scheduler.framework.arguments import decode, get_bool, get_float, get_int, get_string
from volcano_py.scheduler.framework.config import DEFAULT_TEXT, FLAGS, Configuration, ConfigurationError, load

ACTIONS = ("enqueue", "allocate", "backfill")


def read(**document: Any) -> Configuration:
    return load(json.dumps({"actions": "allocate", **document}), ACTIONS)


def plugin(**options: Any) -> list[Any]:
    return [{"plugins": [{"name": "gang", **options}]}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "line 1, column 5: not valid YAML"),
        ("a: \x01", "not valid YAML"),
        ("[]", "the document must be a map with the keys actions and tiers"),
        ("actions: [allocate]", "actions: must be text"),
        ("actions: alocate", 'failed to find Action "alocate"; did you mean allocate?'),
        ("actions: sleep", 'failed to find Action "sleep"; valid values are allocate, backfill, enqueue'),
        ("", 'failed to find Action ""'),
        ("{actions: allocate, tiers: {}}", "tiers: must be a list"),
        ("{actions: allocate, tiers: [gang]}", "tiers[0]: must be a map with the key plugins"),
        ("{actions: allocate, tiers: [{plugins: [gang]}]}", "tiers[0].plugins[0]: must be a map with a name"),
        ("{actions: allocate, configurations: [{}]}", "configurations[0]: must be a map with a name and arguments"),
    ],
)
def test_invalid_documents(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(text, ACTIONS)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enableJobOrder": "yes"}, "tiers[0].plugins[0] (gang): enableJobOrder is 'yes', it must be true or false"),
        ({"arguments": [1]}, "tiers[0].plugins[0] (gang): arguments must be a map, found [1]"),
    ],
)
def test_invalid_plugins(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(tiers=plugin(**options))
    assert str(caught.value) == message


def test_drf_with_hierarchy_and_proportion_in_a_tier_are_an_error() -> None:
    both = [{"name": "drf", "enableHierarchy": True}, {"name": "proportion"}]
    with pytest.raises(ConfigurationError, match=r"tiers\[0\]: proportion and drf with hierarchy"):
        read(tiers=[{"plugins": both}])
    assert len(read(tiers=[{"plugins": [each]} for each in both]).tiers) == 2


def test_unknown_keys_are_warnings_and_the_rest_is_used() -> None:
    found = read(
        action=1,
        tiers=plugin(enableJobOder=True),
        configurations=[{"name": "alocate", "arguments": {"a": 1}}, {"name": "alocate", "arguments": {"a": 2}}],
        metrics=["x"],
    )
    assert found.warnings[0] == "action: unknown key, ignored; did you mean actions?"
    assert found.warnings[1].endswith("(gang): enableJobOder: unknown key, ignored; did you mean enableJobOrder?")
    assert found.warnings[2] == "configurations[0]: no action alocate; did you mean allocate?"
    assert found.action_arguments == {"alocate": {"a": 1}} and found.metrics == {}


def test_flags_that_are_not_set() -> None:
    [[option]] = read(tiers=plugin(enableJobOrder=False, enableHierarchy=True)).tiers
    assert option.enabled == {name for name, on in FLAGS.items() if on} - {"enableJobOrder"} | {"enableHierarchy"}
    text = json.dumps({"actions": "allocate", "tiers": plugin(enableJobOrder=True)})
    [[option]] = load(text, ACTIONS, absent_flags=False).tiers
    assert option.enabled == {"enableJobOrder"}


def test_without_a_file() -> None:
    found = load(DEFAULT_TEXT, ACTIONS)
    assert found.actions == ACTIONS and [len(tier) for tier in found.tiers] == [3, 5] and found.warnings == ()
    assert read(metrics={"type": "prometheus", "port": 9}).metrics == {"type": "prometheus", "port": "9"}


@pytest.mark.parametrize(
    ("setting", "on", "wrong"),
    [
        (None, deviations.DEFAULT, []),
        ("parity", deviations.PARITY, []),
        ({"quiet-events": False}, deviations.Deviations(quiet_events=False), []),
        ({"quiet-events": True}, deviations.DEFAULT, []),
        ("all", deviations.DEFAULT, ["deviations: 'all' is neither `parity` nor a map from name to true or false"]),
        (
            {"quiet-event": False},
            deviations.DEFAULT,
            ["deviations: quiet-event is unknown; did you mean quiet-events?"],
        ),
        ({"?": False}, deviations.DEFAULT, ["deviations: ? is unknown"]),
        ({"quiet-events": 1}, deviations.DEFAULT, ["deviations: quiet-events is 1, it must be true or false"]),
    ],
)
def test_deviations(setting: Any, on: deviations.Deviations, wrong: list[str]) -> None:
    found = read(deviations=setting)
    assert found.deviations == on and list(found.warnings) == wrong


# ---- arguments ------------------------------------------------------------------------------------------------


class Arguments(msgspec.Struct):
    weight: int = field(default=1, name="my.weight")
    part: float = 0.5
    on: bool = False
    text: str = ""
    many: dict[str, int] = {}
    extra: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("my.weight", 1.0, "argument my.weight is 1.0, it must be a whole number; the default stays in force"),
        ("my.weight", True, "argument my.weight is True, it must be a whole number; the default stays in force"),
        ("part", "1", "argument part is '1', it must be a number; the default stays in force"),
        ("on", "yes", "argument on is 'yes', it must be true or false; the default stays in force"),
        ("text", 1, "argument text is 1, it must be text; the default stays in force"),
        ("many", {"a": "b"}, "argument many: Expected `int`, got `str` - at `$[...]`; the default stays in force"),
        ("my.wait", 1, "argument my.wait is unknown and ignored; did you mean my.weight?"),
        ("zzz", 1, "argument zzz is unknown and ignored; valid values are my.weight, part, on, text, many"),
    ],
)
def test_invalid_arguments(key: str, value: Any, message: str) -> None:
    found, warnings = decode(Arguments, "plugin x", {key: value})
    assert warnings == [f"plugin x: {message}"] and found == Arguments()


def test_arguments() -> None:
    given = {"my.weight": 3, "part": 2, "on": "T", "text": "t", "many": {"a": 1}, "res.gpu": 5}
    found, warnings = decode(Arguments, "plugin x", given, prefixes=("res.",))
    assert warnings == [] and found == Arguments(3, 2.0, True, "t", {"a": 1}, {"res.gpu": 5})
    assert decode(Arguments, "plugin x", None) == (Arguments(), [])


def test_values_as_volcano_reads_them() -> None:
    assert [get_int(v) for v in (1, 1.0, "1", True)] == [1, None, None, None]
    assert [get_float(v) for v in (1, 1.5, "1", True)] == [1.0, 1.5, None, None]
    assert [get_bool(v) for v in (True, "0", "yes", 1)] == [True, False, None, None]
    assert [get_string(v) for v in ("a", 1)] == ["a", None]
