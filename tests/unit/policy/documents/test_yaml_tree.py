"""YAML read as Go's yaml.v2 reads it, and texts that are meant to hurt.

What is read as policy documents are is tested with `yaml_text`.
"""

import pytest

from policy.documents.yaml_tree import Dialect, Plain, YamlError, read_tree


def _show(text: str, is_unquoted: bool) -> str:
    return text if is_unquoted else f"'{text}'"


_GO = Dialect(scalar=_show, max_bytes=64 * 1_024, is_strict=False)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("# only a comment", "", id="a comment"),
        pytest.param("010", "010", id="a scalar is not interpreted"),
        pytest.param("'010'", "'010'", id="quotes are remembered"),
        pytest.param("!!str 8", "'8'", id="so is a text by its tag"),
        pytest.param("!x {a: 1}", {"a": "1"}, id="other tags have no meaning"),
        pytest.param("[a, 'b', {c: ~}]", ["a", "'b'", {"c": "~"}], id="flow"),
        pytest.param("a:\n- b\n- c: 1\n", {"a": ["b", {"c": "1"}]}, id="block"),
        pytest.param('{"a": 1, "b": "x"}', {"a": "1", "b": "'x'"}, id="JSON"),
        pytest.param("{a: 1, a: 2}", {"a": "2"}, id="of equal keys the last counts"),
        pytest.param("{[x]: 1, {y: 1}: 2, z: 3}", {"z": "3"}, id="odd keys are ignored"),
        pytest.param("a: 1\n---\nb: 2\n", {"a": "1"}, id="only the first document"),
        pytest.param("a: 1\n---\n[", {"a": "1"}, id="whatever the second one holds"),
        pytest.param(
            "a: &x {k: 1}\nb: *x\nc: [*x, *x]\n",
            {"a": {"k": "1"}, "b": {"k": "1"}, "c": [{"k": "1"}, {"k": "1"}]},
            id="aliases",
        ),
        pytest.param("a: &x k\nb: {*x : 1}", {"a": "k", "b": {"k": "1"}}, id="an alias as a key"),
        pytest.param("{'<<': 1}", {"<<": "1"}, id="a quoted merge key is none"),
    ],
)
def test_texts_become_trees(text: str, tree: Plain) -> None:
    assert read_tree(text, _GO) == (tree, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a" * 65_537, "the text has 65537 bytes; at most 65536 are read", id="too long"
        ),
        pytest.param("[" * 60_000, "line 1, column 34: nested more than 32 deep", id="deep lists"),
        pytest.param(
            "{a: " * 15_000, "line 1, column 133: nested more than 32 deep", id="deep mappings"
        ),
        pytest.param(
            "- " * 30_000, "line 1, column 67: nested more than 32 deep", id="deep blocks"
        ),
        pytest.param("? " * 30_000, "line 1, column 67: nested more than 32 deep", id="deep keys"),
        pytest.param(
            "a: &x {}\nb: {<<: *x}",
            'line 2, column 5: merge keys ("<<") are not supported',
            id="merge keys",
        ),
        pytest.param(
            "a: *x",
            'line 1, column 4: the alias "*x" is not known; '
            "put a text that starts with * in quotes",
            id="unknown alias",
        ),
        pytest.param(
            "a: &x [*x]", 'line 1, column 8: the alias "*x" holds itself', id="an alias in itself"
        ),
        pytest.param(
            "a: \0",
            "line 1, column 4: not valid YAML: control characters are not allowed",
            id="NUL",
        ),
        pytest.param("\ud800", "line 1, column 1: not a Unicode character", id="surrogate"),
    ],
)
def test_hostile_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_tree(text, _GO)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\t- x", "'", "%x", "a: 1\n}", "!<"])
def test_what_is_no_yaml_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(YamlError, match=r"^line \d+, column \d+: not valid YAML: .+$"):
        read_tree(text, _GO)


def test_a_billion_laughs_are_refused() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]" for i in range(1, 60)]
    with pytest.raises(YamlError, match="more than 100000 values, aliases unfolded"):
        read_tree("\n".join(lines), _GO)
