"""The webhook configurations that `--register` makes."""

from volcano_py.webhooks.paths import PATHS
from volcano_py.webhooks.registration import Where, configuration, has


def _selected(where: Where) -> list[str]:
    [webhook] = configuration(PATHS["/pods/mutate"], where, b"")["webhooks"]
    [expression] = webhook["namespaceSelector"]["matchExpressions"]
    assert expression["operator"] == "NotIn"
    return expression["values"]


def test_pods_of_our_own_namespace_start_while_no_webhook_answers() -> None:
    assert _selected(Where(namespace="batch", service="admission")) == ["batch", "kube-system"]
    assert _selected(Where(url="https://127.0.0.1:8443")) == ["kube-system"]


def test_names_are_those_of_volcanos_chart() -> None:
    def name(path: str) -> str:
        return str(configuration(PATHS[path], Where(url="https://x"), b"")["webhooks"][0]["name"])

    assert name("/hypernodes/validate") == "validatehypernodes.volcano.sh"
    assert name("/jobflows/validate") == "validatejob.volcano.sh"
    assert name("/jobs/validate") == "validatejob.volcano.sh"


def test_fields_that_the_api_server_adds_are_no_difference() -> None:
    wanted = configuration(PATHS["/jobs/validate"], Where(url="https://x"), b"ca")["webhooks"]
    stored = [{**wanted[0], "clientConfig": {**wanted[0]["clientConfig"], "service": None}, "matchConditions": []}]
    assert has(stored, wanted)
    assert not has([{**stored[0], "failurePolicy": "Ignore"}], wanted)
    assert not has([*stored, *stored], wanted)
    assert not has([], wanted)
