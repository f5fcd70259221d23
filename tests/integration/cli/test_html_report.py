"""The HTML reports in a real browser."""

from pathlib import Path

import pytest

from cli.tune.html import format_tuning_html
from cli.whatif.html.capacity import format_capacity_html
from cli.whatif.html.report import format_html
from tests.support.browser.chromium import DESK_DARK, DESK_LIGHT, PAPER, PHONE, chromium, look_at
from tests.support.whatif.capacity import a_capacity_answer
from tests.support.whatif.comparisons import HOSTILE, Shape, a_comparison, an_empty_comparison
from tests.support.whatif.tuning import a_tuning_result

_HOSTILE = a_comparison(Shape(prefix=HOSTILE, vcs=4, groups=2, points=30, changes=13))
_LARGE = a_comparison(Shape(vcs=200, wait=9e5, points=2000, more_leaf_cells=512))
_CASES = {
    "hostile names": (format_html(_HOSTILE), (DESK_LIGHT, DESK_DARK, PHONE, PAPER)),
    "200 VCs": (format_html(_LARGE), (PAPER,)),
    "empty": (format_html(an_empty_comparison()), (DESK_DARK,)),
    "tuning": (format_tuning_html(a_tuning_result(prefix=HOSTILE)), (DESK_DARK, PHONE)),
    "capacity": (format_capacity_html(a_capacity_answer()), (DESK_LIGHT, PHONE)),
}


@pytest.mark.parametrize("name", _CASES)
async def test_a_browser_and_axe_find_nothing_wrong_with_the_report(
    name: str, tmp_path: Path
) -> None:
    report, looks = _CASES[name]
    file = tmp_path / "report.html"
    file.write_text(report, encoding="utf-8")
    async with chromium() as browser:
        for look in looks:
            seen = await look_at(browser, file, look)
            assert seen.problems == [], look
            assert [url for url in seen.requests if not url.startswith("data:")] == [file.as_uri()]
            window, page = seen.widths
            assert page <= window, look


async def test_a_page_that_loads_runs_or_hides_something_is_noticed(tmp_path: Path) -> None:
    """Otherwise the test above might look at nothing."""
    page = format_html(an_empty_comparison())
    bad = '<p hidden><img src="http://127.0.0.1:9/x"><script>alert(1)</script></p><p>a</p>'
    file = tmp_path / "report.html"
    file.write_text(page.replace("</main>", f"{bad}<img src='data:,'><hr width=2000></main>"))
    async with chromium() as browser:
        seen = await look_at(browser, file, PHONE)
    told = "\n".join(seen.problems)
    assert "img-src" in told
    assert "script-src" in told
    assert "axe: image-alt" in told
    assert seen.widths[1] > seen.widths[0]
