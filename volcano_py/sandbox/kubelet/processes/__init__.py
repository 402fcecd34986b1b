"""Containers' commands as real processes of this machine: what `sandbox up --run-commands` gives to the kubelets.

`runtime` is what the kubelets call. It mounts volumes below a pod's folder (`volumes`), makes the environment
(`environment`), puts real folders and loopback addresses in the place of mount paths and host names (`rewriting`,
`addresses`), and has the process started by a small child program (`supervisor`, reached through `connection`) that
outlives nothing: when the sandbox ends, by kill -9 too, the supervisor ends all processes and itself.
"""
