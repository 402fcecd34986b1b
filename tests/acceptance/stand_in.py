"""A stand-in for kube-apiserver with its flags, served by the sandbox's API server: for the tests of `envtest`.

It shows that the start-up code gives the flags, keys and kubeconfig that such a program needs. What a real
kube-apiserver does beyond the sandbox's, it does not show.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from pathlib import Path

from volcano_py.sandbox.cluster import Sandbox


class Server(Sandbox):
    """An API server alone, with the certificates of the flags."""

    def __init__(self, flags: dict[str, str]) -> None:
        super().__init__(
            0,
            port=int(flags["secure-port"]),
            hollow=False,
            controllers=None,
            crds=False,
            first_queues=False,
            feature_gates=flags.get("feature-gates", ""),
        )
        self.flags = flags

    async def _listen(self, tls: ssl.SSLContext) -> None:
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(self.flags["tls-cert-file"], self.flags["tls-private-key-file"])
        own.load_verify_locations(self.flags["client-ca-file"])
        own.verify_mode = ssl.CERT_OPTIONAL
        await super()._listen(own)


async def main() -> None:
    if "--version" in sys.argv:
        print("Kubernetes v1.36.1")
        return
    flags = dict(argument.removeprefix("--").split("=", 1) for argument in sys.argv[1:])
    needed = {"etcd-servers", "service-account-key-file", "service-account-signing-key-file", "service-account-issuer"}
    if missing := needed - flags.keys():
        sys.exit(f"missing flags: {', '.join(sorted(missing))}")
    if b"-----BEGIN PRIVATE KEY" in Path(flags["service-account-key-file"]).read_bytes():
        sys.exit("service-account-key-file: data does not contain any valid RSA or ECDSA public keys")
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with Server(flags):
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
