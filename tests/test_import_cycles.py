"""No module imports itself by way of others, not even by an import inside a function."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_no_import_cycles() -> None:
    graph = grimp.build_graph("volcano_py", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert "volcano_py.scheduler.runtime.server" in imports
    order = list(TopologicalSorter(imports).static_order())  # raises CycleError, which names the modules of the cycle
    assert order.index("volcano_py.scheduler.configuration.options") < order.index(
        "volcano_py.scheduler.runtime.server"
    )
