"""The webhook manager as its own process: the API server asks it over HTTPS, and trusts a certificate that it made."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tests.e2e.cluster import job, until
from volcano_py.api.kinds import JOB, MUTATINGWEBHOOKCONFIGURATION, SECRET
from volcano_py.kube.client import Client
from volcano_py.kube.errors import ApiError, NotFound
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.webhooks.registration import Where, register

pytestmark = pytest.mark.slow
SECRET_NAME, NAMESPACE = "volcano-admission-secret", "volcano-system"
CONFIGURATION = "volcano-admission-service-jobs-mutate"


class OnlyReads(Client):
    """A client that writes nothing."""

    async def patch(self, rt: Any, name: str, *args: Any, **more: Any) -> dict[str, Any]:
        raise AssertionError(f"{name} is written")


async def found(client: Client, rt: Any, name: str, namespace: str | None = None) -> dict[str, Any] | None:
    try:
        got: dict[str, Any] = await client.get(rt, name, namespace)
    except NotFound:
        return None
    return got


async def test_jobs_are_judged_over_https_and_a_lost_certificate_is_replaced(tmp_path: Path) -> None:
    async with (
        Sandbox(1, components=("webhook-manager",), path=tmp_path / "kubeconfig", logs=tmp_path / "logs") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        rt = MUTATINGWEBHOOKCONFIGURATION
        configuration = await until(lambda: found(client, rt, CONFIGURATION), "not registered")
        plain = job("train", 2, "1", minimum=0)
        del plain["spec"]["queue"], plain["spec"]["schedulerName"]
        made = await client.create(JOB, plain)
        assert (made["spec"]["queue"], made["spec"]["minAvailable"]) == ("default", 2)
        with pytest.raises(ApiError, match=r'webhook "validatejob.volcano.sh" denied the request: job default/lost'):
            await client.create(JOB, job("lost", 1, "1", queue="nowhere"))

        # what is as wanted is not written again
        where = Where(url=configuration["webhooks"][0]["clientConfig"]["url"].removesuffix("/jobs/mutate"))
        authority = base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"])
        quiet = OnlyReads.from_kubeconfig(sandbox.kubeconfig)
        async with quiet:
            await register(quiet, ["/jobs/mutate", "/jobs/validate"], where, authority)
            with pytest.raises(AssertionError, match=CONFIGURATION):
                await register(quiet, ["/jobs/mutate"], where, b"another")

        # the Secret is deleted: a new authority is made, trusted, and served
        trusted = configuration["webhooks"][0]["clientConfig"]["caBundle"]
        await client.delete(SECRET, SECRET_NAME, NAMESPACE)

        async def renewed() -> bool:
            current = await found(client, rt, CONFIGURATION)
            return current is not None and current["webhooks"][0]["clientConfig"]["caBundle"] != trusted

        await until(renewed, "the API server was not told of the new authority")
        secret = await client.get(SECRET, SECRET_NAME, NAMESPACE)
        authority = x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["ca.crt"]))
        x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"])).verify_directly_issued_by(authority)

        async def answered() -> bool:
            try:
                await client.create(JOB, job("again", 1, "1"))
            except ApiError as error:
                assert "certificate" in str(error), error
                return False
            return True

        await until(answered, "the new certificate is not served")
