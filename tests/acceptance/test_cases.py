"""Every case of Volcano's suites is covered, or its absence has a reason."""

from __future__ import annotations

from tests.acceptance.cases import PAGE, SUITES, absent, covered, page

ALL = {case for cases in SUITES.values() for case in cases}


def test_every_case_has_its_row() -> None:
    assert len(ALL) == 414
    live, missing = covered().keys(), absent().keys()
    assert not ALL - live - missing, "cases without a scenario or a reason"
    assert not (live | missing) - ALL, "cases that do not exist"
    assert not live & missing, "cases with a scenario and a reason for its absence"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == "\n".join(page()), "run python -m tests.acceptance.cases"
