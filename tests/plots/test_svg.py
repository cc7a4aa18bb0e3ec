"""The smaller SVG shows the same: coordinates, text, styles, references, pictures."""

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from tree import ROOT, TREE

from plots import style, svg
from plots.drawing import Drawing
from plots.files import encode

NAMES = {"s": "http://www.w3.org/2000/svg"}
HREF = "{http://www.w3.org/1999/xlink}href"


def figure():
    with style.context("t"):
        made = Figure(figsize=(3, 2))
        one, two = made.subplots(1, 2)
        one.plot([1, 2, 3], [1.23456, 2, 3], marker="o", label="a < b")
        one.legend()
        one.set_title("0.123456 µs")
        two.imshow(np.linspace(0, 1, 30).reshape(5, 6), cmap="gray")
    return made


def plain():
    out = io.StringIO()
    with style.context("t"):
        figure().savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def compact(text):
    return svg.compact(text, "A & B", "Two panels < three")


def test_text_is_text_and_has_families_to_fall_back_to():
    root = ElementTree.fromstring(compact(plain()))
    texts = {text.text for text in root.iterfind(".//s:text", NAMES)}
    assert {"a < b", "0.123456 µs"} <= texts, "letters and digits stay as they are"
    sheet = root.find(".//s:style", NAMES).text
    assert (
        sheet.count("font-size:") == sheet.count("font-family:'DejaVu Sans',Arial,sans-serif") > 1
        and "font:" not in sheet
    )


def test_coordinates_have_two_decimals_and_are_those_of_matplotlib():
    def numbers(text):
        paths = re.findall(r'<path[^>]* d="([^"]*)"|<path d="([^"]*)"', text)
        return [float(n) for pair in paths for n in re.findall(r"-?\d+\.?\d*", "".join(pair))]

    before, after = plain(), compact(plain())
    assert not re.search(r'(?: d| x| y|transform)="[^"]*\.\d{3}', after)
    kept = [n for n in numbers(after)]
    assert len(kept) > 50
    np.testing.assert_allclose(kept, numbers(before), atol=0.0051)


def test_references_resolve_and_nothing_else_has_an_id():
    root = ElementTree.fromstring(compact(plain()))
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    used = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            if not value.startswith("data:"):
                used |= set(re.findall(r"url\(#([^)]+)\)", value)) | ({value[1:]} if key == HREF else set())
    used |= set(re.findall(r"url\(#([^)]+)\)", root.find(".//s:style", NAMES).text))
    assert len(ids) == len(set(ids)) and set(ids) == used and len(ids) >= 3
    classes = {element.attrib["class"] for element in root.iter() if "class" in element.attrib}
    assert classes == set(re.findall(r"\.(s\d+)\{", root.find(".//s:style", NAMES).text))


def test_a_grey_picture_has_one_channel_and_the_same_pixels():
    def pictures(text):
        found = [one.attrib[HREF] for one in ElementTree.fromstring(text).iterfind(".//s:image", NAMES)]
        return [Image.open(io.BytesIO(base64.b64decode(one.partition(",")[2]))) for one in found]

    (before,), (after,) = pictures(plain()), pictures(compact(plain()))
    assert after.mode == "L" and after.size == before.size
    assert np.array_equal(np.asarray(after), np.asarray(before.convert("RGBA"))[..., 0])


def test_it_is_at_most_half_as_large_and_the_same_each_time():
    drawing = Drawing("t", "T", "c", "a", figure())
    again = Drawing("t", "T", "c", "a", figure())
    assert encode(drawing) == encode(again)
    assert compact(plain()) == compact(plain()) and len(compact(plain())) < 0.5 * len(plain())


def test_the_picture_has_a_title_and_a_description():
    root = ElementTree.fromstring(compact(plain()))
    assert root.attrib["role"] == "img"
    assert [(one.tag, one.text) for one in root[:2]] == [
        (f"{{{NAMES['s']}}}title", "A & B"),
        (f"{{{NAMES['s']}}}desc", "Two panels < three"),
    ]


COMMITTED = [path for path in TREE if path.match("results/published/*/figures/*.svg")]
# Words, spaces, digits: a description that is a name says nothing.
SENTENCE = re.compile(r"\w+ \w+ \w+")
SMALLEST_PX = 8.0


def smallest_text(root):
    """Size of the smallest text in pixels of a screen, 96 an inch, where the picture has its natural size."""
    width, unit = float(root.attrib["width"].removesuffix("pt")), float(root.attrib["viewBox"].split()[2])
    assert not [one for one in root.iter() if "font-size" in one.attrib.get("style", "") + " ".join(one.attrib)]
    sizes = re.findall(r"font-size:([\d.]+)px", root.find(".//s:style", NAMES).text)
    return min((float(size) * width / unit * 96 / 72 for size in sizes), default=SMALLEST_PX)


def test_sets_have_figures():
    assert len(COMMITTED) > 50


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parts[2]}/{path.stem}")
def test_a_committed_figure_can_be_read(path):
    root = ElementTree.fromstring((ROOT / path).read_text(encoding="utf-8"))
    assert root.attrib.get("role") == "img"
    title, description = root.findtext("s:title", "", NAMES), root.findtext("s:desc", "", NAMES)
    assert title.strip() and SENTENCE.search(description), "scripts/replot.sh writes them"
    assert smallest_text(root) >= SMALLEST_PX


def test_text_that_is_too_small_is_found():
    with style.context("t"):
        made = figure()
        made.text(0.5, 0.5, "tiny", fontsize=style.SMALLEST - 0.1)
        out = io.StringIO()
        made.savefig(out, format="svg", metadata={"Date": None})
    assert smallest_text(ElementTree.fromstring(compact(out.getvalue()))) < SMALLEST_PX
    assert smallest_text(ElementTree.fromstring(compact(plain()))) >= SMALLEST_PX
