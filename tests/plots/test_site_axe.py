"""What axe-core finds wrong with the pages of the report, wide and narrow: nothing serious."""

import axe
import pytest
import report_site
from report_site import browse, in_frames, needs_chromium, probe, probed

WIDTHS = (400, 1280)
GRAVE = ("serious", "critical")


@needs_chromium
@pytest.mark.parametrize("page", report_site.pages(), ids=lambda page: page.stem)
def test_axe_finds_nothing_serious(page, tmp_path):
    """Collapsed lists are opened, since axe looks at what is seen."""
    run = """addEventListener('load', async () => {
    document.querySelectorAll('details').forEach((one) => { one.open = true; });
    const { violations, passes } = await axe.run(document, { resultTypes: ['violations'] });
    const found = violations.map((one) => [one.impact, one.id, one.nodes.length, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]);
    parent.postMessage([document.documentElement.clientWidth, passes.length, found], '*'); });"""
    copy = probed(page, tmp_path, run, axe.script().as_uri())
    dom, _ = browse(in_frames(copy, WIDTHS), tmp_path, 1400)
    found = probe(dom)
    assert sorted(one[0] for one in found) == pytest.approx(list(WIDTHS), abs=20)
    assert all(passes > 10 for _, passes, _ in found), "axe looked at nothing"
    assert not [(width, one) for width, _, violations in found for one in violations if one[0] in GRAVE]
