"""The policies compare the pod templates of a changed Job as the webhook does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhooks.policies import changed, denied, job, problems, task
from volcano_py.webhooks.jobs import _POINTERS

CHANGES: list[tuple[Any, ...]] = [
    ("hostNetwork", True),
    ("serviceAccountName", "admin"),
    ("runtimeClassName", "kata"),
    ("restartPolicy", "Never"),
    ("terminationGracePeriodSeconds", 0),
    ("automountServiceAccountToken", False),
    ("nodeSelector", {"zone": "a"}),
    ("securityContext", "runAsUser", 0),
    ("securityContext", "fsGroup", 5),
    ("tolerations", [{"key": "gpu", "operator": "Exists"}]),
    ("volumes", [{"name": "v", "hostPath": {"path": "/etc"}}]),
    ("schedulingGates", [{"name": "wait"}]),
    ("imagePullSecrets", [{"name": "pull"}]),
    ("initContainers", [{"name": "init", "image": "busybox:1"}]),
    ("containers", "name", "other"),
    ("containers", "image", "busybox:2"),
    ("containers", "command", ["sh"]),
    ("containers", "args", ["-c"]),
    ("containers", "workingDir", "/tmp"),
    ("containers", "env", [{"name": "A", "value": "1"}]),
    ("containers", "env", [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
    ("containers", "envFrom", [{"secretRef": {"name": "s"}}]),
    ("containers", "ports", [{"containerPort": 80, "hostPort": 80}]),
    ("containers", "volumeMounts", [{"name": "v", "mountPath": "/a"}]),
    ("containers", "resources", {"requests": {"cpu": "2"}}),
    ("containers", "resources", {"limits": {"example.com/gpu": 1}}),
    ("containers", "securityContext", "privileged", True),
    ("containers", "securityContext", "allowPrivilegeEscalation", False),
    ("containers", "securityContext", "capabilities", "add", ["SYS_ADMIN"]),
]
"""Changes of a pod template: where, and the value."""


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: ".".join(map(str, change[:-1])))
def test_both_reject_a_changed_template(change: tuple[Any, ...]) -> None:
    for before, after in ((job(), changed(*change)), (changed(*change), job())):
        assert len(denied("/jobs/validate", after, before)) == 1
        assert problems("/jobs/validate", after, before)
    assert denied("/jobs/validate", changed(*change), changed(*change)) == []


_word = st.sampled_from(["", "a"])
_words = st.lists(_word, max_size=1)
_map = st.dictionaries(st.sampled_from(["a", "b"]), _word, max_size=1)
_amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from([0, 1, "1"]), max_size=1)
_flag, _count = st.booleans(), st.integers(0, 1)


def _some(**fields: Any) -> Any:
    """An object with some of these fields, any of which may be empty."""
    return st.fixed_dictionaries({}, optional=fields)


_containers = st.lists(
    st.builds(
        lambda name, rest: {"name": name, **rest},
        st.sampled_from(["a", "b"]),
        _some(
            image=_word,
            command=_words,
            tty=_flag,
            env=st.lists(_some(name=_word, value=_word, valueFrom=_some(secretKeyRef=_some(name=_word))), max_size=1),
            ports=st.lists(_some(containerPort=_count, protocol=_word), max_size=1),
            resources=_some(requests=_amounts, limits=_amounts),
            securityContext=_some(privileged=_flag, runAsUser=_count, capabilities=_some(add=_words)),
        ),
    ),
    max_size=2,
    unique_by=lambda one: one["name"],
)
templates = _some(
    metadata=_some(labels=_map, annotations=_map),
    spec=_some(
        containers=_containers,
        initContainers=_containers,
        nodeSelector=_map,
        hostNetwork=_flag,
        restartPolicy=_word,
        activeDeadlineSeconds=_count,
        terminationGracePeriodSeconds=_count,
        tolerations=st.lists(_some(key=_word, effect=_word), max_size=1),
        volumes=st.lists(_some(name=_word, emptyDir=st.just({}), configMap=_some(name=_word)), max_size=1),
        securityContext=_some(fsGroup=_count, supplementalGroups=st.lists(_count, max_size=1)),
    ),
)


@st.composite
def two_templates(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two templates, mostly the same but for empty values."""
    before = draw(templates)
    return before, draw(st.one_of(st.just(with_empty(before, draw(st.randoms(use_true_random=False)))), templates))


def with_empty(value: Any, random: Any) -> Any:
    """The same with some of the empty values that mean nothing taken out."""
    if isinstance(value, dict):
        rows = {key: with_empty(one, random) for key, one in value.items()}
        return {key: one for key, one in rows.items() if key in _POINTERS or one or random.random() < 0.5}
    return [with_empty(one, random) for one in value] if isinstance(value, list) else value


@settings(max_examples=150)
@given(two_templates())
def test_no_template_is_rejected_that_the_webhook_takes_for_unchanged(pair: tuple[Any, Any]) -> None:
    before, after = (job(task(template=template)) for template in pair)
    if not problems("/jobs/validate", after, before):
        assert denied("/jobs/validate", after, before) == []
