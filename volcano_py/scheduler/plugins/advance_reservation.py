"""advance-reservation: keeps the nodes of Reservations for those who may use them, at the times that these state. Not
in Volcano.

A Reservation (reservation.volcano.sh/v1alpha1) names nodes or amounts, a start and an end, and who may use them:
maintenance, classes, deadlines. The scheduler reads Reservations only while this plugin is configured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from volcano_py.scheduler.framework.advance.advance_book import AdvanceBook, AdvanceHolder
from volcano_py.scheduler.framework.advance.window_status import state_statuses
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.reservations.expected_ends import Estimates
from volcano_py.scheduler.framework.reservations.learned_run_times import LearnedRunTimes
from volcano_py.scheduler.framework.session import Session


class AdvanceReservation(Plugin):
    """See `Arguments`."""

    name = "advance-reservation"

    class Arguments(PluginArguments):
        default_run_time: str = field(default="", name="default-run-time")
        """How long jobs run that state no limit and for which none is learned; empty: they are not expected to end, so
        that they do not start on the nodes of a Reservation from its creation on."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        self.default_run_time = self.optional_duration(
            "default_run_time", "jobs without a limit are not expected to end", above_zero=True
        )

    def on_session_open(self, session: Session) -> None:
        estimates = Estimates(self.default_run_time, session.cluster.keep(LearnedRunTimes))
        self._book = AdvanceBook(session, estimates)
        session.shared(AdvanceHolder, AdvanceHolder).book = self._book
        if self._book.live:  # otherwise nothing is reserved in this session
            session.add_filters(self._book)

    def on_session_close(self, session: Session) -> None:
        state_statuses(session, self._book)
