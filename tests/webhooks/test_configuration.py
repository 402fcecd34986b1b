"""The file with resource groups: what is read, what is denied, and what stays in force."""

import logging
import os

import pytest

from volcano_py.webhooks.configuration import AdmissionConfiguration, parse
from volcano_py.webhooks.options import Options, check, warnings_about

GROUPS = """
resourceGroups:
- resourceGroup: management
  object: {key: namespace, value: [mng-ns-1]}
  schedulerName: default-scheduler
  labels: {volcano.sh/nodetype: management}
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "line 1"),
        ("- a", "a mapping with resourceGroups"),
        ("resourceGroups: 3", "must be a list"),
        ("resourceGroups: [3]", r"resourceGroups\[0\]: must be a mapping"),
        ("resourceGroups: [{labels: x}]", r"resourceGroups\[0\].labels: must be a mapping"),
        ("resourceGroups: [{object: {value: x}}]", r"resourceGroups\[0\].object: key must be a string"),
    ],
)
def test_rejected_with_the_place(text, words):
    with pytest.raises(ValueError, match=words):
        parse(text)


def test_a_change_is_seen_and_a_mistake_leaves_the_last_good_one(tmp_path, caplog):
    path = tmp_path / "volcano-admission.conf"
    read = AdmissionConfiguration(str(path))
    assert read.groups is None
    assert "No such file" in caplog.text

    def write(text):
        path.with_suffix(".new").write_text(text)
        os.replace(path.with_suffix(".new"), path)
        return read.refresh()

    assert write("# nothing yet")
    assert read.groups == []
    assert write(GROUPS)
    assert read.groups[0]["resourceGroup"] == "management"
    assert not read.refresh()
    caplog.clear()
    with caplog.at_level(logging.ERROR):
        assert not write("resourceGroups: 3")
        assert not read.refresh()
    assert len(caplog.records) == 1
    assert "the last valid one stays active" in caplog.text
    assert read.groups[0]["resourceGroup"] == "management"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"enabled_admission": ("/job/mutate",)}, "did you mean /jobs/mutate"),
        ({"port": 0}, "--port"),
        ({"webhook_url": ""}, "the webhooks' address"),
        ({"webhook_url": "http://a"}, "must start with https"),
        ({"tls_cert_file": "a"}, "--ca-cert-file and --tls-private-key-file must be set"),
        ({"webhook_url": "", "webhook_namespace": "a"}, "set --webhook-service-name"),
    ],
)
def test_flags_that_do_not_go_together(given, words):
    check(Options(webhook_url="https://localhost:8443"))
    with pytest.raises(ValueError, match=words):
        check(Options(**({"webhook_url": "https://localhost:8443"} | given)))


def test_a_gate_without_effect_is_reported_with_its_remedy() -> None:
    gate = {"SchedulingGatesQueueAdmission": True}
    on = ("/pods/mutate",)
    (missing_path,) = warnings_about(Options(feature_gates=gate, admission_conf="conf"))
    assert missing_path.endswith("has no effect on pods: add --enabled-admission with /pods/mutate")
    (missing_file,) = warnings_about(Options(feature_gates=gate, enabled_admission=on))
    assert missing_file.endswith("has no effect on pods: add --admission-conf; the file may be empty")
    assert warnings_about(Options(feature_gates=gate, enabled_admission=on, admission_conf="conf")) == []
    assert warnings_about(Options(enabled_admission=on)) == []
