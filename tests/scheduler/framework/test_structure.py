"""The form of the decision core: parts instead of ancestors, and small faces."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import volcano_py.scheduler.actions
import volcano_py.scheduler.framework
import volcano_py.scheduler.model
import volcano_py.scheduler.plugins
from volcano_py.scheduler.framework.extension_points.face import PluginFace
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource import Resource

MOST_BASES = 3
MOST_METHODS = 25
MOST_MODULES = 16
MOST_LINES = 500
LONGER = ("runtime/server.py",)
"""Modules with more lines. This list only gets shorter."""
ONE_OF_EACH = ("plugins",)
"""Folders with one module for each plugin, and nothing else."""
MORE_METHODS = {
    PluginFace: "one line for each extension point, without code of its own",
    Resource: "the arithmetic of Volcano's Resource, function by function",
}
PACKAGES = (
    volcano_py.scheduler.actions,
    volcano_py.scheduler.framework,
    volcano_py.scheduler.model,
    volcano_py.scheduler.plugins,
)


def classes() -> list[type]:
    modules = [
        importlib.import_module(found.name)
        for package in PACKAGES
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return [c for m in modules for _, c in inspect.getmembers(m, inspect.isclass) if c.__module__ == m.__name__]


def test_no_class_has_many_bases_or_methods() -> None:
    for kind in classes():
        ours = [base for base in kind.__mro__[1:] if base.__module__.startswith("volcano_py")]
        assert len(ours) <= MOST_BASES, f"{kind.__name__} has {len(ours)} bases"
        methods = [name for name, of in vars(kind).items() if inspect.isfunction(of) and not name.startswith("_")]
        assert kind in MORE_METHODS or len(methods) <= MOST_METHODS, (
            f"{kind.__name__} has {len(methods)} public methods"
        )


def test_a_folder_can_be_read_at_a_glance() -> None:
    root = Path(volcano_py.scheduler.model.__file__).parents[1]
    for folder in (root, *(found for found in root.rglob("*") if found.is_dir() and found.name not in ONE_OF_EACH)):
        modules = [found.name for found in folder.glob("*.py") if found.name != "__init__.py"]
        assert len(modules) <= MOST_MODULES, f"{folder.relative_to(root)} has {len(modules)} modules"


def test_a_module_has_one_idea() -> None:
    root = Path(volcano_py.scheduler.model.__file__).parents[1]
    lines = {str(found.relative_to(root)): found.read_text().count("\n") for found in root.rglob("*.py")}
    assert sorted(name for name, count in lines.items() if count > MOST_LINES) == sorted(LONGER)


def test_a_session_has_one_base_which_only_registers() -> None:
    assert Session.__mro__[1:-1] == (PluginFace,)
    assert [name for name in vars(PluginFace) if not name.startswith(("_", "add_"))] == []


def test_a_method_that_belongs_to_a_part_is_named_with_its_part() -> None:
    session = Session.__new__(Session)
    with pytest.raises(AttributeError, match=r"a session has no attribute job_ready; call session.states.job_ready"):
        session.job_ready  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"a session has no attribute nothing$"):
        session.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_public_class_name_is_unique() -> None:
    root = Path(volcano_py.scheduler.model.__file__).parents[1]
    places: dict[str, list[str]] = {}
    for file in sorted(root.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(file.relative_to(root)))
    assert len(places) > 500
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
