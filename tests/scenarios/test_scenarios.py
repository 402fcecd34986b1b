"""Every scenario of every table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from volcano_py.testing import check, scenarios

_ALL = [
    pytest.param(scenario, id=f"{path.stem}: {scenario['name']}")
    for path in sorted(Path(__file__).parent.glob("*.yaml"))
    for scenario in scenarios(path)
]


@pytest.mark.parametrize("scenario", _ALL)
def test_scenario(scenario: dict[str, Any]) -> None:
    check(scenario)
