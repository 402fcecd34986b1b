"""No module imports itself by way of others, not even by an import inside a function or for types."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

RECURSIVE = ("volcano_py.sandbox.apiserver.registry.strategy", "volcano_py.sandbox.apiserver.registry.request")
"""A resource has a strategy, whose functions receive requests, which have a resource: one recursive type."""


def test_no_import_leads_back_to_its_module() -> None:
    graph = grimp.build_graph("volcano_py", cache_dir=None)
    imports = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    strategy, request = RECURSIVE
    imports[strategy].remove(request)
    try:
        order = list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")
    assert order.index("volcano_py.scheduler.configuration.options") < order.index(
        "volcano_py.scheduler.runtime.server"
    )
