"""Requests of the C API as Hypothesis makes them: right ones, right ones with one part replaced, and any bytes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

# Small, so that an example that is computed takes a moment.
SIDES = st.integers(1, 9)
COUNTS = st.integers(1, 4)
SETTINGS = {
    "variant": st.sampled_from(["cpu_definition", "cpu_fft", "cpu_row_streaming"]),
    "params": st.sampled_from(["", "threads=1"]),
    "precision": st.sampled_from(["fp32", "fp64"]),
}
FIELDS = {
    "boundary": ["zero", "circular"],
    "score": ["product", "covariance", "ncc", "ncc:0", "zncc", "zncc:0.9", "phase:0", "phase:0.5"],
    "masks": ["none", "left", "right", "both"],
    "result": [
        "surface",
        "peak",
        "peak:gaussian",
        "peak:upsample=4",
        "peaks:3",
        "above:0.5:20",
        "above:8mad:9",
        "above:0.5:20:3",
        "sum",
    ],
    "same": ["no", "yes"],
    "views": ["dense", "windows", "channels"],
}
WINDOWS = st.one_of(
    st.sampled_from(["full", "valid"]),
    st.tuples(*[st.integers(-9, 9)] * 4).map(lambda s: f"sy:{s[0]}..{s[1]},sx:{s[2]}..{s[3]}"),
)
# What stands where a value is expected.
ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=20),
        st.sampled_from(
            ["full", "cpu", "cuda", "cuda:0", "sy:0..0", "zncc:nan", "above:1e309:1", "peaks:99999999999", "phase:1"]
        ),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def right(draw: Any) -> dict[str, Any]:
    """A request whose parts are each possible; together they may not be."""
    form = draw(st.sampled_from(["one-to-one", "one-to-many", "n-to-mn", "n-to-m"]))
    lefts = 1 if form.startswith("one") else draw(COUNTS)
    rights = 1 if form == "one-to-one" else draw(COUNTS) * (lefts if form == "n-to-mn" else 1)
    left = [draw(SIDES), draw(SIDES)]
    same_shape = draw(st.booleans())
    request = {
        "form": form,
        "left": left,
        "right": left if same_shape else [draw(SIDES), draw(SIDES)],
        "lefts": lefts,
        "rights": rights,
        "window": draw(WINDOWS),
    }
    for name in draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=3, unique=True)):
        request[name] = draw(st.sampled_from(FIELDS[name]))
    return request


@st.composite
def computed(draw: Any) -> dict[str, Any]:
    """`right` with a variant."""
    return {**draw(right()), **{name: draw(values) for name, values in SETTINGS.items()}, "device": "cpu"}


@st.composite
def wrong(draw: Any) -> bytes:
    """The text of a request with one part replaced, added, left out or cut; or any bytes."""
    request = draw(computed() | right())
    how = draw(st.sampled_from(["value", "key", "missing", "bytes", "cut", "any"]))
    if how == "value":
        request[draw(st.sampled_from(sorted(request)))] = draw(ANYTHING)
    elif how == "key":
        request[draw(st.text(max_size=12))] = draw(ANYTHING)
    elif how == "missing":
        del request[draw(st.sampled_from(sorted(request)))]
    text = json.dumps(request).encode()
    if how == "bytes":
        place = draw(st.integers(0, len(text) - 1))
        text = text[:place] + draw(st.binary(max_size=3)) + text[place + 1 :]
    elif how == "cut":
        text = text[: draw(st.integers(0, len(text)))]
    elif how == "any":
        text = draw(st.binary(max_size=60))
    return text.replace(b"\0", b" ")
