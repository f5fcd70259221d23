"""A CSV trace: its columns, its gangs, and all problems with their lines."""

import pytest

from cli.whatif.sources.trace import Between, read_trace
from policy.errors import SpecError
from policy.submission import ClassName, GangKey, UserName, VcName
from timemachine.model import Arrival

_PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.0,20,59020.0,6214e9
"""


def _read(text: str, between: Between | None = None) -> list[Arrival]:
    return list(read_trace(text, name="t", node_leaf_cells=8, between=between).arrivals)


def _problems(text: str) -> list[str]:
    with pytest.raises(SpecError) as raised:
        _read(text)
    return [str(problem) for problem in raised.value.problems]


def test_the_philly_trace_is_read_in_the_order_of_submission() -> None:
    assert _read(_PHILLY) == [
        Arrival(
            gang=GangKey("trace", "line-000003"),
            submitted=1507529583.0,
            run_seconds=2951.0,
            sizes=(8, 8, 4),
            user=UserName(""),
            requested_class=ClassName(""),
            vc=VcName("6214e9"),
        ),
        Arrival(
            gang=GangKey("trace", "line-000002"),
            submitted=1507532515.0,
            run_seconds=66.0,
            sizes=(1,),
            user=UserName(""),
            requested_class=ClassName(""),
            vc=VcName("11cb48"),
        ),
    ]


def test_our_own_columns_say_who_asked_for_what() -> None:
    text = (
        "timestamp,duration,num_gpus,name,user,group,class,leaf_type,members\n"
        "1507529583,60,12,bert,alice,vision,prod,A100,3\n"
    )
    (arrival,) = _read(text)
    assert arrival.gang == GangKey("trace", "bert")
    assert (arrival.user, arrival.groups) == ("alice", ("vision",))
    assert (arrival.requested_class, arrival.leaf_type) == ("prod", "A100")
    assert (arrival.sizes, arrival.vc) == ((4, 4, 4), "default")


def test_gangs_of_one_name_are_different_gangs() -> None:
    text = "timestamp,duration,num_gpus,name\n" + "1507529583,60,1,bert\n" * 3
    assert len({arrival.gang for arrival in _read(text)}) == 3


def test_all_problems_are_told_with_their_lines() -> None:
    text = (
        "timestamp,duration,num_gpus,members,user\n"
        "yesterday,60,1,,\n"
        "1507529583,-1,many,,\n"
        "1507529583,60,8,3,\n"
        "1507529583,60,8\n"
        "1507529583,nan,99999999999,0.5,\x07\n"
    )
    assert _problems(text) == [
        "line 2: timestamp: must be a time such as 2026-03-01T12:00:00Z, or seconds since 1970, "
        'not "yesterday"',
        'line 3: duration: must be a number of seconds of at most ten years, not "-1"',
        'line 3: num_gpus: must be a whole number up to 1,000,000, not "many"',
        "line 4: members: 8 leaf cells cannot be divided by 3",
        "line 5: has too many or too few columns",
        'line 6: duration: must be a number of seconds of at most ten years, not "nan"',
        'line 6: num_gpus: must be a whole number up to 1,000,000, not "99999999999"',
        'line 6: members: must be a whole number up to 100,000, not "0.5"',
        'line 6: user: must be at most 253 printable characters, not "\\x07"',
    ]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("num_gpus,duration\n", ["line 1: the column timestamp is missing"]),
        ("timestamp,duration,num_gpus,user,user\n", ["line 1: the column user is there twice"]),
        ('timestamp,duration,num_gpus\n"1,2,3\n', ["line 2: is no CSV: unexpected end of data"]),
        ("timestamp,duration,num_gpus\n1,2,3,4\n", ["line 2: has too many or too few columns"]),
    ],
    ids=["missing", "twice", "quote", "too many"],
)
def test_a_text_that_is_no_trace_is_told(text: str, problems: list[str]) -> None:
    assert _problems(text) == problems


def test_many_problems_are_cut() -> None:
    told = _problems("timestamp,duration,num_gpus\n" + "x,1,1\n" * 500)
    assert len(told) == 101
    assert told[-1].endswith("400 more problems not shown")


def test_lines_without_leaf_cells_and_foreign_columns_are_told() -> None:
    text = "\ufefftimestamp, duration,num_gpus,index\n1,2,0,7\n1,2,1.0,8\n"
    found = read_trace(text, name="t", node_leaf_cells=8)
    assert [arrival.sizes for arrival in found.arrivals] == [(1,)]
    assert found.warnings == (
        'columns without a meaning are not read: "index"',
        "1 line without leaf cells are left out",
    )


def test_only_gangs_of_the_wanted_time_are_played() -> None:
    between = Between(since=1507530000.0, until=1507540000.0)
    assert [arrival.vc for arrival in _read(_PHILLY, between=between)] == ["11cb48"]
