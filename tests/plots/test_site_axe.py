"""What axe-core finds wrong with the pages of the report, wide and narrow: nothing serious."""

from pathlib import Path

import axe
import pytest
import report_site
from report_site import REPORT, browse, in_frames, needs_chromium, probe, probed

WIDTHS = (400, 1280)
GRAVE = ("serious", "critical")


def grave(page: Path, folder: Path, before: str = "") -> list[tuple[int, list]]:
    """What axe-core finds of grave impact: (width, what). Collapsed lists are opened, since axe looks at what is seen. `before`: a
    script that changes the page first."""
    run = f"""addEventListener('load', async () => {{
    {before}
    document.querySelectorAll('details').forEach((one) => {{ one.open = true; }});
    const {{ violations, passes }} = await axe.run(document, {{ resultTypes: ['violations'] }});
    const found = violations.map((one) => [one.impact, one.id, one.nodes.length, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]);
    parent.postMessage([document.documentElement.clientWidth, passes.length, found], '*'); }});"""
    copy = probed(page, folder, run, axe.script().as_uri())
    dom, _ = browse(in_frames(copy, WIDTHS), folder, 1400)
    found = probe(dom)
    assert sorted(one[0] for one in found) == pytest.approx(list(WIDTHS), abs=20)
    assert all(passes > 10 for _, passes, _ in found), "axe looked at nothing"
    return [(width, one) for width, _, violations in found for one in violations if one[0] in GRAVE]


@needs_chromium
@pytest.mark.parametrize("page", report_site.pages(), ids=lambda page: page.stem)
def test_axe_finds_nothing_serious(page, tmp_path):
    assert grave(page, tmp_path) == []


@needs_chromium
def test_axe_finds_a_picture_without_words_at_each_width(tmp_path):
    planted = "document.querySelector('main').append(document.createElement('img'));"
    found = grave(REPORT / "accuracy.html", tmp_path, planted)
    assert [one[1] for _, one in found] == ["image-alt"] * len(WIDTHS)
