"""`python -m benchmarks`: each layer is a module, which is imported when it runs."""

from __future__ import annotations

import sys

from volcano_py.cli.main import LazyGroup

LAYERS = {
    "decision": "One cycle over each scenario of a file.",
    "goals": "The goals for a cycle, with numpy and compiled, and what is missed.",
    "growth": "How a cycle grows with nodes, pods, queues and running pods.",
    "churn": "Changes in a busy cluster, such as one pod more: events to plan.",
    "limits": "What hostile or unusual input costs: time of the cycle, peak memory.",
    "structure": "The form of the scheduler's code at commits: sizes, complexity, circles of imports.",
    "path": "The path of one more pod through a cycle: its files and calls.",
    "explaining": "Explain a pending job of a large cluster, and state the reasons of many.",
    "profiles": "Pods of profiles: decisions a second, preemption, and how soon a pod is bound.",
    "native-groups": "Native gangs in profiles: an attempt of 1,000 pods, and preemption by a group.",
    "holding": "What reservations cost a cycle of a large cluster.",
    "packing": "Fill a cluster from a trace under several scores, and compare how full it gets.",
    "requests": "Requests and processor time a pod, for bare pods and for Jobs, on a sandbox.",
    "binding": "How soon single pods, and the pods of many Jobs, are bound on a sandbox.",
    "restart": "Start to first bind, and takeover by a standby, on a sandbox.",
    "sizing": "Memory and processor time of our programs by the size of the cluster.",
    "control-plane": "Controllers and admission: CPU and requests a Job, at rest, after a restart.",
    "sandbox": "The sandbox itself: rates over TLS, memory, time to start.",
    "watching": "kopf against our informer.",
    "soak": "Pods through the sandbox for hours: memory, descriptors, tasks and latency by tenth.",
    "apiserver": "Time to bind on kube-apiserver and etcd from $KUBEBUILDER_ASSETS.",
}
main = LazyGroup(
    {name: (f"benchmarks.{name.replace('-', '_')}", name.replace("-", "_"), text) for name, text in LAYERS.items()},
    name="benchmarks",
    help="Benchmarks of volcano_py.",
)

if __name__ == "__main__":
    try:
        main(prog_name="python -m benchmarks")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "tests":
            raise
        sys.exit("this benchmark uses the acceptance tests' control plane; run it from a checkout")
