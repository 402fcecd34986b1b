"""/commands/mutate: who may open and close a queue, and the record of the check."""

from __future__ import annotations

import json

import pytest

from tests.webhooks.test_server import applied, review, serving
from volcano_py.api import names
from volcano_py.kube.errors import Unreachable
from volcano_py.webhooks.access import AccessQuery, UserInfo, review_body
from volcano_py.webhooks.commands import RECORD
from volcano_py.webhooks.paths import PATHS, AdmissionContext, AdmissionRequest, evaluate, with_access
from volcano_py.webhooks.registration import Where, configuration

PATH = PATHS["/commands/mutate"]
JANE = UserInfo("jane", ("developers",), "u-7", {"scopes": ["a"]})


def command(queue="team", kind="Queue", api="scheduling.volcano.sh/v1beta1", action="CloseQueue", **annotations):
    return {
        "metadata": {"name": "c", "namespace": "lab", "annotations": annotations},
        "action": action,
        "target": {"apiVersion": api, "kind": kind, "name": queue},
    }


async def decide(obj, allows=(), operation="CREATE", user=JANE):
    """The verdict, and the access checks that were made."""
    asked = []

    async def access(query: AccessQuery) -> bool:
        asked.append(query)
        return query.name in allows

    around = AdmissionContext(access=access)
    request = AdmissionRequest(operation, obj, obj if operation == "UPDATE" else None, user=user)
    return evaluate(PATH, request, await with_access(PATH, request, around)), asked


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
async def test_who_may_update_the_queue_gets_a_record(operation):
    verdict, asked = await decide(command(), {"team"}, operation)
    assert not verdict.problems
    record = {names.QUEUE_ACCESS_CHECKED: "CloseQueue team", names.QUEUE_ACCESS_USER: "jane"}
    assert verdict.obj["metadata"]["annotations"] == record
    assert asked == [AccessQuery(JANE, "update", "scheduling.volcano.sh", "queues", "team")]


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
async def test_others_are_denied_with_the_permission_that_they_lack(operation):
    verdict, _ = await decide(command(**{names.QUEUE_ACCESS_CHECKED: "CloseQueue team"}), {"other"}, operation)
    assert verdict.problems == [
        "command lab/c: target.name: Forbidden: user 'jane' may not open or close queue team: that requires the verb "
        "update on queues.scheduling.volcano.sh team; ask an administrator of the cluster to grant it with a "
        "ClusterRole"
    ]


@pytest.mark.parametrize("queue", ["root", "default"])
@pytest.mark.parametrize("action", ["OpenQueue", "CloseQueue"])
async def test_no_command_closes_root_or_default(queue, action):
    verdict, asked = await decide(command(queue, action=action), {queue})
    assert not asked
    assert f"no Command may open or close queue {queue}" in verdict.problems[0]


async def test_a_record_on_a_command_for_a_job_is_removed():
    """Otherwise its target could be changed to a queue afterwards, where admission does not look."""
    forged = command("train", "Job", "batch.volcano.sh/v1alpha1", "AbortJob", **dict.fromkeys(RECORD, "x"))
    verdict, asked = await decide(forged)
    assert not verdict.problems and not asked
    assert verdict.obj["metadata"]["annotations"] == {}


async def test_without_an_access_check_nothing_is_granted():
    request = AdmissionRequest("CREATE", command(), user=JANE)
    assert evaluate(PATH, request, await with_access(PATH, request, AdmissionContext())).problems


async def test_over_http_the_user_of_the_request_is_checked():
    asked = []

    async def access(query: AccessQuery) -> bool:
        asked.append(query)
        return True

    user = {"username": "jane", "groups": ["developers"], "uid": "u-7", "extra": {"scopes": ["a"]}}
    async with serving(around=AdmissionContext(access=access)) as post:
        _, made = await post(PATH.path, review(command(), userInfo=user))
        assert made["response"]["allowed"]
        assert applied(command(), json.loads(_patch(made)))["metadata"]["annotations"]
        assert asked[0].user == JANE
        _, made = await post(PATH.path, review(command(), userInfo={"username": "jane", "groups": 7}))
        assert "request.userInfo.groups" in made["response"]["status"]["message"]


async def test_an_api_server_that_does_not_answer_allows_nothing():
    async def access(query: AccessQuery) -> bool:
        raise Unreachable("no connection")

    async with serving(around=AdmissionContext(access=access)) as post:
        status, _ = await post(PATH.path, review(command(), userInfo={"username": "jane"}))
        assert status == 500


def test_the_review_contains_the_whole_identity():
    body = review_body(AccessQuery(JANE, "update", "scheduling.volcano.sh", "queues", "team"))
    assert body["spec"] == {
        "user": "jane",
        "groups": ["developers"],
        "uid": "u-7",
        "extra": {"scopes": ["a"]},
        "resourceAttributes": {
            "verb": "update",
            "group": "scheduling.volcano.sh",
            "resource": "queues",
            "name": "team",
        },
    }


def test_the_webhook_applies_in_every_namespace():
    """In a namespace that it skips, every creator could write the record."""
    where = Where(namespace="volcano-system", service="admission")
    assert "namespaceSelector" not in configuration(PATH, where, b"")["webhooks"][0]
    assert "namespaceSelector" in configuration(PATHS["/jobs/validate"], where, b"")["webhooks"][0]


def _patch(made):
    import base64

    return base64.b64decode(made["response"]["patch"])
