"""Reviews of configurations: findings, current values, differences as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from volcano_py.scheduler.framework.config import DEFAULT_TEXT, FLAGS, ConfigurationError, load
from volcano_py.scheduler.framework.extension_points.table import POINTS
from volcano_py.scheduler.profiles.registry import REGISTRY as PROFILE_PLUGINS
from volcano_py.scheduler.review.differences import differences
from volcano_py.scheduler.review.document import unwrap
from volcano_py.scheduler.review.effective import DEFAULT, FILE, Setting, settings
from volcano_py.scheduler.review.findings import WITHOUT_EFFECT, Finding, findings
from volcano_py.scheduler.review.profiles import profile_findings
from volcano_py.scheduler.run_once import REGISTRY

ROOT = Path(__file__).parents[3]
GOOD = "priority, gang, conformance, overcommit, drf, predicates, proportion, nodeorder"
ACTIONS = "enqueue, allocate, backfill"


def text(plugins: str = GOOD, actions: str = ACTIONS, more: str = "") -> str:
    """A configuration of one tier."""
    listed = "".join(f"\n  - name: {name}" for name in plugins.split(", "))
    return f'actions: "{actions}"\ntiers:\n- plugins:{listed}\n{more}'


def texts(document: str, severity: str) -> list[str]:
    return [finding.text for finding in findings(document, REGISTRY) if finding.severity == severity]


@pytest.mark.parametrize("document", [DEFAULT_TEXT, (ROOT / "conf" / "volcano-scheduler.conf").read_text(), text()])
def test_the_usual_configurations_are_clean(document: str) -> None:
    assert findings(document, REGISTRY) == []


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ("actions: [", "not valid YAML"),
        ("[1]", "must be a map"),
        (text(actions="enqueue, alocate"), 'failed to find Action "alocate"; did you mean allocate?'),
        ("[" * 5000, "nested too deep"),
    ],
)
def test_invalid_configurations_are_errors(document: str, error: str) -> None:
    [finding] = findings(document, REGISTRY)
    assert finding.severity == "error" and error in finding.text


@pytest.mark.parametrize(
    ("document", "warning"),
    [
        (text() + "teirs: []\n", "teirs: unknown key, ignored; did you mean tiers?"),
        (text(GOOD + ", binpak"), "tiers[0].plugins[8]: no plugin binpak, it is skipped; did you mean binpack?"),
        (
            text(GOOD + ", binpack\n    arguments: {binpack.weigth: 3}"),
            "tiers[0].plugins[8]: plugin binpack: argument binpack.weigth is unknown and ignored; "
            "did you mean binpack.weight?",
        ),
        (
            text(GOOD + ", binpack\n    arguments: {binpack.cpu: many}"),
            "tiers[0].plugins[8]: plugin binpack: argument binpack.cpu is 'many', it must be a whole number; "
            "the default stays in force",
        ),
    ],
)
def test_ignored_settings_are_warnings(document: str, warning: str) -> None:
    assert texts(document, "warning") == [warning] and not texts(document, "error")


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        (text(GOOD + ", gang"), "plugin gang is listed 2 times"),
        (text(actions="enqueue, allocate, allocate, backfill"), "allocate runs 2 times"),
        (text(actions="enqueue, backfill"), "allocate is missing"),
        (text(actions="enqueue, allocate"), "backfill is missing"),
        (text(actions="allocate, enqueue, backfill"), "enqueue is after allocate"),
        (text(actions="allocate, backfill"), "the action enqueue does not run"),
        (text(GOOD.replace("gang, ", ""), "enqueue, allocate, preempt, backfill"), "action preempt without the plugin"),
        (text(GOOD.replace("gang, ", "")), "plugin gang is missing"),
        (text(GOOD.replace("predicates, ", "")), "plugin predicates is missing"),
        (text(GOOD.replace("proportion, ", "")), "queues have no share"),
        (text(GOOD.replace("proportion, ", ""), "enqueue, allocate, reclaim, backfill"), "action reclaim without"),
        (text(GOOD + ", capacity"), "proportion and capacity both limit queues"),
        (text(GOOD.replace(", nodeorder", "")), "no plugin scores nodes"),
        (text(GOOD.replace("priority, ", ""), "enqueue, allocate, preempt, backfill"), "without the plugin priority"),
        (text(more="configurations: [{name: preempt}]"), "the action preempt has arguments and does not run"),
    ],
)
def test_valid_but_unusual_settings_are_hints(document: str, hint: str) -> None:
    assert any(hint in found for found in texts(document, "hint"))
    assert not texts(document, "error") and not texts(document, "warning")


def test_a_plugin_without_flags_does_nothing() -> None:
    from volcano_py.scheduler.framework.config import FLAGS

    off = "".join(f"\n    {flag}: false" for flag in FLAGS)
    assert any("plugin binpack: all of its flags are off" in t for t in texts(text(f"{GOOD}, binpack{off}"), "hint"))


def test_profiles() -> None:
    api = "kubescheduler.config.k8s.io/v1"
    good = {"apiVersion": api, "kind": "KubeSchedulerConfiguration", "profiles": [{"schedulerName": "a"}]}
    assert profile_findings(good, PROFILE_PLUGINS) == []
    twice = {**good, "profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]}
    assert profile_findings(twice, PROFILE_PLUGINS) == [
        Finding("error", "profile a: two profiles have this schedulerName; names must be unique")
    ]
    waits = {"schedulerName": "a", "plugins": {"multiPoint": {"enabled": [{"name": "GangPermit"}]}}}
    waits["plugins"]["multiPoint"]["disabled"] = [{"name": "PrioritySort"}]
    (hint,) = profile_findings({**good, "profiles": [waits]}, PROFILE_PLUGINS)
    assert hint.severity == "hint" and "permit of GangPermit" in hint.text


def test_the_configuration_of_a_configmap() -> None:
    manifest = "kind: ConfigMap\ndata:\n  volcano-scheduler.conf: |\n    actions: allocate\n  other: x\n"
    assert unwrap(manifest).text == "actions: allocate\n"
    assert unwrap("kind: ConfigMap\ndata: {any: 'actions: allocate'}").text == "actions: allocate"
    for wrong in ("kind: ConfigMap\n", "kind: ConfigMap\ndata: {a: x, b: y}\n"):
        with pytest.raises(ConfigurationError, match=r"volcano-scheduler\.conf"):
            unwrap(wrong)


def test_the_values_in_force_and_their_origin() -> None:
    document = text("gang\n    enablePreemptable: false, binpack\n    arguments: {binpack.weight: 3}")
    found = settings(load(document + "deviations: {quiet-events: false}\n", REGISTRY.actions), REGISTRY)
    assert Setting("actions", "", ACTIONS, FILE) in found
    assert Setting("tiers[0].gang", "enablePreemptable", False, FILE) in found
    assert Setting("tiers[0].binpack", "binpack.weight", 3, FILE) in found
    assert Setting("tiers[0].binpack", "binpack.cpu", 1, DEFAULT) in found
    assert Setting("deviations", "quiet-events", False, FILE) in found
    assert not any(s.name == "enableJobOrder" for s in found), "flags with their defaults are left out"


def test_differences_in_words() -> None:
    old = load(text("gang, nodeorder, proportion", "enqueue, allocate, backfill"), REGISTRY.actions)
    new = load(
        'actions: "enqueue, backfill, allocate, reclaim"\ntiers:\n- plugins: [{name: gang, enablePreemptable: false}]\n'
        "- plugins: [{name: nodeorder, arguments: {nodeaffinity.weight: 7}}, {name: capacity}]\n"
        "deviations: {quiet-events: false}\n",
        REGISTRY.actions,
    )
    assert differences(old, old, REGISTRY) == []
    found = differences(old, new, REGISTRY)
    assert found == [
        "action reclaim runs now (evict pods of queues that hold more than their share)",
        "actions run in another order: enqueue, allocate, backfill → enqueue, backfill, allocate",
        "plugin proportion is removed (queues share the cluster by weight)",
        "plugin capacity is new, in tiers[1] (queues deserve the amounts of their specs, flat or in a tree)",
        "plugin nodeorder moves from tiers[0] to tiers[1]: tiers decide about victims and orders one after another",
        "gang: enablePreemptable: true → false",
        "nodeorder: nodeaffinity.weight: 2 → 7",
        "deviation quiet-events is off now "
        "(no longer: an Event about a pending job is repeated only when its reason changes)",
    ]


def test_all_errors_are_reported_and_what_is_valid_is_reviewed() -> None:
    text = """\
actions: "enqueue, alocate, alocate, preemt, backfill"
tiers:
- plugins:
  - {name: gang, enableJobOrder: "yes"}
  - {name: predicates, arguments: [1]}
  - 7
- plugins: {name: drf}
- plugins: [{name: binpack, arguments: {binpack.weight: heavy}}]
configurations: [5]
"""
    found = [(f.severity, f.text.partition(":")[0]) for f in findings(text, REGISTRY)]
    assert found == [
        ("error", "actions"),
        ("error", "actions"),
        ("error", "tiers[0].plugins[0] (gang)"),
        ("error", "tiers[0].plugins[1] (predicates)"),
        ("error", "tiers[0].plugins[2]"),
        ("error", "tiers[1].plugins"),
        ("error", "configurations[0]"),
        ("warning", "tiers[2].plugins[0]"),
    ]
    with pytest.raises(ConfigurationError, match='Action "alocate"') as raised:
        load(text, REGISTRY.actions)
    assert len(raised.value.problems) == 7


def test_turning_all_deviations_off_is_one_difference() -> None:
    both = [load(f"actions: allocate\n{line}", REGISTRY.actions) for line in ("", "deviations: parity")]
    (there,), (back,) = differences(*both, REGISTRY), differences(*both[::-1], REGISTRY)
    assert there.startswith("all deviations are off now") and "of the default are on now" in back


@pytest.mark.parametrize(
    ("argument", "plugin"),
    [
        ("predicate.GPUSharingEnable: true", "deviceshare.GPUSharingEnable: true"),
        ("predicate.GPUNumberEnable: true", "deviceshare.GPUNumberEnable: true"),
        ("predicate.ProportionalEnable: true", "the plugin resource-strategy-fit"),
        ("predicate.resources: nvidia.com/gpu", "the plugin resource-strategy-fit"),
        ("predicate.resources.nvidia.com/gpu.cpu: 4", "the plugin resource-strategy-fit"),
    ],
)
def test_arguments_of_older_configurations_name_the_plugin(argument: str, plugin: str) -> None:
    key = argument.partition(": ")[0]
    document = text(GOOD.replace("predicates", f"predicates\n    arguments: {{{argument}}}"))
    [warning] = texts(document, "warning")
    assert warning.startswith(f"tiers[0].plugins[5]: plugin predicates: argument {key} is ignored: ")
    assert plugin in warning and "add it with the argument" in warning


@pytest.mark.parametrize("flag", sorted(WITHOUT_EFFECT))
def test_flags_without_effect_are_hints(flag: str) -> None:
    document = text(GOOD.replace("gang", f"gang\n    {flag}: true"))
    [hint] = texts(document, "hint")
    assert hint.startswith(f"tiers[0].plugins[1] (gang): {flag} has no effect: ") and hint.endswith("; remove it")


def test_every_flag_has_an_extension_point_or_a_hint() -> None:
    """enableHierarchy is read by drf and capacity."""
    assert set(FLAGS) == {p.flag for p in POINTS.values() if p.flag} | set(WITHOUT_EFFECT) | {"enableHierarchy"}


def test_an_unknown_disabled_plugin_is_a_warning() -> None:
    profile = {"plugins": {"multiPoint": {"disabled": [{"name": "Qwerty"}, {"name": "*"}]}}}
    enabled = {"enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]}
    profile["plugins"]["multiPoint"] |= enabled
    document = {"kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    assert profile_findings(document, PROFILE_PLUGINS) == [
        Finding("warning", "profile default-scheduler, multiPoint: disabled plugin 'Qwerty' does not exist")
    ]
    enabled["enabled"].append({"name": "Qwerty"})
    [finding] = profile_findings(document, PROFILE_PLUGINS)
    assert finding.severity == "error" and "unknown plugin 'Qwerty'" in finding.text
