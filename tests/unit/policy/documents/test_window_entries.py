"""Advance reservations and maintenance windows in the Queues document, and their problems."""

import pytest

from policy.capacity import Capacity, ChainCapacity, Share
from policy.documents.queues_document import QueuesDocument
from policy.errors import SpecError
from policy.parser import DocumentKind, parse_document
from policy.queues.queues import Queues
from policy.queues.windows import promise_problems
from policy.store import PolicyText, build_policy
from policy.submission import LeafType, NodeName, VcName
from policy.wording import moment
from tests.support.queue.orders import facts

_HEAD = """apiVersion: cellgate.io/v1
kind: Queues
levels: [{name: all, strategy: fifo}]
"""
_TIMES = 'from: "2026-11-20T20:00:00Z", until: "2026-11-21T06:00:00+01:00"'
_FULL = (
    _HEAD
    + f"""
reservations:
- {{name: nightly, vc: lab, leafType: A100, members: 2, leafCells: 8, {_TIMES},
    who: {{groups: [vision]}}}}
maintenance:
- {{name: firmware, nodes: [n1], nodeLabels: {{rack: r1}}, reason: new firmware, {_TIMES},
    notice: 2d}}
"""
)
_CAPACITY = Capacity(
    chains=(
        ChainCapacity(
            leaf_type=LeafType("A100"),
            all_cells=Share(64, 8),
            of_vc={VcName("lab"): Share(16, 8)},
        ),
    )
)


def _parse(text: str) -> Queues:
    document = parse_document(text, kind=DocumentKind.QUEUES)
    assert isinstance(document, QueuesDocument)
    return document.build()


def _problems(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse_document(_HEAD + text, kind=DocumentKind.QUEUES)
    return [str(problem) for problem in caught.value.problems]


def _reservation(name: str, *, leaf_cells: int = 8, members: int = 1, hours: str = "20-22") -> str:
    begins, ends = hours.split("-")
    return (
        f"{{name: {name}, vc: lab, members: {members}, leafCells: {leaf_cells}, "
        f'who: {{users: [ann]}}, from: "2026-11-20T{begins}:00:00Z", '
        f'until: "2026-11-20T{ends}:00:00Z"}}'
    )


def test_every_field_has_its_meaning() -> None:
    queues = _parse(_FULL)
    (nightly,), (firmware,) = queues.reservations, queues.maintenance
    assert (nightly.total, nightly.leaf_type) == (16, "A100")
    assert nightly.ends - nightly.begins == 9 * 3600
    assert nightly.covers(facts(group="vision"))
    assert not nightly.covers(facts(group="speech"))
    assert not nightly.covers(facts(group="vision", vc=VcName("other")))
    assert (firmware.reason, firmware.notice) == ("new firmware", 2 * 86400)
    assert firmware.covers(NodeName("n1"), {})
    assert firmware.covers(NodeName("n7"), {"rack": "r1"})
    assert not firmware.covers(NodeName("n7"), {"rack": "r2"})


def test_every_problem_is_told_with_its_path() -> None:
    found = _problems(
        """
reservations:
- {name: a, vc: lab, leafCells: 8, who: {}, from: "2026-11-20T20:00:00Z",
   until: "2026-11-20T20:00:00Z"}
- {name: a, vc: lab, leafCells: 0, who: {users: [u], vcs: [x]}, from: "2026-11-20", until: soon}
maintenance:
- {name: m, from: "2026-11-21T20:00:00Z", until: "2026-11-20T20:00:00Z", notice: often}
"""
    )
    paths = {one.split(": ", 1)[0] for one in found}
    assert paths == {
        "reservations[0].until",
        "reservations[0].who",
        "reservations[1].name",
        "reservations[1].leafCells",
        "reservations[1].who.vcs",
        "reservations[1].from",
        "reservations[1].until",
        "maintenance[0]",
        "maintenance[0].until",
        "maintenance[0].notice",
    }
    assert any('must be a time with a zone in quotes, such as "' in one for one in found)


def test_a_reservation_beyond_the_promise_is_refused_with_the_sum() -> None:
    queues = _parse(
        f"{_HEAD}reservations: [{_reservation('a')}, {_reservation('b', members=2)}, "
        f"{_reservation('c', hours='22-23', members=2)}]"
    )
    (problem, again) = promise_problems(queues.reservations, _CAPACITY)
    assert problem.path == "reservations[0]"
    assert problem.message == (
        'reservations at 2026-11-20T20:00:00Z need 24 leaf cells (a 8 + b 16), but VC "lab" was '
        "promised 16; ask for less, for another time, or raise the promise in the Cluster document"
    )
    assert again.path == "reservations[1]"


_TWO_TYPES = Capacity(
    chains=tuple(
        ChainCapacity(
            leaf_type=LeafType(leaf_type),
            all_cells=Share(64, 8),
            of_vc={VcName("lab"): Share(16, 8)},
        )
        for leaf_type in ("A100", "V100")
    )
)


def _typed(name: str, leaf_type: str, *, members: int) -> str:
    return _reservation(name, members=members).replace("vc: lab", f"vc: lab, leafType: {leaf_type}")


@pytest.mark.parametrize(
    ("entries", "refused"),
    [
        ([_typed("a", "A100", members=2), _reservation("b", members=2)], []),
        ([_typed("a", "A100", members=2), _typed("v", "V100", members=2)], []),
        (
            [_typed("a", "A100", members=2), _typed("b", "A100", members=1)],
            ["need 24 leaf cells of type A100 (a 16 + b 8), but"] * 2,
        ),
        (
            [
                _typed("a", "A100", members=2),
                _typed("v", "V100", members=1),
                _reservation("b", members=2),
            ],
            ["need 40 leaf cells (a 16 + v 8 + b 16), but"] * 3,
        ),
    ],
    ids=["any type beside one", "both types", "one type too often", "all types too often"],
)
def test_a_reservation_of_any_type_uses_what_those_of_one_type_leave(
    entries: list[str], refused: list[str]
) -> None:
    queues = _parse(f"{_HEAD}reservations: [{', '.join(entries)}]")
    found = [problem.message for problem in promise_problems(queues.reservations, _TWO_TYPES)]
    assert len(found) == len(refused)
    assert all(part in message for part, message in zip(refused, found, strict=True))


def test_a_gang_lies_in_one_chain() -> None:
    queues = _parse(f"{_HEAD}reservations: [{_reservation('a', members=4)}]")
    (problem,) = promise_problems(queues.reservations, _TWO_TYPES)
    assert problem.path == "reservations[0].members"
    assert problem.message == (
        'must be at most 2: a gang lies in one chain, and of none was VC "lab" promised more '
        "than 16 leaf cells"
    )


def test_a_member_larger_than_a_node_is_refused() -> None:
    queues = _parse(f"{_HEAD}reservations: [{_reservation('a', leaf_cells=16)}]")
    (problem,) = promise_problems(queues.reservations, _CAPACITY)
    assert problem.path == "reservations[0].leafCells"
    assert not list(promise_problems(queues.reservations, None))


@pytest.mark.parametrize(
    ("leaf_type", "path", "told"),
    [
        ("leafType: H100, ", "leafType", 'VC "lab" was promised no leaf cells of type H100'),
        ("", "vc", 'VC "free" was promised no leaf cells'),
    ],
)
def test_a_vc_without_such_a_promise_is_named(leaf_type: str, path: str, told: str) -> None:
    entry = _reservation("a").replace("leafCells", f"{leaf_type}leafCells")
    queues = _parse(
        f"{_HEAD}reservations: [{entry if leaf_type else entry.replace('lab', 'free')}]"
    )
    (problem,) = promise_problems(queues.reservations, _CAPACITY)
    assert (problem.path, problem.message) == (f"reservations[0].{path}", told)


def test_unknown_classes_are_told_when_all_documents_are_known() -> None:
    text = _HEAD + _reservation("a").replace("users: [ann]", "classes: [gone]").join(
        ("reservations: [", "]")
    )
    with pytest.raises(SpecError, match=r"reservations\[0\].who.classes\[0\]"):
        build_policy([PolicyText(kind=DocumentKind.QUEUES, source="q", text=text)])


def test_a_window_that_ends_with_the_last_moment_that_there_is_can_be_told() -> None:
    """Other programs write this time for what does not end."""
    entry = '{name: x, nodes: [n1], from: "2026-11-20T20:00:00Z", until: "%s"}'
    forever = "9999-12-31T23:59:59.9999999Z"
    queues = _parse(f"{_HEAD}maintenance: [{entry % forever}]")
    assert moment(queues.maintenance[0].ends) == "9999-12-31T23:59:59Z"
