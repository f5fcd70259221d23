"""YAML as it was written, and texts that are meant to hurt."""

import pytest

from kube.hived.yaml_tree import Scalar, Tree, YamlError, parse_yaml

_LENGTH = 64 * 1_024


def _quoted(text: str) -> Scalar:
    return Scalar(text, is_plain=False)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param("", Scalar(""), id="nothing"),
        pytest.param("# only a comment", Scalar(""), id="a comment"),
        pytest.param("010", Scalar("010"), id="a scalar is not interpreted"),
        pytest.param("'010'", _quoted("010"), id="quotes are remembered"),
        pytest.param("!!str 8", _quoted("8"), id="so is a text by its tag"),
        pytest.param(
            "[a, 'b', {c: ~}]", [Scalar("a"), _quoted("b"), {"c": Scalar("~")}], id="flow"
        ),
        pytest.param("a:\n- b\n- c: 1\n", {"a": [Scalar("b"), {"c": Scalar("1")}]}, id="block"),
        pytest.param('{"a": 1, "b": "x"}', {"a": Scalar("1"), "b": _quoted("x")}, id="JSON"),
        pytest.param("{a: 1, a: 2}", {"a": Scalar("2")}, id="of equal keys the last counts"),
        pytest.param("{[x]: 1, {y: 1}: 2, z: 3}", {"z": Scalar("3")}, id="odd keys are ignored"),
        pytest.param("a: 1\n---\nb: 2\n", {"a": Scalar("1")}, id="only the first document"),
        pytest.param("a: 1\n---\n[", {"a": Scalar("1")}, id="whatever the second one holds"),
        pytest.param(
            "a: &x {k: 1}\nb: *x\nc: [*x, *x]\n",
            {
                "a": {"k": Scalar("1")},
                "b": {"k": Scalar("1")},
                "c": [{"k": Scalar("1")}, {"k": Scalar("1")}],
            },
            id="aliases",
        ),
        pytest.param("{'<<': 1}", {"<<": Scalar("1")}, id="a quoted merge key is none"),
    ],
)
def test_texts_become_trees(text: str, tree: Tree) -> None:
    assert parse_yaml(text, max_length=_LENGTH) == tree


def test_aliases_share_what_they_stand_for() -> None:
    """So a billion laughs take no more room than their text."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]" for i in range(1, 60)]
    tree = parse_yaml("\n".join(lines), max_length=_LENGTH)
    assert isinstance(tree, dict)
    assert isinstance(tree["a59"], list)
    assert tree["a59"][0] is tree["a59"][7] is tree["a58"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a" * (_LENGTH + 1), "at most 65536 characters, not 65537", id="too long"),
        pytest.param("a" * 1_000_000, "at most 65536 characters, not 1000000", id="a megabyte"),
        pytest.param("[" * 60_000, "nested at most 20 deep", id="deep lists"),
        pytest.param("{a: " * 15_000, "nested at most 20 deep", id="deep mappings"),
        pytest.param("- " * 30_000, "nested at most 20 deep", id="deep blocks"),
        pytest.param("? " * 30_000, "nested at most 20 deep", id="deep keys"),
        pytest.param("a: &x {}\nb: {<<: *x}", 'without merge keys ("<<")', id="merge keys"),
        pytest.param("a: *x", 'valid YAML: unknown alias "x"', id="unknown alias"),
        pytest.param("a: &x [*x]", 'valid YAML: unknown alias "x"', id="an alias in itself"),
        pytest.param("a: \0", "valid YAML: it has characters that are not allowed", id="NUL"),
        pytest.param(
            "\ud800", "valid YAML: it has characters that are not allowed", id="surrogate"
        ),
    ],
)
def test_hostile_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text, max_length=_LENGTH)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\t- x", "'", "%x", "a: 1\n}", "!<"])
def test_what_is_no_yaml_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(YamlError, match=r"^valid YAML: .+ at line \d+, column \d+$"):
        parse_yaml(text, max_length=_LENGTH)
