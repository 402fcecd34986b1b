"""Native gangs with pods of profiles, in the scheduler's process."""

import pytest
from fake_api import NATIVE_GROUPS
from live_scheduler import put_node
from test_pods_live import condition, events, live, put_pod

INFORMER = "volcano_py.kube.informer"


def put_native_gang(api, name, min_count, **spec):
    policy = {"gang": {"minCount": min_count}}
    meta = {"name": name, "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    api.put(NATIVE_GROUPS, {"metadata": meta, "spec": {"schedulingPolicy": policy, **spec}})


def native_condition(api, name):
    found = api.objects[(NATIVE_GROUPS, "default", name)].get("status", {}).get("conditions") or ()
    return next((f"{c['status']} {c['reason']}" for c in found if c["type"] == "PodGroupScheduled"), "")


async def test_a_profile_s_member_of_a_native_gang_is_placed_by_the_session(tmp_path, api):
    api.native_gangs = True
    put_node(api, "n1", "2")
    for i in range(3):
        put_pod(api, f"member-{i}", "packed", schedulingGroup={"podGroupName": "gang"})
    async with live(tmp_path, api) as running:
        await running.until(lambda: "podgroup.scheduling.k8s.io/gang" in condition(api, "member-0"))
        put_native_gang(api, "gang", 3)
        await running.until(lambda: "False" in native_condition(api, "gang"))
        assert not running.bound()
        put_node(api, "n2", "2")
        await running.until(lambda: len(running.bound("member")) == 3)
        await running.until(lambda: "True Scheduled" in native_condition(api, "gang"))


async def test_conditions_of_a_native_gang_are_written_only_when_they_change(tmp_path, api):
    api.native_gangs = True
    put_node(api, "n1", "2")
    put_native_gang(api, "gang", 2)
    for i in range(2):
        put_pod(api, f"member-{i}", "packed", schedulingGroup={"podGroupName": "gang"})
    async with live(tmp_path, api) as running:
        await running.until(lambda: "True Scheduled" in native_condition(api, "gang"))
        put_node(api, "n2", "2")
        put_pod(api, "member-2", "packed", schedulingGroup={"podGroupName": "gang"})
        await running.until(lambda: len(running.bound("member")) == 3)
    assert sum("PATCH" in line and "/podgroups/gang/status" in line for line in api.log) == 1


async def test_a_cluster_without_native_gangs_is_reported_once(tmp_path, api, caplog):
    put_node(api, "n1", "2")
    with caplog.at_level("INFO"):
        async with live(tmp_path, api) as running:
            put_pod(api, "one", "packed")
            await running.until(lambda: running.bound("one"))
            await running.until(lambda: sum("v1alpha2/podgroups" in line for line in api.log) > 1)
    (reported,) = [r.getMessage() for r in caplog.records if r.name == INFORMER and "podgroups" in r.getMessage()]
    assert "--runtime-config=scheduling.k8s.io/v1alpha2=true" in reported


async def test_a_pod_with_a_group_of_each_api_group_gets_an_event(tmp_path, api):
    api.native_gangs = True
    put_node(api, "n1", "2")
    group = {"annotations": {"scheduling.k8s.io/group-name": "ours"}}
    put_pod(api, "torn", "volcano", schedulingGroup={"podGroupName": "native"}, metadata=group)
    async with live(tmp_path, api) as running:
        await running.until(lambda: events(api, "Quarantined"))
    (text,) = events(api, "Quarantined")
    assert "spec.schedulingGroup.podGroupName" in text
    assert "scheduling.k8s.io/group-name" in text


async def test_the_event_about_an_invalid_native_group_has_its_api_version(tmp_path, api):
    api.native_gangs = True
    put_native_gang(api, "odd", 0)

    def about() -> list[str]:
        events = [o["involvedObject"] for (plural, _, _), o in api.objects.items() if plural == "events"]
        return [f"{o['apiVersion']} {o['kind']}" for o in events if o["name"] == "odd"]

    async with live(tmp_path, api) as running:
        await running.until(about)
    assert about() == ["scheduling.k8s.io/v1alpha2 PodGroup"]


async def test_a_profile_preempts_a_native_gang_as_a_whole(tmp_path, api):
    api.native_gangs = True
    put_node(api, "n1", "1")
    put_node(api, "n2", "1")
    put_native_gang(api, "gang", 2, disruptionMode="PodGroup")
    for i in range(2):
        put_pod(api, f"member-{i}", "packed", cpu="1", schedulingGroup={"podGroupName": "gang"})
    async with live(tmp_path, api) as running:
        await running.until(lambda: len(running.bound("member")) == 2)
        put_pod(api, "vip", cpu="1", priority=100)
        await running.until(lambda: running.bound("vip"))
        await running.until(lambda: len(events(api, "Preempted")) == 2)


def initially(api, name):
    found = api.objects[(NATIVE_GROUPS, "default", name)].get("status", {}).get("conditions") or ()
    return next((f"{c['status']} {c['reason']}" for c in found if c["type"] == "PodGroupInitiallyScheduled"), "")


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
async def test_a_cluster_of_1_37_has_native_gangs(tmp_path, api, caplog, version):
    api.native_gangs, api.native_version = True, version
    put_node(api, "n1", "1")
    put_native_gang(api, "gang", 2, disruptionMode={"all": {}}, workloadRef={"workloadName": "w", "templateName": "t"})
    for i in range(2):
        put_pod(api, f"member-{i}", "packed", schedulingGroup={"podGroupName": "gang"})
    with caplog.at_level("INFO"):
        async with live(tmp_path, api) as running:
            await running.until(lambda: initially(api, "gang") == "False Unschedulable")
            put_node(api, "n2", "2")
            await running.until(lambda: len(running.bound("member")) == 2)
            await running.until(lambda: initially(api, "gang") == "True Scheduled")
            put_pod(api, "member-2", "packed", cpu="9", schedulingGroup={"podGroupName": "gang"})
            await running.until(lambda: condition(api, "member-2"))
    assert initially(api, "gang") == "True Scheduled", "once True it stays"
    assert not native_condition(api, "gang"), "the condition of 1.36"
    assert not [r for r in caplog.records if r.name == INFORMER and "podgroups" in r.getMessage()]


async def test_an_upgrade_of_the_cluster_from_v1alpha2_to_v1beta1(tmp_path, api):
    api.native_gangs = True
    put_node(api, "n1", "4")
    put_native_gang(api, "old", 1)
    put_pod(api, "old-0", "packed", schedulingGroup={"podGroupName": "old"})
    async with live(tmp_path, api) as running:
        await running.until(lambda: "True Scheduled" in native_condition(api, "old"))
        # As the release notes of 1.37 require, the objects of v1alpha2 are deleted before.
        api.remove(NATIVE_GROUPS, "old")
        api.native_version = "v1beta1"
        put_native_gang(api, "new", 2)
        for i in range(2):
            put_pod(api, f"new-{i}", "packed", schedulingGroup={"podGroupName": "new"})
        await running.until(lambda: len(running.bound("new")) == 2)
        await running.until(lambda: initially(api, "new") == "True Scheduled")


async def test_a_profile_of_1_37_preempts_a_gang_of_the_session_as_a_whole(tmp_path, api):
    api.native_gangs, api.native_version = True, "v1beta1"
    put_node(api, "n1", "1")
    put_node(api, "n2", "1")
    put_native_gang(api, "gang", 2, disruptionMode={"all": {}})
    for i in range(2):
        put_pod(api, f"member-{i}", "packed", cpu="1", schedulingGroup={"podGroupName": "gang"})
    options = {"kubernetes_version": "1.37", "feature_gates": {"GenericWorkload": True}}
    async with live(tmp_path, api, **options) as running:
        await running.until(lambda: len(running.bound("member")) == 2)
        put_pod(api, "vip", cpu="1", priority=100)
        await running.until(lambda: running.bound("vip"))
        await running.until(lambda: len(events(api, "Preempted")) == 2)
