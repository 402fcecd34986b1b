"""Leader election on a coordination.k8s.io/v1 Lease.

As client-go's elector (15 s lease, 10 s renew deadline, 2 s retries with jitter): the holder renews, the
others read the Lease and acquire it when it has not changed for a lease duration *by their own
clock*, which includes the time of a suspended machine; clocks of machines are never compared. They read it twice per
retry period and when the Lease expires, so that a standby then acquires it within a second. Every write is
guarded by the resourceVersion. On shutdown the Lease is released, so that the next leader does not have to wait.

A writer calls `holds()` right before each write: it returns False if renewals fail, five seconds
before another candidate can acquire the Lease.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import random
import socket
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from volcano_py.api.resource_types import LEASE
from volcano_py.kube.client import Client
from volcano_py.kube.clock import boottime
from volcano_py.kube.errors import ApiError, Conflict, Forbidden, InvalidResponse, KubeError, NotFound
from volcano_py.kube.remedies import remedy

log = logging.getLogger(__name__)
JITTER = 1.2
Callback = Callable[[], Any] | Callable[[], Awaitable[Any]]


class _Spec(msgspec.Struct, rename="camel"):
    """The fields of a Lease's spec that are used."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    lease_transitions: int | None = None


def default_identity() -> str:
    """`<host name>_<uuid>`, the identity format of Volcano's components."""
    return f"{socket.gethostname() or os.uname().nodename}_{uuid.uuid4()}"


class LeaderElection:
    """One candidate. `run()` returns when leadership is lost and releases the Lease when it is cancelled."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str | None = None,
        *,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        on_started: Callback | None = None,
        on_lost: Callback | None = None,
        clock: Callable[[], float] = boottime,
    ) -> None:
        if not lease_duration > renew_deadline > retry_period * JITTER:
            raise ValueError(
                f"leader election: need lease duration ({lease_duration} s) > renew deadline "
                f"({renew_deadline} s) > {JITTER} x retry period ({retry_period} s)"
            )
        self.identity = identity or default_identity()
        self.leader = False
        """Whether the last successful write made this candidate the holder; writers call `holds()`."""
        self.observed_holder = ""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._on_started = on_started
        self._on_lost = on_lost
        self._clock = clock
        self._reported = ""
        self._record: dict[str, Any] | None = None
        self._observed_at = float("-inf")
        self._renewed_at = float("-inf")
        self._expires_at: float | None = None
        """When another candidate's Lease expires; None: the last attempt failed."""

    def holds(self) -> bool:
        """Whether this candidate certainly is the leader now."""
        return self.leader and self._clock() < self._renewed_at + self._renew_deadline

    async def run(self) -> None:
        """Wait for leadership, call `on_started`, renew until it is lost, call `on_lost`, return."""
        try:
            while not await self._try():
                await asyncio.sleep(self.until_next_look())
            log.info("became leader of %s/%s as %s", self._namespace, self._name, self.identity)
            await _call(self._on_started)
            while self.holds():
                await asyncio.sleep(self._retry_period)
                left = self._renewed_at + self._renew_deadline - self._clock()
                try:
                    async with asyncio.timeout(max(0.0, left)):
                        await self._try()
                except TimeoutError:
                    break
            self.leader = False
            log.error("lost leadership of %s/%s", self._namespace, self._name)
            await _call(self._on_lost)
        except asyncio.CancelledError:
            await self.release()
            raise
        finally:
            self.leader = False

    def until_next_look(self) -> float:
        """Seconds until the next attempt, after reading a Lease of another candidate or after a failure."""
        if self._expires_at is None:
            return self._retry_period * (1 + JITTER * random.random())
        return max(0.0, min(self._retry_period / 2, self._expires_at - self._clock()))

    async def release(self) -> None:
        """Release the Lease if this candidate holds it; a failure is logged, and the Lease then expires."""
        if not self.leader or self._record is None:
            return
        self.leader = False
        try:
            async with asyncio.timeout(self._retry_period):
                try:
                    await self._client.update(LEASE, _released(self._record))
                except Conflict:
                    # A renewal was in flight when this candidate was stopped.
                    lease = await self._client.get(LEASE, self._name, self._namespace)
                    if _spec_of(lease).holder_identity == self.identity:
                        await self._client.update(LEASE, _released(lease))
            log.info("released %s/%s", self._namespace, self._name)
        except (KubeError, TimeoutError) as error:
            log.warning("could not release %s/%s: %s", self._namespace, self._name, error)

    async def _try(self) -> bool:
        """Acquire or renew once; returns whether this candidate holds the Lease."""
        begun = self._clock()
        self._expires_at = None
        try:
            if self.leader and self._record is not None:
                try:
                    # The holder does not have to read it first: the resourceVersion guards the write.
                    self._took(await self._write(self._record), begun)
                    return True
                except ApiError as error:
                    if error.status not in (404, 409):
                        raise
            return await self._look_and_take(begun)
        except KubeError as error:
            self._report(error)
            return False

    def _report(self, error: KubeError) -> None:
        """Log why the Lease cannot be acquired, once per reason."""
        if (text := str(error)) == self._reported:
            return
        self._reported = text
        if isinstance(error, Forbidden):
            text += "; " + remedy(error, LEASE, ("get", "create", "update"), self._namespace)
        elif isinstance(error, NotFound):
            text += f"; create it: kubectl create namespace {self._namespace}"
        log.warning("lease %s/%s: %s; retrying", self._namespace, self._name, text)

    async def _look_and_take(self, begun: float) -> bool:
        try:
            lease = await self._client.get(LEASE, self._name, self._namespace)
        except NotFound:
            self._took(await self._create(), begun)
            return True
        spec = self._observe(lease)
        if spec.holder_identity and spec.holder_identity != self.identity:
            self.leader = False
            expires = self._observed_at + float(spec.lease_duration_seconds or self._lease_duration)
            if self._clock() < expires:
                self._expires_at = expires
                return False
        self._took(await self._write(lease), begun)
        return True

    def _observe(self, lease: dict[str, Any]) -> _Spec:
        spec = _spec_of(lease)
        if self._record is None or self._record.get("spec") != lease.get("spec"):
            self._observed_at = self._clock()
        self._record = lease
        self.observed_holder = spec.holder_identity or ""
        return spec

    def _took(self, lease: dict[str, Any], begun: float) -> None:
        if _spec_of(lease).holder_identity != self.identity:
            raise InvalidResponse("the server accepted the Lease but responded with another object")
        # Counted from before the request was sent: the server's copy cannot be older than that.
        self._observe(lease)
        self._renewed_at = begun
        self._reported = ""
        self.leader = True

    async def _create(self) -> dict[str, Any]:
        now = micro_time()
        lease: dict[str, Any] = await self._client.create(
            LEASE,
            {
                "metadata": {"namespace": self._namespace, "name": self._name},
                "spec": self._spec(now, now, 0),
            },
        )
        return lease

    async def _write(self, lease: dict[str, Any]) -> dict[str, Any]:
        spec, now = _spec_of(lease), micro_time()
        transitions = spec.lease_transitions or 0
        if spec.holder_identity == self.identity:
            new = self._spec(spec.acquire_time or now, now, transitions)
        else:
            new = self._spec(now, now, transitions + 1)
        written: dict[str, Any] = await self._client.update(
            LEASE, {**lease, "spec": {**(lease.get("spec") or {}), **new}}
        )
        return written

    def _spec(self, acquired: str, renewed: str, transitions: int) -> dict[str, Any]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._lease_duration),
            "acquireTime": acquired,
            "renewTime": renewed,
            "leaseTransitions": transitions,
        }


def _spec_of(lease: dict[str, Any]) -> _Spec:
    """Raises InvalidResponse for an invalid Lease."""
    try:
        return msgspec.convert(lease.get("spec") or {}, _Spec)
    except msgspec.ValidationError as error:
        raise InvalidResponse(f"the server's response is not a Lease: {error}") from None


def _released(lease: dict[str, Any]) -> dict[str, Any]:
    """The Lease without a holder, which the next candidate can acquire at once."""
    now = micro_time()
    free = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
    return {**lease, "spec": {**(lease.get("spec") or {}), **free}}


def micro_time() -> str:
    """The current time as a Kubernetes MicroTime."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def _call(callback: Callback | None) -> None:
    if callback is not None:
        answer = callback()
        if inspect.isawaitable(answer):
            await answer
