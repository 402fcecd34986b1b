"""The controllers' picture of a kind: the informer and the answers to our own writes, in whatever order they come."""

import asyncio

from tests.waiting import budget
from volcano_py.api import kinds
from volcano_py.api.core import Pod
from volcano_py.controllers.mirror import Mirror
from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.informer import Informer


def pod(version, uid="u", **metadata):
    return {"metadata": {"name": "p", "namespace": "lab", "uid": uid, "resourceVersion": str(version), **metadata}}


def make():
    informer = Informer(Client(Credentials(server="http://127.0.0.1:1")), kinds.POD, Pod)
    return informer, Mirror(informer, Pod)


def saw(informer, kind, manifest):
    from volcano_py.api.codec import from_manifest
    from volcano_py.kube.watch import WatchEvent

    informer._apply(WatchEvent(kind, from_manifest(Pod, manifest)))


async def test_an_answer_that_comes_after_the_end_does_not_bring_the_object_back():
    informer, mirror = make()
    saw(informer, "ADDED", pod(1))
    saw(informer, "MODIFIED", pod(2, deletionTimestamp="2026-01-01T00:00:00Z"))
    saw(informer, "DELETED", pod(3))
    mirror.note(pod(2, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert mirror.get("lab/p") is None
    mirror.note(pod(4, uid="another"))
    assert mirror.get("lab/p").metadata.uid == "another"


async def test_an_answer_that_comes_before_the_watch_counts_at_once():
    informer, mirror = make()
    mirror.note(pod(1))
    assert mirror.get("lab/p").metadata.resource_version == "1"
    saw(informer, "ADDED", pod(1))
    mirror.note(pod(3))
    saw(informer, "MODIFIED", pod(2))
    assert mirror.get("lab/p").metadata.resource_version == "3", "the later event of the watch is older"
    mirror.forget("lab/p", "u")
    saw(informer, "MODIFIED", pod(4))
    assert mirror.get("lab/p") is None, "we have deleted it"
    saw(informer, "DELETED", pod(5))
    saw(informer, "ADDED", pod(6, uid="another"))
    assert mirror.get("lab/p").metadata.uid == "another"


async def test_an_object_that_was_deleted_before_the_watch_returned_it(monkeypatch):
    """Its handlers are called: a Job creates the pod again. Found by the simulation under faults."""
    monkeypatch.setattr("volcano_py.controllers.mirror.CONFIRM_SECONDS", 0.0)
    _, mirror = make()
    deleted = []
    mirror.on(delete=lambda obj: deleted.append(obj.metadata.uid))
    mirror.note(pod(1))
    async with asyncio.timeout(budget()):
        while mirror.get("lab/p") is not None:
            await asyncio.sleep(0)
    assert deleted == ["u"]
