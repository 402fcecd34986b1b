"""Job plugin ssh: passwordless login between the pods of a Job.

All pods mount one Secret with a key pair and a configuration with all pods. If the user provides no keys, they are
generated with the Secret.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from volcano_py.api.batch import Job, Task
from volcano_py.api.kinds import SECRET
from volcano_py.controllers.instructions import Delete, Ensure, Instruction
from volcano_py.controllers.job.plugins.flags import Flags
from volcano_py.controllers.job.plugins.hosts import addresses, all_containers
from volcano_py.controllers.job.pods import owner_reference

BLAME = "PluginError"
HOME = "/root/.ssh"
FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
DIRECTORY = ".ssh"


class Ssh:
    name = "ssh"

    def __init__(self, arguments: Sequence[str]) -> None:
        flags = Flags(
            arguments,
            {"ssh-key-file-path": HOME, "ssh-private-key": "", "ssh-public-key": "", "ssh-port": 22},
        )
        self.problem = flags.problem
        self._path = flags.text("ssh-key-file-path")
        self._private, self._public = flags.text("ssh-private-key"), flags.text("ssh-public-key")
        port = flags.number("ssh-port")
        self._port = port if 1 <= port <= 65535 else 22

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        name = _secret_name(job)
        items = [{"key": file, "path": f"{DIRECTORY}/{file}"} for file in FILES]
        mode = 0o600 if self._path == HOME else 0o644
        secret = {"secretName": name, "items": items, "defaultMode": mode}
        pod["spec"].setdefault("volumes", []).append({"name": name, "secret": secret})
        mount = {"name": name, "mountPath": self._path, "subPath": DIRECTORY}
        for container in all_containers(pod):
            container.setdefault("volumeMounts", []).append(dict(mount))

    def on_job_add(self, job: Job) -> list[Instruction]:
        data = {"config": _encoded(self._config(job))}
        if self._private:
            data |= _key_files(self._private, self._public)
        secret = {
            "apiVersion": SECRET.api_version,
            "kind": SECRET.kind,
            "metadata": {
                "name": _secret_name(job),
                "namespace": job.metadata.namespace,
                "ownerReferences": [owner_reference(job)],
            },
            "data": data,
        }
        complete = None if self._private else _with_new_keys
        return [Ensure(SECRET, secret, ("data/config",), complete, BLAME)]

    def on_job_update(self, job: Job) -> list[Instruction]:
        return []

    def on_job_delete(self, job: Job) -> list[Instruction]:
        return [Delete(SECRET, job.metadata.namespace, _secret_name(job), blame=BLAME)]

    def _config(self, job: Job) -> str:
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in job.spec.tasks or ():
            for host, subdomain in addresses(job, task):
                lines += [f"Host {host}", f"  HostName {host}.{subdomain}", f"  Port {self._port}"]
        return "\n".join(lines) + "\n"


def _secret_name(job: Job) -> str:
    return f"{job.metadata.name}-ssh"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _key_files(private: str, public: str) -> dict[str, str]:
    return {
        "id_rsa": _encoded(private),
        "id_rsa.pub": _encoded(public),
        "authorized_keys": _encoded(public),
    }


def _with_new_keys(secret: dict[str, Any]) -> dict[str, Any]:
    """The Secret with a new RSA key pair."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return secret | {"data": secret["data"] | _key_files(private, public.decode())}
