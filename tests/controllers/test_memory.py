"""What is remembered of objects goes with them."""

from __future__ import annotations

from tests.controllers.world import World, job
from volcano_py.api import kinds
from volcano_py.controllers.executor import Executor
from volcano_py.controllers.memory import Memory


def test_a_deleted_object_is_forgotten_and_the_number_of_objects_is_bounded() -> None:
    memory: Memory[str, int] = Memory(most=2)
    memory.put("a", "x", 1)
    memory.put("a", "y", 2)
    memory.put("b", "x", 3)
    memory.put("a", "x", 4)
    memory.put("c", "x", 5)  # b was noted least recently
    assert (memory.get("a", "x"), memory.get("b", "x"), memory.get("c", "x")) == (4, None, 5)
    memory.drop("a", "x")
    assert memory.get("a", "y") == 2
    memory.drop("a", "y")
    memory.forget("c")
    assert len(memory) == 0


async def test_the_executor_forgets_jobs_that_are_deleted(world: World, monkeypatch) -> None:
    executors: list[Executor] = []
    attach = Executor.attach
    monkeypatch.setattr(Executor, "attach", lambda self, *given: (executors.append(self), attach(self, *given))[1])
    await world.kill()
    await world.start()
    for number in range(5):
        world.api.put(job(name=f"j{number}", plugins={"svc": []}, queue="default" if number else "nowhere"))
    world.api.put({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "j1"}})
    await world.until(lambda: len(world.podgroups()) == 4)
    executor = executors[0]
    remembered = (executor._recorded, executor._owned._stored)
    await world.until(lambda: all(len(memory) for memory in remembered))
    for number in range(5):
        world.api.delete(kinds.JOB, f"j{number}")
    await world.until(lambda: not any(len(memory) for memory in remembered))
