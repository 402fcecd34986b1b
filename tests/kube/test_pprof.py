"""/debug/pprof: a CPU profile in pprof's format, the stacks of threads and tasks, and wrong requests."""

import asyncio
import gzip
import threading
import time
from collections import defaultdict

import aiohttp
import pytest

from tests.waiting import budget
from volcano_py.kube import pprof
from volcano_py.kube.pprof import Sampler, SamplerError
from volcano_py.kube.profile_proto import Frame, encode
from volcano_py.kube.serve import serving


def fields(message):
    """The fields of a message by number: integers, or bytes."""
    found, at = defaultdict(list), 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            found[key >> 3].append(varint())
        else:
            assert key & 7 == 2
            size = varint()
            found[key >> 3].append(message[at : at + size])
            at += size
    return found


def numbers(packed):
    found, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def decoded(body):
    """{(function, line) of each frame, the innermost first: (samples, nanoseconds)}, and the fields of the profile."""
    profile = fields(body)
    texts = [t.decode() for t in profile[6]]
    functions = {f[1][0]: texts[f[2][0]] for f in map(fields, profile[5])}
    places = {}
    for location in map(fields, profile[4]):
        line = fields(location[4][0])
        places[location[1][0]] = functions[line[1][0]], line[2][0]
    stacks = {}
    for sample in map(fields, profile[2]):
        stacks[tuple(places[i] for i in numbers(sample[1][0]))] = tuple(numbers(sample[2][0]))
    return stacks, profile, texts


def test_the_format_has_stacks_functions_and_units():
    inner, outer = Frame("Session.place", "/x/session.py", 10, 300), Frame("main", "/x/main.py", 1, 5)
    body = encode({(inner, outer): 3, (outer,): 1}, 10_000_000, 1_700_000_000_000_000_000, 2_000_000_000)
    stacks, profile, texts = decoded(body)
    assert stacks == {
        (("Session.place", 300), ("main", 5)): (3, 30_000_000),
        (("main", 5),): (1, 10_000_000),
    }
    types = [(texts[t[1][0]], texts[t[2][0]]) for t in map(fields, profile[1])]
    assert types == [("samples", "count"), ("cpu", "nanoseconds")]
    assert (profile[9], profile[10], profile[12]) == ([1_700_000_000_000_000_000], [2_000_000_000], [10_000_000])
    assert texts[0] == "" and "/x/session.py" in texts


@pytest.fixture
async def base():
    async with serving(debug=("127.0.0.1:0", pprof.handlers())) as ports:
        yield f"http://127.0.0.1:{ports['debug']}/debug/pprof/"


async def burn(until):
    while not until.is_set():
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        await asyncio.sleep(0)


async def test_a_profile_shows_where_cpu_time_is_spent(base):
    done = asyncio.Event()
    busy = asyncio.create_task(burn(done))
    total = inside = 0
    async with asyncio.timeout(budget()), aiohttp.ClientSession() as session:
        while total < 20:
            async with session.get(base + "profile", params={"seconds": "0.5"}) as answer:
                assert answer.status == 200 and answer.content_type == "application/octet-stream"
                stacks, profile, _ = decoded(gzip.decompress(await answer.read()))
            assert profile[10][0] >= 500_000_000
            total += sum(count for count, _ in stacks.values())
            inside += sum(count for stack, (count, _) in stacks.items() if stack[0][0] == "burn")
    done.set()
    await busy
    assert inside > total / 2


async def test_only_one_profile_at_a_time():
    sampler = Sampler()
    first = asyncio.create_task(sampler.sample(0.1))
    await asyncio.sleep(0)  # it begins
    with pytest.raises(SamplerError, match="cpu profiling already in use"):
        await sampler.sample(0.1)
    await first
    await sampler.sample(0.01)  # the end of a profile allows the next one


async def test_a_profile_that_cannot_start_is_an_error(base, monkeypatch):
    async def reject(self, seconds):
        raise SamplerError("cpu profiling already in use")

    monkeypatch.setattr(Sampler, "sample", reject)
    async with aiohttp.ClientSession() as session, session.get(base + "profile") as answer:
        assert answer.status == 500
        assert await answer.text() == "Could not enable CPU profiling: cpu profiling already in use\n"


@pytest.mark.parametrize("text", ["0", "-1", "301", "soon", "nan", "inf"])
async def test_a_wrong_duration_is_rejected(base, text):
    async with aiohttp.ClientSession() as session, session.get(base + f"profile?seconds={text}") as answer:
        assert answer.status == 400
        assert await answer.text() == f"seconds={text}: must be a number up to 300\n"


async def test_the_stacks_of_threads_and_tasks(base):
    async def waits_for_a_pod():
        await asyncio.Event().wait()

    event = threading.Event()
    thread = threading.Thread(target=event.wait, name="loads kernels")
    thread.start()
    task = asyncio.create_task(waits_for_a_pod(), name="waiting task")
    await asyncio.sleep(0)
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(base + "goroutine") as answer:
                text = await answer.text()
            async with session.get(base) as answer:
                index = await answer.text()
    finally:
        event.set()
        thread.join()
        task.cancel()
    assert "thread loads kernels:" in text and "thread MainThread:" in text
    assert "task waiting task:" in text and "in waits_for_a_pod" in text
    assert "profile" in index and "goroutine" in index


async def test_metrics_and_profiles_share_an_address():
    async with (
        serving(metrics=("127.0.0.1:0", lambda: b"m 1\n"), debug=("127.0.0.1:0", pprof.handlers())) as ports,
        aiohttp.ClientSession() as session,
    ):
        assert set(ports) == {"metrics"}
        for path, wanted in (("/metrics", "m 1\n"), ("/debug/pprof/cmdline", "python")):
            async with session.get(f"http://127.0.0.1:{ports['metrics']}{path}") as answer:
                assert wanted in await answer.text()


def test_a_server_in_another_thread_cannot_sample():
    found = []

    def run():
        try:
            asyncio.run(Sampler().sample(0.01))
        except SamplerError as error:
            found.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == ["the server does not run in the main thread, which handles signals"]
