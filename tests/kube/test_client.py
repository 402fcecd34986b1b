import asyncio
import time

import msgspec
import pytest
from aiohttp import web
from fake_api import PODS, QUEUES, pod, status

from volcano_py.kube import AlreadyExists, ApiError, Client, Conflict, Gone, Invalid, NotFound, Unreachable
from volcano_py.kube.credentials import Credentials


@pytest.fixture(params=[False, True], ids=["aiohttp", "lean"])
def lean(request):
    return request.param


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class Pod(msgspec.Struct):
    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)


async def test_an_object_is_created_read_changed_and_deleted(client):
    made = await client.create(PODS, pod("a"), "default")
    assert made["kind"] == "Pod" and made["apiVersion"] == "v1"
    read = await client.get(PODS, "a", "default", type=Pod)
    assert read.metadata.uid == made["metadata"]["uid"]
    read.spec.node_name = "n1"
    assert (await client.update(PODS, read))["spec"]["nodeName"] == "n1"
    with pytest.raises(Conflict):
        await client.update(PODS, read)
    patched = await client.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}}, "default")
    assert patched["metadata"]["labels"] == {"x": "y"}
    with pytest.raises(Conflict):
        await client.delete(PODS, "a", "default", uid="another")
    await client.delete(PODS, "a", "default", uid=read.metadata.uid)
    with pytest.raises(NotFound):
        await client.get(PODS, "a", "default")


async def test_cluster_wide_kinds_have_no_namespace(api, client):
    await client.create(QUEUES, {"metadata": {"name": "q"}})
    assert api.log == ["POST /apis/scheduling.volcano.sh/v1beta1/queues"]


async def test_a_struct_gets_kind_and_version(api, client):
    await client.create(PODS, Pod(metadata=Meta(name="s", namespace="ns")))
    sent = api.bodies[-1][1]
    assert (sent["kind"], sent["apiVersion"]) == ("Pod", "v1")
    assert api.log == ["POST /api/v1/namespaces/ns/pods"]


async def test_lists_come_whole_or_in_pages(api, client):
    for i in range(7):
        api.put("pods", pod(f"p{i}"))
    whole = await client.list(PODS, "default", type=Pod)
    assert [p.metadata.name for p in whole] == [f"p{i}" for i in range(7)]
    assert whole.resource_version == str(api.revision)
    sizes = [len(page) async for page in client.pages(PODS, limit=3)]
    assert sizes == [3, 3, 1]


async def test_the_next_page_is_made_while_one_is_read(api, client):
    for i in range(7):
        api.put("pods", pod(f"p{i}"))
    requests = []
    async for _ in client.pages(PODS, limit=3):
        await asyncio.sleep(0.1)
        requests.append(len(api.log))
    assert requests == [2, 3, 3]


@pytest.mark.parametrize(("compressed", "accepted"), [(True, "gzip, deflate"), (False, "identity")])
async def test_compressed_responses_are_accepted_unless_they_take_more_time(api, compressed, accepted):
    asked = []

    def answer(request):
        asked.append(request.headers["Accept-Encoding"])
        return status(404, "NotFound")

    api.fault("GET /api/v1", answer)
    async with Client(Credentials(server=api.url, compressed=compressed)) as client:
        with pytest.raises(NotFound):
            await client.get(PODS, "p", "default")
    assert asked[0].startswith(accepted)


async def test_patch_types_have_their_content_types(api, client):
    api.put("pods", pod("a"))
    seen = []

    def note(request):
        seen.append((request.headers["Content-Type"], request.query_string))
        return web.json_response({})

    api.fault("PATCH ", note, times=4)
    for kind in ("merge", "json", "strategic", "apply"):
        await client.patch(PODS, "a", {}, "default", patch_type=kind, force=kind == "apply")
    assert seen == [
        ("application/merge-patch+json", ""),
        ("application/json-patch+json", ""),
        ("application/strategic-merge-patch+json", ""),
        ("application/apply-patch+yaml", "fieldManager=volcano-py&force=true"),
    ]


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (500, "InternalError", ApiError),
    ],
)
async def test_failures_have_classes(api, client, code, reason, kind):
    api.fault("GET ", lambda r: status(code, reason, "why", details={"causes": [{"field": "spec"}]}))
    with pytest.raises(kind) as caught:
        await client.get(PODS, "a", "default")
    assert (caught.value.status, caught.value.reason, caught.value.message) == (code, reason, "why")
    assert caught.value.details["causes"] == [{"field": "spec"}]


async def test_an_answer_that_is_no_status_is_the_message(api, client):
    api.fault("GET ", lambda r: web.Response(status=502, text="bad gateway"))
    with pytest.raises(ApiError, match="bad gateway"):
        await client.get(PODS, "a", "default")


async def test_retry_after_is_honoured(api, client):
    api.put("pods", pod("a"))
    api.fault("GET ", lambda r: status(429, "TooManyRequests", headers={"Retry-After": "0.1"}), times=2)
    begun = time.monotonic()
    await client.get(PODS, "a", "default")
    assert time.monotonic() - begun >= 0.2
    assert len(api.log) == 3


async def test_a_server_error_without_retry_after_is_not_repeated(api, client):
    api.fault("GET ", lambda r: status(500, "InternalError"), times=2)
    with pytest.raises(ApiError):
        await client.get(PODS, "a", "default")
    assert len(api.log) == 1


async def test_no_server_is_unreachable_and_surely_unsent(api, lean):
    await api.stop()
    async with Client(Credentials(server=api.url), lean=lean) as client:
        with pytest.raises(Unreachable) as caught:
            await client.get(PODS, "a", "default")
    assert caught.value.sent is False
    assert api.url in str(caught.value)


async def test_a_silent_server_is_unreachable_but_perhaps_reached(api, lean):
    async def silence(request):
        await asyncio.sleep(5)

    api.fault("GET ", silence)
    async with Client(Credentials(server=api.url), timeout=0.2, lean=lean) as client:
        with pytest.raises(Unreachable) as caught:
            await client.get(PODS, "a", "default")
    assert caught.value.sent is True


async def test_a_cancellation_at_the_time_limit_ends_the_task(api, lean):
    async def silence(request):
        await asyncio.sleep(5)

    api.fault("GET ", silence)
    async with Client(Credentials(server=api.url), timeout=0.5, lean=lean) as client:
        task = asyncio.create_task(client.get(PODS, "a", "default"))
        while not api.log:
            await asyncio.sleep(0.01)
        time.sleep(0.6)  # the cancellation and the time limit are then due in one turn of the event loop
        asyncio.get_running_loop().call_soon(task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_qps_and_burst_limit_the_rate(api):
    api.put("pods", pod("a"))
    async with Client(Credentials(server=api.url), qps=50, burst=5) as client:
        begun = time.monotonic()
        await asyncio.gather(*(client.get(PODS, "a", "default") for _ in range(15)))
        assert time.monotonic() - begun > 0.18


async def test_bodies_may_hold_structs(api, client):
    api.put("pods", pod("a"))
    await client.patch(PODS, "a", {"spec": Spec(node_name="n")}, "default")
    assert api.objects[("pods", "default", "a")]["spec"] == {"nodeName": "n"}
