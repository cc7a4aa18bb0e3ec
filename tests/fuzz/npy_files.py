"""Files that begin as .npy files do: right ones, and those of which one part was replaced."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

TYPES = [
    "<f4",
    "<f8",
    ">f4",
    "|u1",
    "<i2",
    "<i8",
    "|b1",
    "<c8",
    "|O",
    "<U4",
    "|V8",
    "f",
    "",
    "<M8[s]",
    "[('a', '<f4')]",
]
FITTING = st.lists(st.integers(1, 6), min_size=2, max_size=4).map(tuple)
SHAPES = st.one_of(
    st.lists(st.integers(0, 6), max_size=5).map(tuple).map(repr),
    st.sampled_from(
        [
            "(True, True)",
            "(-1, 4)",
            "(2**62, 8)",
            "(4,",
            "4",
            "None",
            "(4.0, 4)",
            "('4', 4)",
            "(4 , 4, )",
            "[4, 4]",
            "()",
        ]
    ),
    st.tuples(st.integers(-(2**65), 2**65), st.integers(-3, 3)).map(repr),
)


@st.composite
def right(draw: Any) -> bytes:
    """The bytes of a file that numpy.save wrote."""
    shape, kind = draw(FITTING), draw(st.sampled_from(["<f4", "<f8", ">f4", "|u1", "<i2", "<i8", "|b1"]))
    array = np.frombuffer(draw(st.binary(min_size=8, max_size=8)) * math.prod(shape), kind)[: math.prod(shape)]
    file = io.BytesIO()
    np.save(file, array.reshape(shape, order=draw(st.sampled_from("CF"))))
    return file.getvalue()


@st.composite
def files(draw: Any) -> bytes:
    """The bytes of a file."""
    if draw(st.integers(0, 3)) == 0:
        return draw(right())
    shape, kind = draw(SHAPES), draw(st.sampled_from(TYPES))
    order = draw(st.sampled_from(["True", "False", "0", "None", "'C'"]))
    header = f"{{'descr': {kind!r}, 'fortran_order': {order}, 'shape': {shape}, }}"
    header = draw(
        st.sampled_from(
            [header, header, header, header[:-2], header + "#", "{}", "[" * 300, "\u00e9" + header, header * 2]
        )
    )
    if draw(st.integers(0, 4)) == 0:
        place = draw(st.integers(0, len(header)))
        header = header[:place] + draw(st.text(max_size=3)) + header[place + 1 :]
    version = draw(st.sampled_from([b"\x01\x00"] * 4 + [b"\x02\x00", b"\x03\x00", b"\x00\x00", b"\xff\x01"]))
    text = (header + "\n").encode("utf-8", "surrogatepass")
    length = draw(st.sampled_from([len(text)] * 4 + [0, 1, len(text) + 1, 65535]))
    size = length.to_bytes(2 if version[0] < 2 else 4, "little")
    data = draw(st.binary(max_size=64) | st.just(bytes(144)) | st.just(bytes(288)))
    whole = b"\x93NUMPY" + version + size + text + data
    return draw(st.sampled_from([whole] * 6 + [whole[:5], whole[:9], whole[: len(whole) // 2], b"", data]))
