"""KubeSchedulerConfiguration: the plugins of a profile, with their order, weights and arguments.

Kubernetes: kubescheduler.config.k8s.io/v1 and apis/config/v1/default_plugins.go, framework/runtime/framework.go.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from volcano_py.scheduler.profiles.extenders import Extenders
from volcano_py.scheduler.profiles.plugin_api.extension_points import POINTS
from volcano_py.scheduler.profiles.registry import REGISTRY, Registry, arranged
from volcano_py.scheduler.profiles.release import DEFAULT, Release

_MULTI = "multiPoint"
_OF_GROUPS = "podGroupPostFilter"
_API = "kubescheduler.config.k8s.io/v1"
FEATURES = DEFAULT.gates
"""The feature gates of profiles that are on by default."""


def features_of(gates: Mapping[str, bool], release: Release = DEFAULT) -> frozenset[str]:
    """The enabled feature gates, of profiles and others: the defaults changed by `--feature-gates`."""
    return frozenset(g for g in release.gates if gates.get(g, True)) | {g for g, on in gates.items() if on}


class ProfilesConfigurationError(ValueError):
    """The configuration is invalid; the message names profile, point and remedy."""


class _Ref(msgspec.Struct):
    name: str
    weight: int = 0


class _PluginSet(msgspec.Struct):
    enabled: list[_Ref] | None = None
    disabled: list[_Ref] | None = None


class _Args(msgspec.Struct):
    name: str
    args: dict[str, Any] | None = None


class _Profile(msgspec.Struct, rename="camel"):
    scheduler_name: str = "default-scheduler"
    plugins: dict[str, _PluginSet] | None = None
    plugin_config: list[_Args] | None = None
    percentage_of_nodes_to_score: int | None = None


class _Document(msgspec.Struct, rename="camel"):
    api_version: str = _API
    kind: str = "KubeSchedulerConfiguration"
    profiles: list[_Profile] | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    percentage_of_nodes_to_score: int = 0
    extenders: list[Any] | None = None


class ProfileConfig(NamedTuple):
    name: str
    points: Mapping[str, list[str]]
    """The names of the plugins at each point, in order."""
    weights: Mapping[str, int]
    """The weights of the plugins that score."""
    arguments: Mapping[str, Any]
    """The typed arguments of each plugin."""
    percentage: int = 0
    """The percentage of the nodes that must fit to end the search, at least 100 nodes; 0: all nodes are scored."""


class ProfilesConfiguration(NamedTuple):
    profiles: list[ProfileConfig]
    initial_backoff: float
    """Seconds."""
    max_backoff: float
    """Seconds."""
    registry: Registry = REGISTRY
    """The plugins that the profiles consist of."""
    warnings: tuple[str, ...] = ()
    """Problems that do not prevent the use of the configuration."""
    release: Release = DEFAULT
    """The version of Kubernetes whose rules hold."""


def load(
    document: Mapping[str, Any],
    features: frozenset[str] = FEATURES,
    registry: Registry = REGISTRY,
    release: Release = DEFAULT,
) -> ProfilesConfiguration:
    """Load a configuration in kube-scheduler's format. Raises ConfigurationError."""
    try:
        read = msgspec.convert(dict(document), _Document)
    except msgspec.ValidationError as e:
        raise ProfilesConfigurationError(f"KubeSchedulerConfiguration: {e}") from None
    if read.kind != "KubeSchedulerConfiguration" or read.api_version != _API:
        raise ProfilesConfigurationError(
            f"{read.kind} of {read.api_version}: write KubeSchedulerConfiguration of {_API}"
        )
    if not 0 < read.pod_initial_backoff_seconds <= read.pod_max_backoff_seconds:
        raise ProfilesConfigurationError("podInitialBackoffSeconds: must be above 0 and at most podMaxBackoffSeconds")
    registry = _with_copies(read.profiles or (), arranged(registry, release))
    try:
        extenders = Extenders(read.extenders or ())
    except ValueError as e:
        raise ProfilesConfigurationError(f"KubeSchedulerConfiguration: {e}") from None
    share = read.percentage_of_nodes_to_score
    _check_points(read.profiles or (), release)
    profiles = [_profile(p, features, registry, share, extenders) for p in read.profiles or [_Profile()]]
    names = [p.name for p in profiles]
    for name in names:
        if not name:
            raise ProfilesConfigurationError(
                "a profile has an empty schedulerName; name it as in spec.schedulerName of pods"
            )
        if names.count(name) > 1:
            raise ProfilesConfigurationError(
                f"profile {name}: two profiles have this schedulerName; names must be unique"
            )
    if len({tuple(p.points["queueSort"]) for p in profiles}) > 1:
        raise ProfilesConfigurationError(
            "profiles have different queueSort plugins; they share one queue: use the same one"
        )
    first, longest = float(read.pod_initial_backoff_seconds), float(read.pod_max_backoff_seconds)
    warnings = tuple(w for p in read.profiles or () for w in _unknown_disabled(p, registry))
    return ProfilesConfiguration(profiles, first, longest, extenders.registry(registry), warnings, release)


def _check_points(profiles: Iterable[_Profile], release: Release) -> None:
    for profile in profiles:
        if _OF_GROUPS in (profile.plugins or {}) and not release.whole_groups:
            raise ProfilesConfigurationError(
                f"profile {profile.scheduler_name}: Kubernetes {release.name} has no point {_OF_GROUPS!r}; remove "
                f"it, or set --kubernetes-version to 1.37"
            )


def _with_copies(profiles: Iterable[_Profile], registry: Registry) -> Registry:
    """The registry with the plugins that a profile has several times, under the names that the profiles use."""
    found = dict(registry)
    for profile in profiles:
        sets = (profile.plugins or {}).values()
        names = {r.name for s in sets for r in s.enabled or ()} | {e.name for e in profile.plugin_config or ()}
        for name in names:
            base, slash, _ = name.partition("/")
            if slash and base in registry and registry[base].many:
                found[name] = registry[base]
    return found


def _profile(
    profile: _Profile, features: frozenset[str], registry: Registry, percentage: int, extenders: Extenders
) -> ProfileConfig:
    where = f"profile {profile.scheduler_name}"
    sets = profile.plugins or {}
    for point, chosen in sets.items():
        if point != _MULTI and point not in POINTS:
            raise ProfilesConfigurationError(f"{where}: unknown point {point!r}{_nearest(point, [*POINTS, _MULTI])}")
        _check_names(where, point, chosen, registry)
    multi = _merged(sets.get(_MULTI) or _PluginSet(), features, registry)
    points: dict[str, list[str]] = {}
    for point in POINTS:
        points[point] = _at_point(point, multi, sets.get(point) or _PluginSet(), where, registry)
    if len(points["queueSort"]) != 1:
        raise ProfilesConfigurationError(
            f"{where}: queueSort needs exactly one plugin; enabled are {points['queueSort']}"
        )
    if not points["bind"]:
        raise ProfilesConfigurationError(f"{where}: bind has no plugin; enable DefaultBinder")
    weights = {r.name: r.weight or 1 for r in multi}
    weights |= {r.name: r.weight or 1 for r in (sets.get("score") or _PluginSet()).enabled or ()}
    own = profile.percentage_of_nodes_to_score
    share = percentage if own is None else own
    if not 0 <= share <= 100:
        raise ProfilesConfigurationError(f"{where}: percentageOfNodesToScore {share} is out of range; use 0 to 100")
    arguments = _arguments(profile, where, registry)
    extenders.add_to(points, weights, arguments)
    return ProfileConfig(profile.scheduler_name, points, weights, arguments, share)


def _merged(custom: _PluginSet, features: frozenset[str], registry: Registry) -> list[_Ref]:
    """The default plugins, changed by `multiPoint`: a plugin that is configured again keeps its position."""
    off = {r.name for r in custom.disabled or ()}
    again = {r.name: r for r in custom.enabled or ()}
    result: list[_Ref] = []
    if "*" not in off:
        for name, registration in registry.items():
            on = registration.default and (not registration.gate or registration.gate in features)
            if on and name not in off:
                result.append(again.pop(name, _Ref(name, registration.weight)))
    return result + list(again.values())


def _at_point(point: str, multi: list[_Ref], chosen: _PluginSet, where: str, registry: Registry) -> list[str]:
    listed = [r.name for r in chosen.enabled or ()]
    for name in listed:
        kind = registry[name].kind
        if not issubclass(kind, POINTS[point]):
            points = ", ".join(p for p, base in POINTS.items() if issubclass(kind, base))
            raise ProfilesConfigurationError(
                f"{where}, {point}: {name} does not implement this point; it implements {points}"
            )
        if listed.count(name) > 1:
            raise ProfilesConfigurationError(f"{where}, {point}: {name} is enabled twice")
    off = {r.name for r in chosen.disabled or ()}
    fits = [r.name for r in multi if issubclass(registry[r.name].kind, POINTS[point]) and r.name not in off]
    if "*" in off:
        fits = []
    both = [n for n in listed if n in fits]
    return both + [n for n in fits if n not in listed] + [n for n in listed if n not in fits]


def _arguments(profile: _Profile, where: str, registry: Registry) -> dict[str, Any]:
    given: dict[str, dict[str, Any]] = {}
    for entry in profile.plugin_config or ():
        if entry.name not in registry:
            raise ProfilesConfigurationError(
                f"{where}, pluginConfig: unknown plugin {entry.name!r}{_nearest(entry.name, registry)}"
            )
        if entry.name in given:
            raise ProfilesConfigurationError(f"{where}, pluginConfig: {entry.name} is configured twice")
        given[entry.name] = {k: v for k, v in (entry.args or {}).items() if k not in ("kind", "apiVersion")}
    found = {}
    for name, registration in registry.items():
        try:
            found[name] = msgspec.convert(given.get(name, {}), registration.arguments)
        except msgspec.ValidationError as e:
            raise ProfilesConfigurationError(f"{where}, pluginConfig {name}: {e}") from None
    return found


def _check_names(where: str, point: str, chosen: _PluginSet, registry: Registry) -> None:
    for r in chosen.enabled or ():
        if r.name not in registry:
            raise ProfilesConfigurationError(f"{where}, {point}: unknown plugin {r.name!r}{_nearest(r.name, registry)}")
        if not 0 <= r.weight <= 100:
            raise ProfilesConfigurationError(
                f"{where}, {point}: weight {r.weight} of {r.name} is out of range; use 1 to 100"
            )


def _unknown_disabled(profile: _Profile, registry: Registry) -> Iterator[str]:
    """A warning for each disabled plugin that does not exist: it does not run in any case. kube-scheduler accepts it
    as well."""
    for point, chosen in (profile.plugins or {}).items():
        for r in chosen.disabled or ():
            if r.name != "*" and r.name not in registry:
                where = f"profile {profile.scheduler_name}, {point}"
                yield f"{where}: disabled plugin {r.name!r} does not exist{_nearest(r.name, registry)}"


def _nearest(name: str, valid: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(valid), 1, 0.5)
    return f"; did you mean {near[0]}?" if near else ""
