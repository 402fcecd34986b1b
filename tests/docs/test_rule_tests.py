"""Each plugin, action and rule has a table of its name; docs/rule-tests.md lists them."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

# By path: another folder has a module of the same name.
_spec = spec_from_file_location("docs_generate", Path(__file__).parents[2] / "docs" / "generate.py")
assert _spec is not None and _spec.loader is not None
generate = module_from_spec(_spec)
_spec.loader.exec_module(generate)

ONLY_MODULES = {"extender": "a simulation sends no calls to extenders"}
"""Plugins whose tests are a module, because a table cannot have what they need."""
NOT_YET = {"Rules about nodes": frozenset[str](), "Plugins of profiles": frozenset[str]()}
"""Names without tests of their own. This list only gets shorter."""


@pytest.mark.parametrize("kind", ["Plugins", "Actions"])
def test_each_plugin_and_action_has_a_table(kind: str) -> None:
    missing = []
    for name in generate.named_rules()[kind]:
        tables = [path for path in generate.tables_of(kind, name) if path.endswith(".yaml")]
        if not tables and not (name in ONLY_MODULES and generate.tables_of(kind, name)):
            missing.append(name)
    assert missing == [], "add tests/scenarios/<name>.yaml"


@pytest.mark.parametrize("kind", NOT_YET)
def test_each_rule_has_tests(kind: str) -> None:
    missing = {name for name in generate.named_rules()[kind] if not generate.tables_of(kind, name)}
    assert missing == NOT_YET[kind], f"add one of {generate.KINDS_OF_RULES[kind]}"


def test_a_name_without_tests_is_listed_as_such() -> None:
    assert generate.tables_of("Plugins", "no-such-plugin") == []
    known = generate.named_rules
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(generate, "named_rules", lambda: {**known(), "Plugins": ["no-such-plugin"]})
        assert "| no-such-plugin | none of its name |" in generate.rule_tests()
