"""PodIndex: the pods on each node, counted so that selectors can be evaluated per node without visiting pods.

Pods are distinguished by namespace and by the labels that a selector in the cluster uses (job controllers label every
pod differently; without that projection every pod would be a class of its own). For each such label class there is one
count per node. Classes of pods that have affinity terms of their own ("holders") are counted as well, for the rules in
the opposite direction.

The index is created when the first rule of a session reads it, and follows the session's placements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from volcano_py.api.meta import LabelSelector
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.spec_class import SpecClass
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.noderules.label_index import ByLabels, BySelector
from volcano_py.scheduler.rules.arrays import Ints
from volcano_py.scheduler.rules.pod_affinity import AffinityTerm, PodTerms, terms_of
from volcano_py.scheduler.rules.spread import OWNERS


def terms_of_class(cls: SpecClass) -> PodTerms:
    """The affinity terms between pods of a class."""
    return terms_of(cls.affinity, cls.namespace)


def selector_keys(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from selector.match_labels or ()
        yield from (e.key for e in selector.match_expressions or ())


class LabelClass:
    """Pods of one namespace that match the same selectors."""

    __slots__ = ("labels", "live", "namespace", "pods")

    def __init__(self, namespace: str, labels: dict[str, str], nodes: int) -> None:
        self.namespace = namespace
        self.labels = labels
        self.pods = np.zeros(nodes, dtype=np.int64)
        """All pods, per node."""
        self.live = np.zeros(nodes, dtype=np.int64)
        """Pods that are not being deleted."""


class Holders:
    """Pods of one class that have terms, per node."""

    __slots__ = ("cls", "namespace", "pods", "terms")

    def __init__(self, cls: SpecClass, nodes: int) -> None:
        self.cls = cls
        self.namespace = cls.namespace
        self.terms = terms_of_class(cls)
        self.pods = np.zeros(nodes, dtype=np.int64)


class PodIndex:
    """See the module."""

    def __init__(self, session: Session, extra_keys: frozenset[str]) -> None:
        self._session = session
        self.nodes = len(session.table)
        keys = set(extra_keys)
        for cls in session.cluster.classes.all():
            for term in terms_of_class(cls).all():
                keys.update(selector_keys(term.selector))
            for c in cls.spread:
                keys.update(selector_keys(c.label_selector))
                keys.update(c.match_label_keys or ())
        self._keys = sorted(keys)
        self._classes: dict[tuple[str, ...], LabelClass] = {}
        self._by_labels: ByLabels[LabelClass] = ByLabels()
        self._holders: dict[int, Holders] = {}
        self._anti_affinity: BySelector[tuple[Holders, AffinityTerm]] = BySelector()
        self._preferred: BySelector[tuple[Holders, AffinityTerm]] = BySelector()
        self._terms: dict[int, PodTerms] = {}
        self._own_terms: dict[int, PodTerms] = {}
        session.kube.on_pods(self._move)
        self.with_affinity = np.zeros(self.nodes, dtype=bool)
        self.with_anti_affinity = np.zeros(self.nodes, dtype=bool)
        self._note_holders()

    def _note_holders(self) -> None:
        """Record the nodes that had pods with terms when the session opened (Volcano checks no others)."""
        index = self._session.table.index
        for name, tasks in self._session.cluster.on_node.items():
            node = index.get(name)
            if node is None:
                continue
            for task in tasks.values():
                terms = self.terms(task.spec_class)
                if terms:
                    self.with_affinity[node] = True
                    if terms.anti_affinity:
                        self.with_anti_affinity[node] = True

    def terms(self, cls: SpecClass) -> PodTerms:
        known = self._terms.get(cls.id)
        if known is None:
            known = self._terms[cls.id] = terms_of_class(cls)
        return known

    def own_terms(self, cls: SpecClass) -> PodTerms:
        """The terms of a class for a task that is to be placed: with the namespaces that they match now."""
        known = self._own_terms.get(cls.id)
        if known is None:
            terms = self.terms(cls)
            objects = self._session.cluster.others.get("Namespace", {}) if terms else {}
            known = self._own_terms[cls.id] = terms.resolved(
                {name: each.metadata.labels or {} for name, each in objects.items()}
            )
        return known

    def label_class(self, task: Task) -> LabelClass:
        labels = task.pod.metadata.labels or {}
        key = (task.namespace, *(labels.get(k, "\0") for k in self._keys))
        known = self._classes.get(key)
        if known is None:
            projected = {k: labels[k] for k in self._keys if k in labels}
            known = self._classes[key] = LabelClass(task.namespace, projected, self.nodes)
            self._by_labels.add(known, projected)
        return known

    def _move(self, task: Task, node: int, sign: int) -> None:
        label_class = self.label_class(task)
        label_class.pods[node] += sign
        if task.pod.metadata.deletion_timestamp is None:
            label_class.live[node] += sign
        cls = task.spec_class
        if self.terms(cls):
            holders = self._holders.get(cls.id)
            if holders is None:
                holders = self._hold(cls)
            holders.pods[node] += sign

    def _hold(self, cls: SpecClass) -> Holders:
        holders = self._holders[cls.id] = Holders(cls, self.nodes)
        for term in holders.terms.anti_affinity:
            self._anti_affinity.add((holders, term), term.selector)
        for term in holders.terms.preferred:
            self._preferred.add((holders, term), term.selector)
        return holders

    def label_classes(self, selector: LabelSelector | None) -> Iterable[LabelClass]:
        """The label classes that a selector can match."""
        return self._by_labels.candidates(selector)

    def against(self, task: Task) -> Iterator[tuple[Holders, AffinityTerm]]:
        """The pods with a required anti-affinity term that selects a task, with this term."""
        return self._selecting(self._anti_affinity, task)

    def preferring(self, task: Task) -> Iterator[tuple[Holders, AffinityTerm]]:
        """The same for preferred terms."""
        return self._selecting(self._preferred, task)

    def _selecting(
        self, terms: BySelector[tuple[Holders, AffinityTerm]], task: Task
    ) -> Iterator[tuple[Holders, AffinityTerm]]:
        labels = task.pod.metadata.labels or {}
        namespace = self._session.cluster.others.get("Namespace", {}).get(task.namespace)
        of_namespace = namespace.metadata.labels if namespace is not None else None
        for holders, term in terms.candidates(labels):
            if term.selects(task.namespace, labels, of_namespace):
                yield holders, term

    def selected(self, term: AffinityTerm) -> Ints:
        """Per node, the number of pods that one of `own_terms` selects."""
        total = np.zeros(self.nodes, dtype=np.int64)
        for c in self.label_classes(term.selector):
            if term.selects(c.namespace, c.labels):
                total += c.pods
        return total


def pod_index(session: Session) -> PodIndex:
    """The session's index, created at first use."""
    return session.shared(PodIndex, lambda: _build(session))


def _build(session: Session) -> PodIndex:
    keys: set[str] = set()
    for service in session.cluster.others.get("Service", {}).values():
        keys.update(service.spec.selector or ())
    for _, kind in OWNERS:
        for workload in session.cluster.others.get(kind, {}).values():
            chosen = workload.spec.selector
            keys.update(chosen if isinstance(chosen, dict) else selector_keys(chosen))
    return PodIndex(session, frozenset(keys))
