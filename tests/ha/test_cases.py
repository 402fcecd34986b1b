"""Leaders that fail in all ways: no write is late, no pod is bound twice, no node is over-allocated, all Jobs complete.

`python -m tests.ha` prints the table; these are the same cases.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ha import cases, upgrade
from tests.ha.replicas import Times
from tests.ha.site import site

QUICK = Times(2.5, 1.8, 0.3)


@pytest.mark.slow
async def test_leaders_that_fail(tmp_path: Path) -> None:
    async with site(tmp_path, QUICK) as here:
        rows = [await cases.run(here, case) for case in cases.CASES]
    print(cases.table(rows))
    assert {f"{row.program}: {row.case}": row.violations() for row in rows if row.violations()} == {}
    for case, row in zip(cases.CASES, rows, strict=True):
        assert row.jobs
        assert (row.takeover is not None) or not case.changes


@pytest.mark.slow
async def test_rolling_upgrade_and_downgrade(tmp_path: Path) -> None:
    try:
        rows = await upgrade.run(tmp_path, QUICK)
    except upgrade.NoHistory as why:
        pytest.skip(f"NOT RUN: {why}")
    print(cases.table(rows))
    assert {row.case: row.violations() for row in rows if row.violations()} == {}
    assert len(rows) == 2 and all(row.jobs for row in rows)
