"""How an author tests a plugin: scenarios in YAML, run by volcano_py.testing."""

from pathlib import Path

import pytest
from launch import Launch, Tally

from volcano_py.testing import check, registry, scenarios


@pytest.mark.parametrize("scenario", scenarios(Path(__file__).parent / "scenarios" / "fewest-pods.yaml"))
def test_scenario(scenario):
    check(scenario, registry({"launch": Launch}, {"tally": Tally}))
