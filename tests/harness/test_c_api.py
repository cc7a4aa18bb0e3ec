"""What the C API does with requests, pointers and handles that are wrong: one line, status 1, and the process goes on."""

import ctypes
import json

import numpy as np
import pytest
from built_library import built_library
from c_api import COMPUTED, GIVE_JSON, GOOD, JSON_BYTES, PARAMETERS, Api, text_of
from scipy import signal

from xcorr.paths import build_directory


@pytest.fixture(scope="module")
def api():
    built_library()
    return Api(str(build_directory() / "libxcorr.so"))


@pytest.fixture
def session(api):
    answer, handle = api.open(COMPUTED)
    assert answer.status == 0 and handle
    yield handle
    api.call("close", handle)


def arrays():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 4, 5)).astype("f4"), rng.normal(size=(3, 6, 5)).astype("f4")
    return left, right, np.zeros((6, 9, 9), "f4")


def refused(answer, *words):
    assert answer.status == 1, answer
    assert answer.error and "\n" not in answer.error
    for word in words:
        assert word in answer.error


WRONG = [
    (b"", "JSON"),
    (b"{", "JSON"),
    (b"\xff\xfe", "JSON"),
    (b'{"form": "n-to-m"\n', "JSON"),
    (b"[" * 100_000, "JSON"),
    (b"[]", "no object"),
    (b"null", "no object"),
    (b"7", "no object"),
    ({}, "form is missing"),
    ({**GOOD, "left": None}, "left is null; give [rows, cols]"),
    ({**GOOD, "left": [4, 4, 4]}, "left is [4,4,4]; give [rows, cols]"),
    ({**GOOD, "left": [4]}, "left is [4]"),
    ({**GOOD, "left": [4.5, 4]}, "left is 4.5; give a whole number"),
    ({**GOOD, "left": [4.0, 4]}, "left is 4.0"),
    ({**GOOD, "left": [[4, 4], 4]}, "left"),
    ({**GOOD, "left": ["4", 4]}, 'left is "4"'),
    ({**GOOD, "left": [True, 4]}, "left is true"),
    ({**GOOD, "left": [2**63, 4]}, f"left is {2**63}"),
    ({**GOOD, "left": [2**64, 4]}, "left is "),
    ({**GOOD, "left": [-1, 4]}, "left rows = -1"),
    ({**GOOD, "left": [2**40, 2**40]}, "left rows"),
    ({**GOOD, "lefts": 2.0}, "lefts is 2.0"),
    ({**GOOD, "rights": None}, "rights is null"),
    ({**GOOD, "form": 3}, "form is 3; give a text"),
    ({**GOOD, "form": "a\nb"}, "form 'a b': unknown"),
    ({**GOOD, "window": []}, "window is []; give a text"),
    ({**GOOD, "score": 1}, "score is 1; give a text"),
    ({**GOOD, "score": "best"}, "score"),
    ({**GOOD, "colour": "red"}, '"colour" is an unknown key; the keys are boundary'),
    ({**GOOD, "Form": "n-to-m"}, '"Form" is an unknown key'),
    (json.dumps(GOOD)[:-1].encode() + b', "lefts": 3}', '"lefts" is given twice'),
]


@pytest.mark.parametrize("request_, words", WRONG, ids=lambda one: str(one)[:40])
@pytest.mark.parametrize("name", ["describe", "supports", "open", "open_device", "reference"])
def test_a_wrong_request_is_refused_in_one_line(api, name, request_, words):
    if name in ("supports", "open", "open_device") and isinstance(request_, dict):
        request_ = {**request_, "variant": "cpu_definition"}
    text = text_of(request_)
    if name in ("open", "open_device"):
        answer, handle = api.open(text, name)
        assert handle is None
    elif name == "reference":
        answer = api.call(name, text, *(array.ctypes.data for array in (np.zeros(1),) * 3))
    else:
        answer = api.call(name, text)
    refused(answer, words)


@pytest.mark.parametrize("key", ["device", "precision", "params", "variant"])
@pytest.mark.parametrize(
    "value", [None, 1, 1.5, True, [], {}, ["cpu"], -1, 2**64, "", "\0", "cpu\0", "c\npu", "é", "cuda:-1"]
)
def test_a_setting_of_another_type_is_refused_and_destroys_nothing(api, key, value):
    """Values of `device` that are no text destroyed the parsed parameters twice, which ended the process."""
    if (key, value) == ("params", ""):
        return  # the first point
    for _ in range(3):
        answer, handle = api.open({**COMPUTED, key: value})
        assert handle is None
        refused(answer)
        refused(api.call("supports", text_of({**COMPUTED, key: value})))


@pytest.mark.parametrize("value", [None, 1, [], "fast"])
def test_a_reference_by_an_unknown_method_is_refused(api, value):
    data = np.zeros(4096)
    refused(api.call("reference", text_of({**GOOD, "method": value}), *[data.ctypes.data] * 3), "method")


def test_keys_of_other_functions_are_unknown(api):
    refused(api.call("describe", text_of(COMPUTED)), '"variant" is an unknown key')
    refused(api.call("supports", text_of({**COMPUTED, "method": "fft"})), '"method" is an unknown key')


def good_arguments(name, session, kept):
    """Arguments of a call that succeeds. `kept` holds what they point to."""
    left, right, out = arrays()
    double = [one.astype("f8") for one in (left, right, out)]
    left_data, right_data, out_data = (one.ctypes.data for one in double)
    handle, buffer = ctypes.c_void_p(), ctypes.create_string_buffer(JSON_BYTES)
    struct = (ctypes.c_void_p * 11)(*(one.ctypes.data for one in (left, right, out)))
    kept += [left, right, out, double, handle, buffer, struct]
    json_buffer = (buffer, JSON_BYTES)
    return {
        "list": json_buffer,
        "machine": (b"cpu", *json_buffer),
        "describe": (text_of(GOOD), *json_buffer),
        "supports": (text_of(COMPUTED), *json_buffer),
        "open": (text_of(COMPUTED), ctypes.addressof(handle)),
        "compute": (session, *(one.ctypes.data for one in (left, right, out))),
        "compute_with": (session, ctypes.addressof(struct)),
        "open_device": (text_of(COMPUTED), ctypes.addressof(handle)),
        "enqueue": (session, ctypes.addressof(struct), None),
        "check": (session, None, None),
        "close": (session,),
        "reference": (text_of(GOOD), left_data, right_data, out_data),
        "reference_masked": (text_of(GOOD), left_data, right_data, None, None, out_data),
    }[name]


@pytest.fixture
def device_session(api):
    """The CPU is a device too, whose memory the host reads."""
    answer, handle = api.open(COMPUTED, "open_device")
    assert answer.status == 0 and handle
    yield handle
    api.call("close", handle)


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_pointer_may_be_null(api, session, device_session, name):
    kept = []
    arguments = good_arguments(name, device_session if name in ("enqueue", "check") else session, kept)
    if name != "close":
        assert api.call(name, *arguments).status == 0
    for place, given in enumerate(arguments):
        if given is None or (isinstance(given, int) and given == JSON_BYTES):
            continue
        nulled = [None if i == place else one for i, one in enumerate(arguments)]
        refused(api.call(name, *nulled))
        assert api.without_error(name, *nulled) == 1


@pytest.mark.parametrize("name", ["compute", "compute_with"])
@pytest.mark.parametrize("missing", range(3))
def test_a_null_array_is_named(api, session, name, missing):
    kept = []
    good = good_arguments("compute", session, kept)[1:]
    pointers = [None if i == missing else one for i, one in enumerate(good)]
    struct = (ctypes.c_void_p * 11)(*pointers)
    given = pointers if name == "compute" else [ctypes.addressof(struct)]
    refused(api.call(name, session, *given), ("left", "right", "out")[missing] + ": null")


def test_arrays_of_a_device_and_of_the_host_have_sessions_of_their_own(api, session, device_session):
    kept = []
    refused(api.call("compute", *good_arguments("compute", device_session, kept)), "session: is for arrays of a device")
    for name in ("enqueue", "check"):
        refused(api.call(name, *good_arguments(name, session, kept)), "session: is for arrays of the host")


def test_an_enqueued_call_reads_arrays_as_they_lie(api):
    """Shorts of the left side, every second one, and a right side that starts anywhere."""
    layout = {"left_type": "int16", "left_strides": [40, 10, 2], "right_aligned": "no"}
    answer, handle = api.open({**COMPUTED, **layout}, "open_device")
    assert answer.status == 0, answer.error
    left, right, out = arrays()
    shorts = np.arange(80, dtype="i2").reshape(2, 4, 10)
    moved = np.zeros(right.size + 1, "f4")[1:].reshape(right.shape)
    moved[...] = right
    struct = (ctypes.c_void_p * 11)(*(one.ctypes.data for one in (shorts, moved, out)))
    assert api.call("enqueue", handle, ctypes.addressof(struct), None).status == 0
    pairs = [[signal.correlate2d(b, a[:, ::2].astype("f4")) for b in right] for a in shorts]
    np.testing.assert_allclose(out.reshape(2, 3, 9, 9), pairs, rtol=1e-4, atol=1e-2)
    assert api.call("close", handle).status == 0


@pytest.mark.parametrize(
    "layout, words",
    [
        ({"left_type": "complex64"}, "left_type 'complex64': unknown; use uint8, int8"),
        ({"left_type": 4}, "left_type is 4; give a text"),
        ({"right_type": "float64"}, "right: precision 'fp32' would round numbers of type float64"),
        ({"left_strides": [20, 5]}, "left_strides is [20,5]; give [matrix, row, column] in elements"),
        ({"left_strides": [20, 5, 0.5]}, "left_strides is 0.5; give a whole number"),
        ({"left_aligned": "maybe"}, "left_aligned 'maybe': unknown; use yes or no"),
        ({"left_pitch": 5}, '"left_pitch" is an unknown key'),
    ],
)
def test_a_wrong_layout_is_refused_in_one_line(api, layout, words):
    answer, handle = api.open({**COMPUTED, **layout}, "open_device")
    assert handle is None
    refused(answer, words)
    assert api.open({**COMPUTED, **layout})[0].error.find("is an unknown key") > 0, "the host has no layouts"


@pytest.mark.parametrize("name", GIVE_JSON)
def test_a_small_buffer_is_told_the_size(api, name):
    kept = []
    *before, _, _ = good_arguments(name, None, kept)
    for capacity in (0, 1, 4, 11):  # {"reason":""} has 13
        buffer = ctypes.create_string_buffer(b"x" * 64, 64)
        answer = api.call(name, *before, buffer, capacity)
        assert answer.status == 2
        assert buffer.raw[capacity:] == b"x" * (64 - capacity), "nothing is written behind the capacity"
    assert int(buffer.value) > 11


def test_a_session_is_closed_once(api):
    _, first = api.open(COMPUTED)
    _, second = api.open(COMPUTED)
    assert first != second
    assert api.call("close", first).status == 0
    refused(api.call("close", first), "session: not open")
    _, third = api.open(COMPUTED)
    assert third not in (first, second), "or a handle that was closed would mean another session"
    kept = []
    refused(api.call("compute", *good_arguments("compute", first, kept)), "session: not open")
    assert api.call("compute", *good_arguments("compute", second, kept)).status == 0
    assert [api.call("close", one).status for one in (second, third)] == [0, 0]


@pytest.mark.parametrize("handle", [1 << 40, 2**64 - 1, 4096])
def test_a_handle_that_nobody_gave_is_refused(api, handle):
    kept = []
    refused(api.call("close", handle), "session: not open")
    refused(api.call("compute", *good_arguments("compute", handle, kept)), "session: not open")


def test_a_long_message_ends_between_characters(api):
    text = text_of({**GOOD, "form": "é" * 5000})
    answer = api.call("describe", text)  # decodes what was written
    refused(answer, "form 'é")
