"""The registry: built-in plugins and actions are imported when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from volcano_py.scheduler.actions import ACTIONS
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.registry import Builders, PluginBuilder, Registry
from volcano_py.scheduler.plugins import PLUGINS
from volcano_py.scheduler.review.findings import NEED_ARGUMENTS


class Own(Plugin):
    name = "own"


def test_names_are_those_of_the_classes() -> None:
    for builders in (PLUGINS, ACTIONS):
        for name in builders:
            assert builders[name]({}).name == name


def test_without_arguments_nothing_built_in_warns() -> None:
    """`config check` relies on it, and does not import them."""
    for builders in (PLUGINS, ACTIONS):
        for name in builders:
            assert builders[name]({}).warnings == [] or name in NEED_ARGUMENTS, name


def test_a_copy_is_changed_alone() -> None:
    registry = Registry(PLUGINS, ACTIONS)
    registry.plugins["own"] = Own
    assert registry.plugins["own"] is Own and "own" not in PLUGINS
    assert registry.plugins.is_built_in("gang") and not registry.plugins.is_built_in("own")
    assert len(registry.plugins) == len(PLUGINS) + 1
    del registry.plugins["own"]
    assert registry.plugins.get("own") is None and [*registry.plugins] == [*PLUGINS]


def test_a_wrong_line_names_the_module() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        Builders[PluginBuilder]({"x": "volcano_py.no_such:Module"})["x"]


def test_a_scheduler_imports_the_plugins_of_its_configuration() -> None:
    program = """
import sys
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.scheduler.runtime import server
def imported():
    return [m in sys.modules for m in ("volcano_py.scheduler.plugins.tdm", "volcano_py.scheduler.actions.shuffle")]
assert imported() == [False, False]
text = "actions: shuffle\\ntiers:\\n- plugins:\\n  - name: tdm\\n  - name: unknown\\n"
REGISTRY.load(load(text, REGISTRY.actions))
assert imported() == [True, True]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "loaded"), [("", []), ("\n  - {name: nodeorder, arguments: {imagelocality.weight: 3}}", ["numpy"])]
)
def test_a_check_imports_only_plugins_that_have_arguments(arguments: str, loaded: list[str]) -> None:
    tier = "- {name: gang}\n  - {name: predicates}" + arguments
    text = f"actions: enqueue, allocate\ntiers:\n- plugins:\n  {tier}\n"
    program = (
        "import sys; from click.testing import CliRunner; from volcano_py.cli.config import config; "
        f"result = CliRunner().invoke(config, ['check', '-'], input={text!r}); "
        "print(result.exit_code, *(m for m in ('numpy', 'aiohttp', 'kubernetes', 'rich') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["0", *loaded]
