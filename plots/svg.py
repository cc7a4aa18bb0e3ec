"""A smaller SVG that shows the same: matplotlib's text without what a reader of the picture does not need.

Coordinates have two decimals (a hundredth of a point), styles that repeat are classes, ids that nothing refers to and
groups without attributes are gone. Text stays text, in the first of FAMILIES that the reader's machine has. The picture
has a title and a description, which programs read aloud to those who cannot see it.
"""

import base64
import io
import re
from xml.etree import ElementTree

from PIL import Image

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
HREF = f"{{{XLINK}}}href"
FAMILIES = "'DejaVu Sans',Arial,sans-serif"
# Of the text of a figure as matplotlib writes it: its own family alone.
FAMILY = "'DejaVu Sans'"
PNG = "data:image/png;base64,"
REFERENCE = re.compile(r"#([\w.-]+)")
# Some renderers read a weight in the shorthand as the size.
FONT = re.compile(r"font:(?:(\d+|bold) )?([\d.]+px) ([^;]+)")
LONG = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")


def compact(text: str, title: str, description: str) -> str:
    """The SVG of `text`, smaller, with a title and a description; the same texts give the same result."""
    root = ElementTree.fromstring(text)
    for style in list(root.iter(f"{{{SVG}}}style")):
        style.text = "*{stroke-linejoin:round;stroke-linecap:butt}"
    _short_ids(root)
    classes: dict[str, str] = {}
    for element in root.iter():
        _shorten(element, classes)
    _flatten(root)
    rules = "".join(f".{name}{{{rule}}}" for rule, name in classes.items())
    sheet = next(root.iter(f"{{{SVG}}}style"))
    sheet.text = f"{sheet.text}{rules}"
    root.set("role", "img")
    for place, (tag, said) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}")
        element.text = said
        root.insert(place, element)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _short_ids(root: ElementTree.Element) -> None:
    """Ids that are referred to become i0, i1, ...; the others go. Of equal ids (equal images) the first is meant."""
    used = {
        name
        for element in root.iter()
        for key, value in element.attrib.items()
        if key != "id" and len(value) < 1000
        for name in REFERENCE.findall(value)
    }
    names: dict[str, str] = {}
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own is not None and own in used and own not in names:
            names[own] = element.attrib["id"] = f"i{len(names)}"
    for element in root.iter():
        for key, value in element.attrib.items():
            if ("url(#" in value or key == HREF) and len(value) < 1000:
                element.attrib[key] = REFERENCE.sub(lambda found: f"#{names.get(found[1], found[1])}", value)


def _shorten(element: ElementTree.Element, classes: dict[str, str]) -> None:
    if not (element.text or "").strip():
        element.text = None
    element.tail = None
    for key, value in list(element.attrib.items()):
        if key == HREF and value.startswith(PNG):
            element.attrib[key] = _grey(value)
            continue
        if key == "d":
            value = re.sub(r"\s*([A-Za-z])\s*", r"\1", value.strip()).replace("\n", " ")
        elif key == "style":
            value = re.sub(r"\s*([:;,])\s*", r"\1", value.strip().rstrip(";")).replace(FAMILY, FAMILIES)
            value = FONT.sub(_font, value)
        elif key == "transform":
            value = re.sub(r"rotate\(-?0 [^)]*\)", "", value).strip()
        value = LONG.sub(lambda found: _rounded(found[0]), value)
        if key == "style":
            del element.attrib[key]
            element.attrib["class"] = classes.setdefault(value, f"s{len(classes)}")
        elif key == "transform" and not value:
            del element.attrib[key]
        else:
            element.attrib[key] = value


def _font(found: re.Match[str]) -> str:
    weight = f"font-weight:{found[1]};" if found[1] else ""
    return f"{weight}font-size:{found[2]};font-family:{found[3]}"


def _rounded(number: str) -> str:
    text = f"{float(number):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _flatten(parent: ElementTree.Element) -> None:
    """Groups without attributes give their children to `parent`; empty ones go."""
    children = []
    for child in parent:
        _flatten(child)
        if child.tag == f"{{{SVG}}}g" and not child.attrib:
            children += list(child)
        elif child.tag not in (f"{{{SVG}}}g", f"{{{SVG}}}defs") or len(child):
            children.append(child)
    parent[:] = children


def _grey(data: str) -> str:
    """An embedded picture, in one channel where it is opaque and grey."""
    picture = Image.open(io.BytesIO(base64.b64decode(re.sub(r"\s", "", data[len(PNG) :])))).convert("RGBA")
    red, green, blue, alpha = picture.split()
    opaque = alpha.getextrema() == (255, 255)
    if opaque:
        picture = red if red.tobytes() == green.tobytes() == blue.tobytes() else picture.convert("RGB")
    out = io.BytesIO()
    picture.save(out, format="PNG", optimize=True)
    return PNG + base64.b64encode(out.getvalue()).decode("ascii")
