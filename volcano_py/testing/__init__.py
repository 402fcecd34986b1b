"""For authors of plugins and actions: a cluster in a few lines (`kit`), and scenarios in YAML, run under pytest.

    # test_launch.py
    import pytest
    from launch import Launch
    from volcano_py.testing import check, registry, scenarios

    @pytest.mark.parametrize("scenario", scenarios("scenarios.yaml"))
    def test_scenario(scenario):
        check(scenario, registry(plugins={"launch": Launch}))

The notation is explained in `volcano_py.testing.table`.
"""

from volcano_py.testing.kit import Cluster, Decision
from volcano_py.testing.scenarios import check, registry, scenarios

__all__ = ["Cluster", "Decision", "check", "registry", "scenarios"]
