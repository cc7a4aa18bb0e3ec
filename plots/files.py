"""A drawing as files: SVG with text as text and with the values of its points, PDF and PNG. The same drawing gives the same bytes."""

import io
from typing import Any

from plots import hover, style
from plots.drawing import Drawing
from plots.svg import compact

SVG_IMAGE_DPI = 144  # of photographs in an SVG; everything else there is lines and text
# No dates and no version stamps: they would change the bytes without changing the figure.
FORMATS: dict[str, dict[str, Any]] = {
    "svg": {"dpi": SVG_IMAGE_DPI, "metadata": {"Date": None, "Creator": None, "Format": None, "Type": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
    "png": {"metadata": {"Software": None}},
}


def encode(drawing: Drawing) -> dict[str, bytes]:
    files = {}
    for extension, options in FORMATS.items():
        data = io.BytesIO()
        with style.context(drawing.name):
            drawing.figure.savefig(data, format=extension, **options)
        files[extension] = data.getvalue()
    with style.context(drawing.name):
        points = hover.points(drawing.figure)
    svg = compact(files["svg"].decode("utf-8"), drawing.title, drawing.alt)
    files["svg"] = hover.layer(svg, points).encode("utf-8")
    return files
