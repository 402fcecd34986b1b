"""Searches: each search for a node of a single pod, reported to a recording, and run again from one. Not in Kubernetes.

A search is reported if only the model and the inputs of `Search` decide it: none of the profile's plugins keeps a state
of its own (Observer), reads objects that the model does not have, or has called another program for the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from volcano_py.scheduler.profiles.attempts.attempt import AnswerPending, Found, NotFound, find
from volcano_py.scheduler.profiles.attempts.search_record import Search, SearchOutcome
from volcano_py.scheduler.profiles.plugin_api.handle import World
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile


class Searches:
    """`report` receives each search that can run again; None: nothing is recorded."""

    def __init__(self, world: World, profiles: Mapping[str, Profile]) -> None:
        self.report: Callable[[Search], None] | None = None
        self._world = world
        self._profiles = profiles

    def find(self, profile: Profile, pod: PodInfo) -> Found | NotFound | AnswerPending:
        """The best node for a pod, or why there is none."""
        cluster = self._world.cluster
        if self.report is None or not profile.repeatable or pod.key in self._world.questions:
            return find(profile, cluster, pod)
        start, nominated = profile.sample.start, cluster.nominations
        found = find(profile, cluster, pod)
        if not isinstance(found, AnswerPending):
            self.report(Search(pod.key, self._world.now, start, nominated, outcome_of(found)))
        return found

    def again(self, search: Search) -> SearchOutcome:
        """The outcome of a recorded search on the model as it is now. Raises LookupError if the model lacks the pod, or
        there is no such profile."""
        cluster = self._world.cluster
        pod = cluster.pod(search.pod)
        if pod is None:
            raise LookupError(f"the model has no pod {search.pod}")
        profile = self._profiles[pod.pod.spec.scheduler_name]
        self._world.now = search.now
        profile.sample.start = search.start
        self._nominate(search.nominated)
        found = find(profile, cluster, pod)
        if isinstance(found, AnswerPending):
            return SearchOutcome(message="a plugin calls another program")
        return outcome_of(found)

    def _nominate(self, wanted: Mapping[str, str]) -> None:
        """Have exactly these nominations."""
        cluster = self._world.cluster
        known = cluster.nominations
        for key in known.keys() | wanted.keys():
            pod = cluster.pod(key)
            if pod is not None and known.get(key) != wanted.get(key):
                cluster.nominate(pod, wanted.get(key, ""))


def outcome_of(found: Found | NotFound) -> SearchOutcome:
    """The outcome as data."""
    if isinstance(found, Found):
        return SearchOutcome(found.node)
    victims = [victim.key for victim in found.victims]
    return SearchOutcome("", found.message, sorted(found.rejected_by), found.nominated, victims, found.error)
