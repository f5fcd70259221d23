"""`cellgate check`: the webhook's answer, without a cluster."""

from pathlib import Path

import pytest

from cli.main import main
from service.exit_codes import Exit

BAD = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: cellgate-rules, labels: {cellgate.io/policy: rules}}
data:
  policy.yaml: |
    apiVersion: cellgate.io/v1
    kind: Rules
    rules: [{then: nowhere}, {user: "(", then: fail}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: somebody-elses}
---
apiVersion: cellgate.io/v1
kind: Quotas
groups: [{name: vision, over: nowhere}, 5]
---
just a text
--- # and something that is not YAML
[
"""


def _check(*files: Path | str) -> Exit:
    return main(["check", *map(str, files)], {})


def test_examples_are_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    examples = Path(__file__).parents[3] / "manifests" / "examples"
    assert _check(*sorted(examples.glob("*.yaml"))) is Exit.OK
    assert capsys.readouterr().out.startswith("ok: policy version ")


def test_every_problem_of_every_file_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    assert _check(tmp_path / "bad.yaml") is Exit.FAILED
    bad = tmp_path / "bad.yaml"
    assert capsys.readouterr().out.splitlines() == [
        f'{bad}: expected a policy document, not "just a text"',
        f"{bad}: line 21, column 1: not valid YAML: did not find expected node content",
        f"{bad}: groups[1]: must be a mapping, not 5",
        f'{bad}: groups[0].over: "nowhere" is not a class: there is no Classes document; '
        "use fail, queue or a class",
        "ConfigMap cellgate-rules: rules[1].user: is not a valid regular expression: missing ) in "
        '"("',
        'ConfigMap cellgate-rules: rules[0].then: "nowhere" is not a class: there is no '
        "Classes document",
    ]


def test_documents_are_judged_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("apiVersion: cellgate.io/v1\nkind: Rules\nrules: [{then: oppo}]\n")
    assert _check(rules) is Exit.FAILED
    told = 'rules[0].then: "oppo" is not a class: there is no Classes document'
    assert capsys.readouterr().out == f"{rules}: {told}\n"
    classes = Path(__file__).parents[3] / "manifests" / "examples" / "classes.yaml"
    assert _check(rules, classes) is Exit.OK


def test_a_file_that_cannot_be_read_is_a_mistake_of_the_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _check(tmp_path / "missing") is Exit.USAGE
    assert "cannot read" in capsys.readouterr().err


def test_a_list_is_what_kubectl_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of its ConfigMaps is judged, also those after a bad one; other objects stand beside."""
    listed = """\
apiVersion: v1
kind: List
items:
- {kind: ConfigMap, metadata: {name: a, labels: {cellgate.io/policy: rulez}}}
- {kind: Pod, metadata: {name: b, labels: {cellgate.io/policy: rules}}}
- kind: ConfigMap
  metadata: {name: c, labels: {cellgate.io/policy: rules}}
  data: {policy.yaml: "{apiVersion: cellgate.io/v1, kind: Rules, rules: [{then: nowhere}]}"}
"""
    path = tmp_path / "list.yaml"
    path.write_text(listed)
    assert _check(path) is Exit.FAILED
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(" is ")[0] for line in told] == [
        f'{path}: ConfigMap a: cellgate.io/policy: "rulez"',
        'ConfigMap c: rules[0].then: "nowhere"',
    ]


CLUSTERS = {
    "hived": (
        """\
kubeApiServerAddress: http://10.0.0.1:8080
physicalCluster:
  skuTypes: {G: {gpu: 1, cpu: 4}}
  physicalCells: []
virtualClusters: {}
""",
        [
            "kubeApiServerAddress: is a setting of HiveD's process and has no effect here",
            "physicalCluster.skuTypes: is read, but CPU and memory of leaf types are not used; "
            "pods state what they need, and shapes can set it",
        ],
    ),
    "derived": (
        """\
apiVersion: cellgate.io/v1
kind: Cluster
nodeTopology:
- {levels: [kubernetes.io/hostname], leafResource: google.com/tpu, leafTypeLabel: type}
- {levels: [kubernetes.io/hostname], leafResource: nvidia.com/gpu, leafTypeLabel: type}
""",
        [
            'nodeTopology[0].leafResource: "google.com/tpu" is not served: cells are built of '
            "amd.com/gpu, nvidia.com/gpu only"
        ],
    ),
}


@pytest.mark.parametrize("form", CLUSTERS)
def test_what_has_no_effect_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    text, warnings = CLUSTERS[form]
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    assert _check(path) is Exit.OK
    *told, last = capsys.readouterr().out.splitlines()
    assert told == [f"warning: {path}: {warning}" for warning in warnings]
    assert last.startswith("ok: policy version ")


def test_a_group_without_quotas_in_the_queues_document_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(
        "apiVersion: cellgate.io/v1\nkind: Queues\nlevels: [{name: all, strategy: fifo}]\n"
        "groupLevels: {gold: [vision]}\n"
    )
    assert _check(path) is Exit.OK
    told, _ = capsys.readouterr().out.splitlines()
    reason = 'no gang is charged to group "vision": no Quotas document has groups'
    assert told == f"warning: {path}: groupLevels.gold: {reason}"


def test_a_rule_that_matches_no_gang_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        "apiVersion: cellgate.io/v1\nkind: Rules\nrules: [{occupied: '< 0', then: fail}]\n"
    )
    assert _check(path) is Exit.OK
    told, _ = capsys.readouterr().out.splitlines()
    reason = "the rule never matches: no number of leaf cells is < 0"
    assert told == f"warning: {path}: rules[0].occupied: {reason}"
