"""`python -m tests.ha`: run the cases, print the table, and fail if a row has a violation."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.ha import cases, upgrade
from tests.ha.replicas import KUBERNETES, Times
from tests.ha.site import site


async def _run(times: Times, wanted: str) -> list[cases.Row]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="ha-") as folder:
        async with site(Path(folder), times) as here:
            for case in cases.CASES:
                if wanted in f"{case.program}: {case.name}":
                    rows.append(await cases.run(here, case))
                    print(rows[-1], file=sys.stderr, flush=True)
    if wanted in "rolling upgrade":
        with tempfile.TemporaryDirectory(prefix="ha-") as folder:
            rows += await upgrade.run(Path(folder), times)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ha", description=__doc__)
    parser.add_argument("--default-lease", action="store_true", help="15 s, 10 s and 2 s instead of 4, 3 and 0.5 s.")
    parser.add_argument("--case", default="", help="Only cases with this in 'program: name', or rolling upgrade.")
    given = parser.parse_args()
    rows = asyncio.run(_run(KUBERNETES if given.default_lease else Times(), given.case))
    print(cases.table(rows))
    wrong = [f"{row.program}: {row.case}: {text}" for row in rows for text in row.violations()]
    print("\n".join(wrong) or f"{len(rows)} cases without a violation")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
