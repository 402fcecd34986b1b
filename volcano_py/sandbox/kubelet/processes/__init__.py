"""Containers' commands as real processes of this machine, for kubelets with `sandbox up --run-commands`.

Kubelets call `runtime`. It mounts volumes below a pod's folder (`volumes`), creates the environment (`environment`),
replaces mount paths and host names by real folders and loopback addresses (`rewriting`, `addresses`), and starts the
process with a small child program (`supervisor`, through `connection`). No process outlives the sandbox: when it ends,
also by kill -9, the supervisor ends all processes and itself.
"""
