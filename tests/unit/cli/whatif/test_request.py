"""The flags of `cellgate what-if`."""

from collections.abc import Mapping

import pytest

from cli.commands import build_parser
from cli.whatif.request import FlatCluster, Request, read_request
from cli.whatif.sources.generated import Workload
from policy.errors import SettingsError
from policy.submission import LeafType
from timemachine.capacity import Goal, Measure
from timemachine.comparison import Grouping
from timemachine.worlds import AddedNodes


def _request(*flags: str, environment: Mapping[str, str] | None = None) -> Request:
    return read_request(build_parser(environment or {}).parse_args(["what-if", *flags]))


def test_without_flags_the_log_is_played_as_it_was() -> None:
    request = _request()
    assert (request.policies, request.before, request.added, request.goal) == ((), (), (), None)
    assert request.is_recorded
    assert request.flat == FlatCluster(nodes=64, leaf_type=LeafType("gpu"))


def test_several_documents_are_given_by_one_flag_or_by_several() -> None:
    request = _request("--policy", "a", "b", "--policy", "c", "--before", "d")
    assert (request.policies, request.before) == (("a", "b", "c"), ("d",))
    environment = {"CELLGATE_POLICY": "x:y"}
    assert _request(environment=environment).policies == ("x", "y")
    assert _request("--policy", "a", environment=environment).policies == ("a",)


def test_nodes_of_several_types_are_added() -> None:
    assert _request("--nodes", "+16:A100,+4:H100:80GB").added == (
        AddedNodes(number=16, leaf_type=LeafType("A100")),
        AddedNodes(number=4, leaf_type=LeafType("H100:80GB")),
    )


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("p95=2h", Goal(measure=Measure.P95, seconds=7200.0)),
        (
            "vc=lab,p95=90s",
            Goal(measure=Measure.P95, seconds=90.0, grouping=Grouping.VC, name="lab"),
        ),
        (
            " mean = 1h30m , size = 8 to 15",
            Goal(measure=Measure.MEAN, seconds=5400.0, grouping=Grouping.SIZE, name="8 to 15"),
        ),
    ],
)
def test_a_goal_is_a_measure_and_perhaps_a_row(text: str, goal: Goal) -> None:
    assert _request("--nodes", "+4:A100", "--goal", text).goal == goal


def test_a_workload_has_days_load_and_seed() -> None:
    request = _request("--generate", "load=1.5,seed=7", "--leaf-cells", "80:A100")
    assert request.workload == Workload(days=2.0, load=1.5, leaf_cells=80, seed=7)
    assert request.flat == FlatCluster(nodes=10, leaf_type=LeafType("A100"))
    assert not request.is_recorded


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--nodes", "16:A100"], "--nodes must be numbers and leaf types such as"),
        (["--nodes", "+0:A100"], "--nodes must be numbers and leaf types such as"),
        (["--goal", "p95=2h"], "--goal needs --nodes with one leaf type"),
        (["--goal", "p95=2h", "--nodes", "+1:A,+1:B"], "--goal needs --nodes with one leaf type"),
        (["--goal", "p95=soon", "--nodes", "+1:A"], "--goal: p95 must be a duration"),
        (["--goal", "vc=lab", "--nodes", "+1:A"], "--goal must be a measure"),
        (["--goal", "p95=2h,mean=2h", "--nodes", "+1:A"], "--goal must be a measure"),
        (["--goal", "p95=2h,user=bob", "--nodes", "+1:A"], "--goal must be a measure"),
        (["--goal", "p95=2h,p95=3h", "--nodes", "+1:A"], "--goal must be a measure"),
        (["--leaf-cells", "7"], "--leaf-cells must be a number from 8 to 400,000"),
        (["--leaf-cells", "12"], "--leaf-cells must be a multiple of 8, not 12"),
        (["--generate", "days=many"], "--generate must be days, load and seed"),
        (["--generate", "days=2,users=3"], "--generate must be days, load and seed"),
        (["--generate", "days=nan"], "--generate must be days, load and seed"),
        (["--generate", "load=0"], "--generate must be days, load and seed"),
        (["--trace", "a.csv", "--file", "b"], "--file and --trace exclude each other"),
    ],
)
def test_a_wrong_flag_is_told_in_one_line(flags: list[str], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        _request(*flags)
