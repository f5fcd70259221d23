"""Fields of a YAML mapping, read as Go reads them for HiveD."""

import pytest

from kube.hived.yaml_values import YamlFields, open_yaml
from kube.values.texts import FREE_TEXT
from policy.errors import RequestError


def _fields(text: str) -> YamlFields:
    return open_yaml(text, path="doc", max_bytes=10_000)


def _told(fields: YamlFields) -> list[str]:
    return [str(problem) for problem in fields.problems.found]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8", 8),
        ("-1", -1),
        ("+8", 8),
        ("1_000", 1_000),
        ("0x10", 16),
        ("0b11", 3),
        ("0o17", 15),
        ("017", 15),
        ("0", 0),
        ("~", 0),
        ("null", 0),
        ("", 0),
    ],
)
def test_numbers(text: str, number: int) -> None:
    fields = _fields(f"n: {text}")
    assert fields.count("n", minimum=-9, maximum=2_000, below="") == number
    assert _told(fields) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x", '"x"'),
        ("'8'", '"8"'),
        ("8.5", '"8.5"'),
        ("08", '"08"'),
        ("1:30", '"1:30"'),
        ("٣", '"٣"'),
        ("9999", "9999"),
        ("1" * 30, '"' + "1" * 30 + '"'),
        ("[8]", "a list"),
        ("{}", "a mapping"),
        (".nan", '".nan"'),
    ],
)
def test_what_is_no_number_is_noted(text: str, shown: str) -> None:
    fields = _fields(f"n: {text}")
    assert fields.count("n", minimum=0, maximum=2_000, below="") is None
    assert _told(fields) == [f"doc.n: must be a whole number from 0 to 2000, not {shown}"]


@pytest.mark.parametrize(
    ("text", "flag"),
    [("true", True), ("yes", True), ("On", True), ("y", True), ("off", False), ("~", False)],
)
def test_flags(text: str, flag: bool) -> None:
    assert _fields(f"f: {text}").flag("f", default=not flag) is flag


def test_a_missing_flag_has_its_default() -> None:
    assert _fields("{}").flag("f", default=True) is True


def test_any_scalar_is_a_text_as_it_was_written() -> None:
    fields = _fields("a: 010\nb: 2026-01-01\nc: true\nd: ~\ne: '~'\n")
    assert [fields.text(key, FREE_TEXT) for key in "abcdex"] == [
        "010",
        "2026-01-01",
        "true",
        "",
        "~",
        "",
    ]


def test_a_text_is_a_plain_string() -> None:
    assert type(_fields("a: b").text("a", FREE_TEXT)) is str


@pytest.mark.parametrize("text", ["", "~", "# nothing"])
def test_a_text_without_a_mapping_has_no_fields(text: str) -> None:
    assert _fields(text).values == {}
    assert _told(_fields(text)) == []


def test_a_text_that_is_no_yaml_is_refused_at_its_path() -> None:
    with pytest.raises(RequestError) as caught:
        _fields("[")
    assert str(caught.value).startswith("doc: line 2, column 1: not valid YAML: ")


def test_lists() -> None:
    fields = _fields("cells: [1, 0]\ntypes: [NODE, ~, 8]\nparts: [{n: 1}, ~]\nnone: ~\n")
    assert fields.numbers("cells", minimum=0, maximum=9) == (1, 0)
    assert fields.words("types", FREE_TEXT) == ("NODE", "", "8")
    assert [part.count("n", minimum=0, maximum=9, below="") for part in fields.items("parts")] == [
        1,
        0,
    ]
    assert fields.items("none") == []
    assert _told(fields) == []


def test_wrong_types_are_noted_with_their_paths() -> None:
    fields = _fields(
        "text: [x]\nlong: " + "x" * 2_000 + "\nflag: 'true'\ncells: [0, x, [1], 10]\n"
        "list: x\nparts: [1]\nwords: [[a]]\ngroup: x\n"
    )
    fields.text("text", FREE_TEXT)
    fields.text("long", FREE_TEXT)
    fields.required_text("name", FREE_TEXT, words="Name is empty")
    fields.flag("flag")
    assert fields.numbers("cells", minimum=0, maximum=9) is None
    fields.items("list")
    fields.items("parts")
    fields.words("words", FREE_TEXT)
    fields.fields("group")
    assert _told(fields) == [
        "doc.text: must be a string, not a list",
        "doc.long: must be at most 1024 characters, not 2000",
        "doc.name: Name is empty",
        'doc.flag: must be true or false, not "true"',
        'doc.cells[1]: must be a whole number from 0 to 9, not "x"',
        "doc.cells[2]: must be a whole number from 0 to 9, not a list",
        'doc.cells[3]: must be a whole number from 0 to 9, not "10"',
        'doc.list: must be a list, not "x"',
        'doc.parts[0]: must be a mapping, not "1"',
        "doc.words[0]: must be a string, not a list",
        'doc.group: must be a mapping, not "x"',
    ]
