"""A list with objects that do not fit: the others are used, and the event loop goes on while they are decoded."""

from __future__ import annotations

import asyncio

import pytest

from volcano_py.api.core import Pod
from volcano_py.kube import wire
from volcano_py.kube.errors import InvalidResponse


def body(*items: str) -> bytes:
    return f'{{"kind":"PodList","metadata":{{"resourceVersion":"7"}},"items":[{",".join(items)}]}}'.encode()


def pod(name: str, depth: int = 0) -> str:
    deep = '{"f:a":' * depth + "1" + "}" * depth
    fields = f',"managedFields":[{{"fieldsV1":{deep}}}]' if depth else ""
    return f'{{"metadata":{{"name":"{name}","namespace":"n"{fields}}}}}'


async def test_deep_objects_are_returned_separately() -> None:
    page, bad = await wire.read_list_lenient(body(pod("good"), pod("deep", 3000), pod("last")), Pod)
    assert [p.metadata.name for p in page] == ["good", "last"] and page.resource_version == "7"
    assert [(b.namespace, b.name, b.error) for b in bad] == [("n", "deep", "nested too deep")]
    assert wire.decode_list_lenient(body(pod("good"), pod("deep", 3000)), Pod)[1][0].name == "deep"


async def test_the_event_loop_goes_on_meanwhile() -> None:
    """A task gets many turns while 40 deep objects are decoded; decoding in the loop would leave it none."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await asyncio.sleep(0)
    before = turns
    await wire.read_list_lenient(body(*(pod(f"deep-{i}", 3000) for i in range(40))), Pod)
    counting.cancel()
    assert turns > before + 3


async def test_a_list_that_fits_is_decoded_at_once() -> None:
    reading = wire.read_list_lenient(body(pod("good")), Pod)
    with pytest.raises(StopIteration) as ended:
        reading.send(None)
    page, bad = ended.value.value
    assert [p.metadata.name for p in page] == ["good"] and not bad


async def test_what_is_no_list_is_an_error() -> None:
    with pytest.raises(InvalidResponse):
        await wire.read_list_lenient(b"<html>", Pod)
