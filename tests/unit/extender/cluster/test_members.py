"""Members by their nodes: windows ask for those of some nodes, not for all."""

from extender.cells.model import MemberRequest
from extender.cluster.members import Member, MemberIndex
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid


def _member(name: str, node: str, *, gang: str = "bert", is_bound: bool = True) -> Member:
    request = MemberRequest(
        member=PodUid(name), gang=GangKey("lab", gang), leaf_count=1, gang_leaf_counts=(1,)
    )
    placement = Placement(node=NodeName(node), leaf_cells=(0,))
    return Member(request=request, placement=placement, is_bound=is_bound)


def _on(members: MemberIndex, *nodes: str) -> list[str]:
    return [str(uid) for uid, _ in members.items_on(map(NodeName, nodes))]


def test_members_are_found_by_their_nodes() -> None:
    members = MemberIndex()
    members.add(_member("a", "n1", is_bound=False))
    members.add(_member("b", "n2"))
    assert _on(members, "n1", "n2", "gone") == ["a", "b"]
    members.add(_member("a", "n2"))
    members.add(_member("a", "n1", is_bound=False))
    assert (_on(members, "n1"), _on(members, "n2")) == ([], ["b", "a"])
    members.add(_member("b", "n1", gang="other"))
    assert (_on(members, "n1"), _on(members, "n2")) == (["b"], ["a"])
    members.remove(PodUid("b"))
    members.remove(PodUid("b"))
    assert _on(members, "n1", "n2") == ["a"]
