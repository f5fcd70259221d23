"""The policy reference is what the models say."""

from pathlib import Path

from policy.parser import DocumentKind
from policy.reference import format_reference

WRITTEN = Path(__file__).parents[3] / "docs" / "policy-reference.md"


def test_the_written_reference_is_that_of_the_models() -> None:
    assert WRITTEN.read_text() == format_reference(), "write it anew: make reference"


def test_every_kind_is_there_and_every_field_has_a_meaning() -> None:
    text = format_reference()
    for kind in DocumentKind:
        assert f"## {kind}\n" in text
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    assert [row for row in rows if row.endswith("|  |")] == []
