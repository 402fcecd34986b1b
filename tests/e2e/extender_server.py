"""A program that kube-scheduler's extender protocol can ask, and that fails as the name of a pod says.

`python -m tests.e2e.extender_server KUBECONFIG REPORT` prints its port and serves POST `/NAME/VERB`. A pod
`VERB-FAULT-…` gets the fault at that verb (500, hang, garbage, or a lie); all others get honest answers: node-1 scores
highest, preemption may evict on node-1 only, and bind writes the binding. REPORT gets a line `NAME VERB POD NODES` for
each call, where NODES says whether the nodes came as names or as objects.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

from volcano_py.api.kinds import POD
from volcano_py.kube.client import Client

LIES: dict[str, Any] = {
    "filter": {"NodeNames": ["node-9"]},
    "prioritize": [{"Host": "node-0", "Score": 500}, {"Host": "node-1", "Score": 500}],
    "preempt": {"NodeNameToMetaVictims": {"node-0": {"Pods": [{"UID": "missing"}]}}},
    "bind": ["done"],
}


class Extender:
    def __init__(self, kubeconfig: str, report: Path) -> None:
        self._kubeconfig = kubeconfig
        self._report = report

    async def handle(self, request: web.Request) -> web.StreamResponse:
        name, verb, asked = request.match_info["name"], request.match_info["verb"], await request.json()
        pod = asked["PodName"] if verb == "bind" else asked["Pod"]["metadata"]["name"]
        nodes = "names" if asked.get("NodeNames") else "objects" if asked.get("Nodes") else "-"
        with self._report.open("a") as file:
            file.write(f"{name} {verb} {pod} {nodes}\n")
        at, fault, *_ = [*pod.split("-"), ""]
        match fault if at == verb else "":
            case "500":
                return web.Response(status=500)
            case "hang":
                await asyncio.Event().wait()
            case "garbage":
                return web.Response(text="<html>")
            case "lie":
                return web.json_response(LIES[verb])
        return web.json_response(await self._honest(verb, asked))

    async def _honest(self, verb: str, asked: dict[str, Any]) -> Any:
        match verb:
            case "filter":
                return {"NodeNames": asked["NodeNames"], "Nodes": asked["Nodes"]}
            case "prioritize":
                names = asked["NodeNames"] or [n["metadata"]["name"] for n in asked["Nodes"]["items"]]
                return [{"Host": n, "Score": 10 if n == "node-1" else 0} for n in names]
            case "preempt":
                kept = asked["NodeNameToMetaVictims"].get("node-1")
                return {"NodeNameToMetaVictims": {"node-1": kept} if kept else {}}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": asked["PodName"]}}
        binding["target"] = {"apiVersion": "v1", "kind": "Node", "name": asked["Node"]}
        async with Client.from_kubeconfig(self._kubeconfig) as client:
            await client.create_subresource(POD, asked["PodName"], "binding", binding, asked["PodNamespace"])
        return {"Error": ""}


async def serve(kubeconfig: str, report: str) -> None:
    app = web.Application()
    app.router.add_post("/{name}/{verb}", Extender(kubeconfig, Path(report)).handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
