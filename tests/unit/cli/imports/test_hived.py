"""`cellgate import hived`: HiveD's configuration, by itself and inside other files."""

from pathlib import Path

import pytest

from cli.imports.hived import convert_hived
from cli.main import main
from policy.errors import SettingsError, SpecError
from service.exit_codes import Exit
from tests.support.policy.cluster_texts import topology_of, warnings_of

PLAIN = """\
kubeApiServerAddress: http://10.0.0.1:8080
webServerAddress: ":30096"
physicalCluster:
  skuTypes:
    G: {gpu: 1, cpu: 4, memory: 8192Mi}
  cellTypes:
    G-NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: yes}
    G-POOL: {childCellType: G-NODE, childCellNumber: 2}
  physicalCells:
  - cellType: G-POOL
    cellChildren:
    - {cellAddress: 0010, pinnedCellId: first}
    - {cellAddress: on}   # the second machine
virtualClusters:
  default: {virtualCells: [{cellType: G-POOL.G-NODE, cellNumber: 1}]}
  vc1: {pinnedCells: [{pinnedCellId: first}]}
"""
SKUS = "CPU and memory of leaf types are not used; pods state what they need, and shapes can set it"
REMARKS = [
    "kubeApiServerAddress was left out: a setting of HiveD's process",
    "webServerAddress was left out: a setting of HiveD's process",
    f"physicalCluster.skuTypes was left out: {SKUS}",
]


def _indent(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}" for line in text.splitlines(keepends=True))


OPENPAI = f"""\
cluster:
  common: {{cluster-id: pai}}
hivedscheduler:
  config: |
{_indent(PLAIN, 4)}
rest-server:
  default-pai-admin-username: admin
"""
WRAPPED = {
    "plain": PLAIN,
    "service configuration": OPENPAI,
    "not as text": f"hivedscheduler:\n  config:\n{_indent(PLAIN, 4)}",
    "config map": f"""\
apiVersion: v1
kind: Namespace
metadata: {{name: hived}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: hivedscheduler-config}}
data:
  README: some words
  hivedscheduler.yaml: |
{_indent(PLAIN, 4)}
""",
    "list": f"""\
kind: List
items:
- kind: ConfigMap
  data:
    config: |
{_indent(PLAIN, 6)}
""",
}


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED)
def test_a_configuration_is_taken_over_wherever_it_stands(text: str) -> None:
    document, remarks = convert_hived(text)
    assert document.startswith("apiVersion: cellgate.io/v1\nkind: Cluster\nphysicalCluster:\n")
    assert topology_of(document) == topology_of(PLAIN)
    assert remarks == REMARKS
    assert warnings_of(document) == []


def test_the_command_prints_the_document_and_the_remarks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "service-configuration.yaml"
    path.write_text(OPENPAI)
    assert main(["import", "hived", str(path)], {}) is Exit.OK
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [f"cellgate: {remark}" for remark in REMARKS]
    (tmp_path / "cluster.yaml").write_text(printed.out)
    assert main(["check", str(tmp_path / "cluster.yaml")], {}) is Exit.OK
    assert capsys.readouterr().out.startswith("ok: policy version ")


def test_what_has_no_effect_is_remarked() -> None:
    _, remarks = convert_hived(PLAIN.replace("physicalCells:", "colour: red\n  physicalCells:"))
    assert remarks[-1] == (
        "physicalCluster.colour: unknown key, it has no effect; known keys are cellTypes, "
        "physicalCells, skuTypes"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            PLAIN.replace("cellNumber: 1", "cellNumber: 5"),
            'virtualClusters: chain "G-POOL", level 2 ("G-NODE"): 5 cells promised',
        ),
        (PLAIN.replace("pinnedCellId: first}\n", "reservationId: first}\n"), "it is now called"),
        (f"{PLAIN}virtualClusters: {{}}\n", "virtualClusters"),
        (f"hivedscheduler:\n  config: |\n{_indent(PLAIN + 'kind: 5', 4)}", "kind: must be"),
        ("hivedscheduler:\n  config: |\n    physicalCluster: [", "not valid YAML"),
        ("- a list", "expected a policy document"),
    ],
    ids=["promises", "old key", "twice", "kind", "YAML inside", "list"],
)
def test_a_configuration_with_problems_is_refused_with_all_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    with pytest.raises(SpecError) as raised:
        convert_hived(text)
    assert any(problem in str(one) for one in raised.value.problems), raised.value
    (tmp_path / "hived.yaml").write_text(text)
    assert main(["import", "hived", str(tmp_path / "hived.yaml")], {}) is Exit.FAILED
    printed = capsys.readouterr()
    assert printed.out == ""
    assert problem in printed.err


@pytest.mark.parametrize(
    "text",
    ["", "# nothing but comments\n", "hivedscheduler: {}\n", "hivedscheduler: {config: words}\n"],
)
def test_a_file_without_a_configuration_is_a_mistake_of_the_call(text: str) -> None:
    with pytest.raises(SettingsError, match="has no configuration of HiveD: expected the keys"):
        convert_hived(text)


def test_two_configurations_are_not_one() -> None:
    with pytest.raises(SettingsError, match="has 2 configurations of HiveD, not one"):
        convert_hived(f"{PLAIN}---\n{OPENPAI}")


def test_check_says_how_openpais_file_is_taken_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pai.yaml").write_text(OPENPAI)
    assert main(["check", str(tmp_path / "pai.yaml")], {}) is Exit.FAILED
    assert capsys.readouterr().out == (
        f"{tmp_path / 'pai.yaml'}: hivedscheduler: is OpenPAI's configuration; convert it: "
        "cellgate import hived FILE\n"
    )
