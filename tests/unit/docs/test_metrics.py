"""docs/metrics.md says what the services export."""

import re
from pathlib import Path

import pytest

from tests.support.documents.metrics_page import format_page, metrics_of

_PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_page_is_what_the_code_says() -> None:
    assert _PAGE.read_text() == format_page(), "write it anew: make reference"


@pytest.mark.parametrize("service", ["webhook", "extender"])
def test_metrics_are_named_by_their_unit_and_explained_in_a_sentence(service: str) -> None:
    for metric in metrics_of(service):
        assert re.fullmatch("cellgate(_[a-z]+)+", metric.name)
        assert metric.kind != "histogram" or metric.name.endswith("_seconds")
        assert re.fullmatch(r"[A-Z0-9][^\n|]{10,240}\.", metric.help), metric
