"""The smaller SVG shows the same: coordinates, text, styles, references, pictures."""

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from plots import style
from plots.drawing import Drawing
from plots.files import encode
from plots.svg import compact

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
