"""A pytest plugin: imports the module that MUTANT names (`module:number`) with that fault in it."""

from __future__ import annotations

import ast
import os
import sys
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_loader
from typing import Any

from tests.mutation.faults import faults


class _Loader(SourceLoader):
    def __init__(self, path: str, number: int) -> None:
        self._path = path
        self._number = number

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def path_stats(self, path: str) -> Any:
        raise OSError("compiled anew each time: what is compiled is not what the file says")

    def source_to_code(self, data: Any, path: Any, *_: Any) -> Any:
        tree = ast.parse(data)
        if self._number >= 0:
            faults(tree)[self._number].apply()
        return compile(ast.fix_missing_locations(tree), path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self, module: str, number: int) -> None:
        self._module = module
        self._number = number

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        found = PathFinder.find_spec(fullname, path)
        assert found is not None and found.origin is not None
        return spec_from_loader(fullname, _Loader(found.origin, self._number))


if "MUTANT" in os.environ:
    _module, _, _number = os.environ["MUTANT"].partition(":")
    assert _module not in sys.modules, f"{_module} was imported before its fault could be put in"
    sys.meta_path.insert(0, _Finder(_module, int(_number)))
