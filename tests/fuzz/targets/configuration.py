"""Configurations: of the scheduler, its profiles, the controllers, and the kubeconfig."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from tests.fuzz.target import Target, text_of
from tests.fuzz.targets.seeds import ROOT
from volcano_py.controllers.hypernode import config as hypernode_config
from volcano_py.controllers.hypernode import labels, ufm
from volcano_py.controllers.sharding import config as sharding
from volcano_py.kube import credentials
from volcano_py.kube.errors import KubeError
from volcano_py.scheduler.framework.config import ConfigurationError, load
from volcano_py.scheduler.plugins.deviceshare import device_config
from volcano_py.scheduler.pods.document import _document
from volcano_py.scheduler.profiles import configuration as profiles
from volcano_py.scheduler.review.document import unwrap
from volcano_py.scheduler.review.effective import settings
from volcano_py.scheduler.review.findings import findings
from volcano_py.scheduler.run_once import REGISTRY


@cache
def folder() -> Path:
    """A folder for files of this process."""
    return Path(tempfile.mkdtemp(prefix="fuzz-"))


def in_file(read: Callable[[Path], object], name: str) -> Callable[[bytes], object]:
    """A target that reads a file."""

    def run(data: bytes) -> object:
        path = folder() / name
        path.write_bytes(data)
        return read(path)

    return run


def _scheduler(data: bytes) -> None:
    """As `config check` and `config show` read it, and as the scheduler does."""
    text = text_of(data)
    findings(text, REGISTRY)
    configuration = load(text, REGISTRY.actions)
    settings(configuration, REGISTRY, everything=True)


def _unwrapped(data: bytes) -> None:
    document = unwrap(text_of(data))
    assert document is not None


def _profiles(path: Path) -> None:
    profiles.load(_document(str(path)))


def _sharding(data: bytes) -> None:
    sharding.settings_of(sharding.parse(text_of(data)), sharding.Settings())


def _sharding_flag(data: bytes) -> None:
    sharding.parse_flag(text_of(data))


def _hypernodes(data: bytes) -> None:
    for source in hypernode_config.parse({hypernode_config.KEY: text_of(data)}):
        assert source.period > 0
        with contextlib.suppress(ValueError):
            labels.labels_used(labels.parse_types(source.config)[0])
        with contextlib.suppress(ValueError):
            ufm.endpoint(source)


def _devices(data: bytes) -> None:
    device_config.read(text_of(data))


def _kubeconfig(path: Path) -> None:
    headers = credentials.from_kubeconfig(path).headers()
    assert isinstance(headers, dict)


def _text(path: str) -> bytes:
    return (ROOT / path).read_bytes()


_PROFILES = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
percentageOfNodesToScore: 50
leaderElection: {leaderElect: true, leaseDuration: 15s}
profiles:
- schedulerName: a
  plugins:
    score: {enabled: [{name: NodeResourcesFit, weight: 2}], disabled: [{name: ImageLocality}]}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
extenders:
- urlPrefix: http://127.0.0.1:1/x
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 1
  httpTimeout: 5s
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]
"""
_SHARDING = b"""
schedulerConfigs:
- {name: volcano, type: volcano, policies: [{name: node-limit, weight: 1, arguments: {minNodes: 1, maxNodes: 9}}]}
- {name: agent, type: agent, cpuUtilizationMin: 0.7, cpuUtilizationMax: 1.0, preferWarmupNodes: true, maxNodes: 10}
shardSyncPeriod: 60s
enableNodeEventTrigger: true
"""
_SOURCES = b"""
networkTopologyDiscovery:
- source: ufm
  enabled: true
  interval: 10m
  credentials: {secretRef: {name: s, namespace: n}}
  config: {endpoint: ufm.example.com, insecureSkipVerify: true}
- source: label
  enabled: true
  config: {networkTopologyTypes: {a: [{nodeLabel: x/rack}, {nodeLabel: kubernetes.io/hostname}]}}
"""
_KUBECONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "x",
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    "clusters": [
        {"name": "c", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True, "proxy-url": ""}}
    ],
    "users": [{"name": "u", "user": {"token": "t", "username": "n", "password": "p"}}],
}
_EXEC = {
    **_KUBECONFIG,
    "users": [
        {
            "name": "u",
            "user": {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "no-such-program",
                    "args": ["a"],
                    "env": [{"name": "A", "value": "b"}],
                    "interactiveMode": "Never",
                }
            },
        }
    ],
}


def targets() -> list[Target]:
    scheduler = [path.read_bytes() for path in sorted((ROOT / "examples").rglob("*scheduler*.conf"))]
    scheduler.append(_text("conf/volcano-scheduler.conf"))
    kubeconfigs = [orjson.dumps(_KUBECONFIG), orjson.dumps(_EXEC)]
    devices = b"nvidia: {resourceCountName: volcano.sh/vgpu-number, deviceSplitCount: 10, knownMigGeometries: []}\n"
    return [
        Target("scheduler configuration", _scheduler, (ConfigurationError,), scheduler, "yaml"),
        Target("configuration in a ConfigMap", _unwrapped, (ConfigurationError,), scheduler, "yaml"),
        Target(
            "KubeSchedulerConfiguration",
            in_file(_profiles, "profiles.yaml"),
            (ConfigurationError, profiles.ProfilesConfigurationError),
            [_PROFILES],
            "yaml",
        ),
        Target("sharding configuration", _sharding, (ValueError,), [_SHARDING], "yaml"),
        Target("sharding flag", _sharding_flag, (ValueError,), [b"volcano:volcano:0.0:0.6:false:2:100"], "bytes"),
        Target("HyperNode sources", _hypernodes, (ValueError,), [_SOURCES], "yaml"),
        Target("device configuration", _devices, (ValueError,), [devices], "yaml"),
        Target("kubeconfig", in_file(_kubeconfig, "kubeconfig"), (KubeError,), kubeconfigs, "yaml"),
    ]
