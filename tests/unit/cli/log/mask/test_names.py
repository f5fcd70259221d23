"""Pseudonyms keep the order of names, alone and as parts of longer texts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.log.mask.names import Collected, Kind, Pseudonyms, UnknownNameError, Word

_NAMES = st.sets(st.text("abn019-._ÄΩ", min_size=1, max_size=6), min_size=1, max_size=30)
"""Often one is the beginning of another."""


def _assigned(kind: Kind, names: set[str], word: Word = Word.VALUE) -> Pseudonyms:
    collected = Collected()
    for name in names:
        collected.of(kind, name, word)
    return collected.assign()


@given(kind=st.sampled_from(list(Kind)), names=_NAMES)
def test_pseudonyms_keep_the_order_of_names(kind: Kind, names: set[str]) -> None:
    known = _assigned(kind, names)
    masked = [known.of(kind, name) for name in sorted(names)]
    assert masked == sorted(masked)
    assert len({*masked}) == len(names)


@given(names=_NAMES)
def test_namespaces_keep_their_order_before_the_names_in_them(names: set[str]) -> None:
    known = _assigned(Kind.NAMESPACE, names)
    ordered = sorted(names, key=lambda name: f"{name}/pod")
    masked = [f"{known.of(Kind.NAMESPACE, name)}/pod" for name in ordered]
    assert masked == sorted(masked)


@given(names=_NAMES, end=st.sampled_from(["@east", "#1", ""]))
def test_leaf_types_keep_their_order_in_the_names_of_chains(names: set[str], end: str) -> None:
    known = _assigned(Kind.PLACE, names, Word.TYPE)
    chains = [name + end for name in names] + [*names]
    masked = {
        name + suffix: known.of(Kind.PLACE, name) + suffix for name in names for suffix in ("", end)
    }
    ordered = [masked[chain] for chain in sorted({*chains})]
    assert ordered == sorted(ordered)


@pytest.mark.parametrize("kind", [Kind.VC, Kind.LEVEL])
@given(names=_NAMES)
def test_names_that_code_knows_stay_and_keep_their_order_among_others(
    kind: Kind, names: set[str]
) -> None:
    known = _assigned(kind, {*names, "default"})
    assert known.of(kind, "default") == "default"
    masked = [known.of(kind, name) for name in sorted({*names, "default"})]
    assert all(one < other for one, other in pairwise(masked))


def test_a_name_reads_as_what_it_names() -> None:
    collected = Collected()
    collected.of(Kind.USER, "alice")
    collected.of(Kind.USER, "bob")
    collected.of(Kind.PLACE, "worker-1")
    collected.of(Kind.PLACE, "worker-1", Word.NODE)
    collected.of(Kind.PLACE, "A100", Word.TYPE)
    collected.of(Kind.UID, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
    known = collected.assign()
    assert known.of(Kind.USER, "bob") == "user-0002"
    assert known.of(Kind.PLACE, "A100") == "a0001-type"
    assert known.of(Kind.PLACE, "worker-1") == "v0002-node"
    assert known.of(Kind.UID, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6").endswith("-000000000001")
    assert known.originals()["user"] == {"user-0001": "alice", "user-0002": "bob"}
    assert known.count == 5


def test_a_name_that_the_first_pass_did_not_meet_is_an_error() -> None:
    known = Collected().assign()
    assert known.of(Kind.USER, "") == ""
    with pytest.raises(UnknownNameError):
        known.of(Kind.USER, "alice")
