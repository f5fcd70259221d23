"""Candidate nodes are encoded as a difference to the known ones, and nothing gets lost."""

import doctest

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.log import candidates
from state.log.candidates import KnownNodes

_NAMES = st.one_of(st.integers(0, 80).map("node-{:03}".format), st.text(max_size=3))
_SETS = st.sets(_NAMES, max_size=80)


@given(known=_SETS, offered=_SETS)
def test_what_is_encoded_comes_back(known: set[str], offered: set[str]) -> None:
    encoded = KnownNodes(known).encode(list(offered))
    assert KnownNodes(known).decode(encoded) == offered


@given(known=_SETS, data=st.data())
def test_what_is_known_changes_and_every_row_still_comes_back(
    known: set[str], data: st.DataObject
) -> None:
    engine, replay = KnownNodes(known), KnownNodes(known)
    for _ in range(data.draw(st.integers(0, 5))):
        name = data.draw(_NAMES)
        is_gone = data.draw(st.booleans())
        for nodes in (engine, replay):
            nodes.forget(name) if is_gone else nodes.observe(name)
        offered = data.draw(_SETS)
        assert replay.decode(engine.encode(offered)) == offered


@given(excluded=st.sets(st.integers(0, 4999)), picked=st.integers(0, 5000))
def test_a_row_stays_small_at_5000_nodes(excluded: set[int], picked: int) -> None:
    names = [f"gpu-node-{index:05}.example" for index in range(5000)]
    known = KnownNodes(names)
    window = set(names[picked:] + names[: max(0, picked - 4500)])  # as kube-scheduler samples
    for offered in (window, {name for i, name in enumerate(names) if i not in excluded}):
        assert len(orjson.dumps(known.encode(offered))) <= 1100


def test_the_worst_case_at_5000_nodes_is_a_bit_each() -> None:
    names = [f"gpu-node-{index:05}.example" for index in range(5000)]
    scattered = {name for index, name in enumerate(names) if (index * index * 31) % 7 < 3}
    assert len(orjson.dumps(KnownNodes(names).encode(scattered))) <= 1100


def test_bits_that_mean_other_nodes_are_refused() -> None:
    names = [f"n{index}" for index in range(100)]
    encoded = KnownNodes(names).encode(names[:50])
    with pytest.raises(ValueError, match="an observation is missing"):
        KnownNodes(names[1:]).decode(encoded)
    with pytest.raises(ValueError, match="an observation is missing"):
        KnownNodes([*names[1:], "other"]).decode(encoded)


@pytest.mark.parametrize("encoded", [None, 7, "some", {}, {"bits": "x"}, ["n1"]])
def test_what_is_no_encoding_is_refused(encoded: object) -> None:
    with pytest.raises(ValueError, match="cannot be decoded"):
        KnownNodes(["n1"]).decode(encoded)


@pytest.mark.parametrize("bits", ["", "x", "00", "~~~~~~~~~~~~"])
def test_damaged_bits_are_refused(bits: str) -> None:
    names = [f"n{index}" for index in range(100)]
    encoded = KnownNodes(names).encode(names[:50])
    assert isinstance(encoded, dict)
    with pytest.raises(ValueError, match=r"damaged|base85|85"):
        KnownNodes(names).decode({**encoded, "bits": bits})


def test_the_examples_of_the_module_are_true() -> None:
    assert doctest.testmod(candidates).failed == 0
