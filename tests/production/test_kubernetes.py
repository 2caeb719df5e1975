"""The Helm chart: rendered by Helm, checked by the schemas of Kubernetes. No cluster is started."""

import json
import platform
import re
import shlex
from collections.abc import Iterator
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from governance.vocabulary import Weight
from memos_web.config import KNOWN_VARIABLES
from tests.harness.servers import ROOT
from tests.production.chart import CHART, PACKAGE, RENDERED, VALUES, render_chart, run_helm
from tests.production.test_containers import ADDRESSES, NOT_PASSED, OF_BACKUPS, OF_TELEMETRY, OF_UVICORN

RUNS_HERE = (platform.system(), platform.machine()) == ("Linux", "x86_64")
ALL = [found for found in yaml.safe_load_all(RENDERED.read_text(encoding="utf-8")) if found]
PODS = {
    found["metadata"]["name"]: found["spec"]["template"]["spec"] for found in ALL if "template" in found.get("spec", {})
} | {
    found["metadata"]["name"]: found["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for found in ALL
    if found["kind"] == "CronJob"
}
SERVING = {"memos-web", "memos-worker", "memos-worker-heavy", "memos-beat"}
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]


def of_kind(kind: str) -> dict[str, Any]:
    return {found["metadata"]["name"]: found for found in ALL if found["kind"] == kind}


def variables_of(pod: dict[str, Any]) -> Iterator[str]:
    (container,) = pod["containers"]
    yield from (variable["name"] for variable in container.get("env", []))


def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return found


def values() -> dict[str, Any]:
    """The values of the chart with those of tests, merged as Helm does."""

    def merge(below: Any, above: Any) -> Any:
        if not (isinstance(below, dict) and isinstance(above, dict)):
            return above
        return below | {name: merge(below.get(name), value) for name, value in above.items()}

    own, given = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in (CHART / "values.yaml", VALUES))
    merged: dict[str, Any] = merge(own, given)
    return merged


@pytest.mark.apart(RUNS_HERE, "Linux on x86-64, for which the package has Helm")
@pytest.mark.skipif(not PACKAGE.is_file(), reason="make node-packages installs Helm")
def test_the_rendered_file_is_what_helm_makes_of_the_chart() -> None:
    assert render_chart() == RENDERED.read_text(encoding="utf-8"), "run: python -m tests.production.chart"


@pytest.mark.apart(RUNS_HERE, "Linux on x86-64, for which the package has Helm")
@pytest.mark.skipif(not PACKAGE.is_file(), reason="make node-packages installs Helm")
def test_helm_refuses_values_without_what_must_be_set() -> None:
    done = run_helm("template", "memos", str(CHART))
    assert done.returncode != 0
    assert "/config/MEMOS_PUBLIC_URL" in done.stderr
    assert "/secrets/app" in done.stderr


def test_every_rendered_object_follows_the_schemas_of_kubernetes() -> None:
    for found in ALL:
        kubernetes_validate.validate(found, "1.29", strict=True)
        kubernetes_validate.validate(found, "1.37", strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(ALL[0] | {"spce": {}}, "1.37", strict=True)


def test_values_follow_their_schema_and_those_without_a_secret_do_not() -> None:
    jsonschema.validate(values(), schema())
    for wrong in {"secrets": {"app": "", "owner": "x"}}, {"config": {"MEMOS_MASTER_KEY": "x"}}, {"unknown": 1}:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(values() | wrong, schema())


def test_each_variable_of_the_product_is_a_value_or_from_the_secret() -> None:
    plain = set(schema()["properties"]["config"]["properties"]) | set(of_kind("ConfigMap")["memos-config"]["data"])
    for name in SERVING:
        given = plain | set(variables_of(PODS[name]))
        assert (KNOWN_VARIABLES | OF_TELEMETRY) - NOT_PASSED - given == OF_BACKUPS
        assert given <= KNOWN_VARIABLES | ADDRESSES | OF_UVICORN | OF_TELEMETRY
    of_backups = plain | set(variables_of(PODS["memos-backup"]))
    assert (KNOWN_VARIABLES | OF_TELEMETRY) - NOT_PASSED - of_backups == set()
    assert "DATABASE_BACKUP_URL" in of_backups


def test_backups_are_refused_without_their_places_and_their_secret() -> None:
    jsonschema.validate(values(), schema())
    for wrong in (
        {"backup": values()["backup"] | {"place": "/folder"}},
        {"backup": values()["backup"] | {"keyCopies": ""}},
        {"secrets": {"app": "memos-app", "owner": "memos-owner", "backup": ""}},
        {"secrets": {"app": "memos-app", "owner": "memos-owner"}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(values() | wrong, schema())
    jsonschema.validate(values() | wrong | {"backup": values()["backup"] | {"enabled": False}}, schema())


def test_secrets_come_by_reference_and_only_migrate_knows_the_owners() -> None:
    assert not of_kind("Secret")
    for name, pod in PODS.items():
        for variable in pod["containers"][0]["env"]:
            if re.search(r"_KEY|_TOKEN|_HEADERS|(DATABASE|OWNER|REDIS|MAIL|KEY_STORE|BACKUP)_URL", variable["name"]):
                assert set(variable) == {"name", "valueFrom"}
                secret = variable["valueFrom"]["secretKeyRef"]["name"]
                own = "memos-owner" if name == "memos-migrate" else "memos-app"
                assert secret == ("memos-backup" if "BACKUP" in variable["name"] else own)
    assert set(variables_of(PODS["memos-migrate"])) == {"MEMOS_DATABASE_ROLE", "DATABASE_OWNER_URL"}
    assert all("DATABASE_OWNER_URL" not in set(variables_of(PODS[name])) for name in SERVING)


def test_commands_are_those_of_the_compose_file_and_the_workers_take_every_queue_once() -> None:
    assert set(PODS) == SERVING | {"memos-migrate", "memos-backup"}
    assert PODS["memos-backup"]["containers"][0]["command"][:2] == COMPOSE["backup"]["command"][:2]
    for name in set(PODS) - {"memos-web", "memos-backup"}:  # web has the image's, and a schedule runs backups
        assert PODS[name]["containers"][0]["command"] == COMPOSE[name.removeprefix("memos-")]["command"]
    assert "command" not in PODS["memos-web"]["containers"][0]
    taken = [queue for worker in values()["workers"].values() for queue in worker["queues"]]
    assert sorted(taken) == sorted(Weight)


def test_every_pod_runs_without_privileges_tokens_and_links() -> None:
    """Links of a service would set MEMOS_WEB_PORT, which the product refuses as unknown."""
    (user,) = re.findall(r"^USER (\d+):\d+", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for pod in PODS.values():
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == int(user)
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_migrations_are_a_hook_and_beat_is_one() -> None:
    hook = of_kind("Job")["memos-migrate"]["metadata"]["annotations"]
    assert hook["helm.sh/hook"] == "pre-install,pre-upgrade"
    beat = of_kind("Deployment")["memos-beat"]["spec"]
    assert (beat["replicas"], beat["strategy"]) == (1, {"type": "Recreate"})
    web = PODS["memos-web"]["containers"][0]
    assert web["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert web["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert set(of_kind("PodDisruptionBudget")) == SERVING - {"memos-beat"}


def test_workers_scale_on_a_metric_that_the_product_has() -> None:
    (scaler,) = of_kind("HorizontalPodAutoscaler").values()
    metrics = [metric["external"]["metric"] for metric in scaler["spec"]["metrics"]]
    (name,) = {metric["name"] for metric in metrics}
    assert f'"{name}"' in (ROOT / "memos_web" / "metrics.py").read_text(encoding="utf-8")
    queues = [metric["selector"]["matchLabels"]["queue"] for metric in metrics]
    assert queues == values()["workers"]["worker"]["queues"], "it follows what its own workers take"
    target = of_kind("Deployment")[scaler["spec"]["scaleTargetRef"]["name"]]
    assert "replicas" not in target["spec"], "else each upgrade would undo the scaling"


def test_only_the_ingress_controller_reaches_web_and_nobody_reaches_the_rest() -> None:
    policies = of_kind("NetworkPolicy")
    every = policies["memos"]["spec"]
    assert set(every["policyTypes"]) == {"Ingress", "Egress"}
    assert "ingress" not in every
    allowed = [place["ipBlock"]["cidr"] for rule in every["egress"][1:] for place in rule["to"]]
    assert allowed == [rule["cidr"] for rule in values()["networkPolicy"]["egress"]]
    (rule,) = policies["memos-web"]["spec"]["ingress"]
    (source,) = rule["from"]
    assert source == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}


def test_the_worker_is_asked_under_its_own_name() -> None:
    probe = PODS["memos-worker"]["containers"][0]["livenessProbe"]["exec"]["command"][-1]
    assert shlex.split(probe)[-1] == "celery@$HOSTNAME"
    assert probe == COMPOSE["worker"]["healthcheck"]["test"][1].replace("$$", "$")
