"""Files that the commands read: right values of every format, and one line for what is none."""

import os
import struct
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from scipy_library import ScipyLibrary, refused

from xcorr.commands import correlate, formats, matrices, memory
from xcorr.errors import UserError

GREY = np.random.default_rng(1).integers(0, 2**16, (40, 50)).astype(np.uint16)
EIGHT = (GREY >> 8).astype(np.uint8)
REAL = np.random.default_rng(2).normal(size=(40, 50)).astype(np.float32)
WHOLE = np.random.default_rng(3).integers(-(2**31), 2**31, (40, 50)).astype(np.int32)


def read(path):
    return matrices.read_matrices(Path(path), matrices.read_header(Path(path)))


def told(path) -> str:
    with pytest.raises(UserError) as caught:
        read(path)
    assert "\n" not in str(caught.value) and str(path).partition(":")[0] in str(caught.value)
    return str(caught.value)


IMAGES = {"a.png": EIGHT, "a.PNG": GREY, "bits.png": GREY > 30000}
IMAGES |= {"a.tif": EIGHT, "deep.tiff": GREY, "real.tif": REAL, "signed.tif": WHOLE}


@pytest.mark.parametrize("name", IMAGES)
def test_images_keep_their_values(tmp_path, name):
    array = IMAGES[name]
    Image.fromarray(array).save(tmp_path / name)
    found = read(tmp_path / name)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def tiff(path, pixels: np.ndarray, sample_format: int) -> None:
    """A TIFF that Pillow cannot write: one strip, by its tags."""
    rows, cols = pixels.shape
    bits, data = 8 * pixels.dtype.itemsize, pixels.tobytes()
    tags = [(256, cols), (257, rows), (258, bits), (259, 1), (262, 1), (273, 8), (277, 1), (278, rows)]
    tags += [(279, len(data)), (339, sample_format)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    head = struct.pack("<4sI", b"II*\0", 8 + len(data))
    path.write_bytes(head + data + struct.pack("<H", len(tags)) + entries + bytes(4))


def test_a_tiff_of_32_bits_without_sign_keeps_them(tmp_path):
    array = np.array([[0, 1, 2**31], [2**32 - 1, 7, 2**31 - 1]], np.uint32)
    tiff(tmp_path / "a.tif", array, 1)
    np.testing.assert_array_equal(read(tmp_path / "a.tif"), array)


@pytest.mark.parametrize(("array", "kind"), [(REAL.astype(np.float64), 3), (EIGHT.astype(np.uint64), 1)])
def test_a_tiff_of_64_bits_is_read_as_it_is_or_not_at_all(tmp_path, array, kind):
    tiff(tmp_path / "a.tif", array, kind)
    assert ".npy" in told(tmp_path / "a.tif")


def test_a_tiff_of_8_bits_with_sign_is_read_as_it_is_or_not_at_all(tmp_path):
    array = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    tiff(tmp_path / "a.tif", array, 2)
    try:
        np.testing.assert_array_equal(read(tmp_path / "a.tif"), array)
    except UserError as error:
        assert ".npy" in str(error)


def test_a_jpeg_is_read_as_pillow_reads_it(tmp_path):
    Image.fromarray(EIGHT).save(tmp_path / "a.jpg", quality=90)
    np.testing.assert_array_equal(read(tmp_path / "a.jpg"), np.asarray(Image.open(tmp_path / "a.jpg")))


def test_pages_of_a_tiff_are_a_stack(tmp_path):
    pages = [Image.fromarray(EIGHT // (1 + k)) for k in range(3)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    np.testing.assert_array_equal(read(tmp_path / "a.tif"), [EIGHT, EIGHT // 2, EIGHT // 3])
    pages[0].save(tmp_path / "b.tif", save_all=True, append_images=[pages[1].crop((0, 0, 8, 8))])
    assert "several sizes or types" in told(tmp_path / "b.tif")


COLOURS = {".png": "RGB RGBA LA P", ".tif": "RGB RGBA LA P CMYK", ".jpg": "RGB CMYK"}


@pytest.mark.parametrize(
    ("suffix", "mode"), [(suffix, mode) for suffix, modes in COLOURS.items() for mode in modes.split()]
)
def test_colours_are_refused_with_the_command_that_converts(tmp_path, monkeypatch, suffix, mode):
    monkeypatch.chdir(tmp_path)
    name = f"colour{suffix}"
    Image.fromarray(EIGHT).convert("L" if mode == "LA" else "RGB").convert(mode).save(name)
    line = told(Path(name))
    assert ("a palette" if mode == "P" else f"channels ({mode})") in line
    command = line.split('python3 -c "')[1].removesuffix('"')
    exec(command)  # the way out is one
    assert read("grey.png").shape == EIGHT.shape


def test_damaged_images_are_one_line(tmp_path):
    for name in ("a.png", "a.tif", "a.jpg"):
        Image.fromarray(EIGHT).save(tmp_path / name)
        data = (tmp_path / name).read_bytes()
        for cut in (0, 4, 30, len(data) // 2):
            (tmp_path / f"cut-{name}").write_bytes(data[:cut])
            assert "cannot be read as" in told(tmp_path / f"cut-{name}")
    (tmp_path / "other.png").write_bytes((tmp_path / "a.jpg").read_bytes())
    assert "cannot be read as PNG" in told(tmp_path / "other.png")
    assert "No such file" in told(tmp_path / "none.png")
    (tmp_path / "folder.png").mkdir()
    assert "Is a directory" in told(tmp_path / "folder.png")


@pytest.mark.parametrize("limit", [1500, 900], ids=["warning", "error"])
def test_an_image_that_pillow_calls_a_bomb_is_one_line(tmp_path, monkeypatch, limit):
    Image.fromarray(EIGHT).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    assert f"more than {limit} pixels; save it as .npy" in told(tmp_path / "a.png")


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.png", "a.tif", "a.csv"])
def test_memory_is_checked_before_anything_is_unpacked(tmp_path, monkeypatch, name):
    path = tmp_path / name
    if name.endswith((".png", ".tif")):
        Image.fromarray(EIGHT).save(path)
    elif name.endswith(".csv"):
        np.savetxt(path, REAL, delimiter=",")
    else:
        {"a.npy": np.save, "a.npz": np.savez_compressed}[name](path, np.zeros((40, 50)))

    def unpacks(*_, **__):
        raise AssertionError("unpacked")

    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    monkeypatch.setattr(np, "load", unpacks)
    monkeypatch.setattr(np, "loadtxt", unpacks)
    monkeypatch.setattr(np.lib.format, "read_array", unpacks)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", unpacks)
    line = told(path)
    assert "bytes of memory" in line and "1000 are available" in line


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_an_npz(tmp_path, monkeypatch, save):
    monkeypatch.chdir(tmp_path)
    save("one.npz", frames=REAL)
    save("two.npz", left=REAL, right=np.asfortranarray(GREY.T), row=np.arange(5.0), text=np.array(["a"]))
    for name in ("one.npz", "one.npz:frames", "two.npz:left"):
        np.testing.assert_array_equal(read(name), REAL)
    np.testing.assert_array_equal(read("two.npz:right"), GREY.T)
    np.testing.assert_array_equal(read("two.npz:row"), np.arange(5.0)[np.newaxis])
    line = told("two.npz")
    assert "holds 4 arrays, 'left', 'right', 'row', 'text'; name one as two.npz:NAME" in line
    assert "no such array; did you mean left?" in told("two.npz:lefd")
    assert "save float32" in told("two.npz:text")


def test_a_file_may_have_a_colon_in_its_name(tmp_path):
    np.save(tmp_path / "plain", REAL)
    (tmp_path / "plain.npy").rename(tmp_path / "a.npz:b")
    np.testing.assert_array_equal(read(tmp_path / "a.npz:b"), REAL)


def test_wrong_npz_files(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"PK\x03\x04 not")
    assert "cannot be read as .npz" in told(path)
    np.savez(path, a=np.array([{}], object))
    assert "Python objects" in told(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no array")
    assert "holds no array" in told(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", "no array")
    assert "damaged .npy header" in told(path)
    np.savez(path, a=REAL)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    assert "cannot be read as .npz: Bad CRC-32" in told(path)


def test_a_csv_is_a_matrix(tmp_path):
    path = tmp_path / "a.csv"
    np.savetxt(path, REAL, delimiter=",")
    np.testing.assert_array_equal(read(path).astype(np.float32), REAL)
    for content, matrix in {
        b"\xef\xbb\xbf1,-2.5e3\r\n# a remark\r\n3,4\r\n": [[1, -2500], [3, 4]],
        b"1,2,3\n": [[1, 2, 3]],
        b"1\n2\n3\n": [[1], [2], [3]],
    }.items():
        path.write_bytes(content)
        np.testing.assert_array_equal(read(path), matrix)
    path.write_text("1,nan\n")
    assert "nan at index [0, 1]" in told(path)


NO_NUMBERS = (b"dy,dx\n1,2\n", b"1,2\n1,2,3\n", b"1,,2\n", b"1;2\n", bytes(range(128, 256)))


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "holds no element"), (b"\n\n\n", "holds no element")]
    + [(content, "not a table of numbers") for content in NO_NUMBERS],
)
def test_wrong_csv_files(tmp_path, content, words):
    (tmp_path / "a.csv").write_bytes(content)
    assert words in told(tmp_path / "a.csv")


@pytest.fixture
def mseed(tmp_path, monkeypatch):
    """A function that puts something in ObsPy's place, traces or its `read`; the path of a file that it reads."""
    path = tmp_path / "a.mseed"
    path.write_bytes(b"stands in")

    def stands_in(*traces, read=None):
        def stream(asked, format, headonly=False):
            assert Path(asked) == path and format == "MSEED"
            return [
                SimpleNamespace(id=name, stats=SimpleNamespace(npts=len(data)), data=data[: 0 if headonly else None])
                for name, data in traces
            ]

        monkeypatch.setitem(sys.modules, "obspy", SimpleNamespace(read=read or stream))
        return path

    return stands_in


def test_traces_of_mseed(mseed, monkeypatch):
    z, n = np.arange(9, dtype=np.int32), np.linspace(0, 1, 7)
    vertical = "BW.RJOB..EHZ", z
    np.testing.assert_array_equal(read(mseed(vertical)), z[np.newaxis])
    path = mseed(vertical, ("BW.RJOB..EHN", n))
    np.testing.assert_array_equal(read(f"{path}:BW.RJOB..EHN"), n[np.newaxis])
    assert "holds 2 traces, 'BW.RJOB..EHZ', 'BW.RJOB..EHN'" in told(path)
    assert "has gaps" in told(mseed(vertical, vertical))
    monkeypatch.setattr(memory, "available_memory", lambda: 10)
    assert "bytes of memory" in told(mseed(vertical))


def test_a_file_that_obspy_wrote(tmp_path):
    """Real miniSEED, where ObsPy is installed; the other tests have a stand-in."""
    obspy = pytest.importorskip("obspy")
    traces = {"EHZ": np.arange(3000, dtype=np.int32) ** 2 % 977, "EHN": np.linspace(0, 1, 700)}
    stream = obspy.Stream(
        obspy.Trace(data, {"network": "BW", "station": "RJOB", "channel": channel}) for channel, data in traces.items()
    )
    stream.write(str(tmp_path / "a.mseed"), format="MSEED")
    for channel, data in traces.items():
        got = read(f"{tmp_path / 'a.mseed'}:BW.RJOB..{channel}")
        assert got.dtype == data.dtype
        np.testing.assert_array_equal(got, data[np.newaxis])


def test_without_obspy_a_line_says_how_to_get_it(mseed, monkeypatch):
    path = mseed()
    monkeypatch.setitem(sys.modules, "obspy", None)
    assert "pip install obspy" in told(path)


def test_what_obspy_raises_is_one_line(mseed):
    def fails(*_, **__):
        raise TypeError("Unknown format\nfor file")

    assert "cannot be read as MSEED: Unknown format; write it again" in told(mseed(read=fails))


def test_one_dimension_is_one_row(save, capsys, table):
    signal = np.random.default_rng(4).normal(size=200)
    paths = [save("template.npy", signal[70:90]), save("signal.npy", signal)]
    line, *_ = table(ScipyLibrary(), *paths, "--window valid")
    assert (line["sy"], line["sx"]) == ("0", "70")
    assert "0 dimensions" in refused(capsys, save("scalar.npy", np.float32(1)), paths[1])


@pytest.mark.parametrize("shape", [(60, 80, 3), (60, 80, 4), (2, 60, 80, 3)])
def test_a_grey_template_in_a_colour_frame_is_refused(save, capsys, shape):
    template, frame = save("t.npy", np.ones((3, 3))), save("f.npy", np.ones(shape))
    line = refused(capsys, template, frame)
    assert "looks like colour" in line and "--stack" in line and ".mean(-1)" in line
    assert "looks like colour" in refused(capsys, frame, template)
    assert "looks like colour" in refused(capsys, "autocorr", frame)
    mask = ["--score", "zncc", "--mask-left", frame]
    assert "looks like colour" in refused(capsys, template, template, *mask)
    assert "of colour a channel or the mean" in refused(capsys, "piv", frame, frame)


def test_stacks_of_narrow_matrices_are_read(save, table):
    """Small ones as they are; larger ones, which may be colours, by --stack."""
    rng = np.random.default_rng(5)
    small, large = save("small.npy", rng.normal(size=(60, 4, 4))), save("large.npy", rng.normal(size=(60, 80, 3)))
    template = save("t.npy", rng.normal(size=(3, 3)))
    for words in ([template, small], [template, large, "--stack"]):
        assert len(table(ScipyLibrary(), *words, "--window valid")) == 60


def test_a_template_is_found_in_files_of_every_kind(tmp_path, monkeypatch, lines):
    monkeypatch.chdir(tmp_path)
    part = GREY[11:23, 20:35]
    np.save("t.npy", part)
    Image.fromarray(GREY).save("f.png")
    Image.fromarray(GREY).save("f.tif")
    np.savez("f.npz", other=REAL, frame=GREY)
    np.savetxt("f.csv", GREY, fmt="%d", delimiter=",")
    for name in ("f.png", "f.tif", "f.npz:frame", "f.csv"):
        found, *_ = lines("t.npy", name, "--window valid --score zncc --result peak")
        assert (found["sy"], found["sx"], float(found["value"])) == ("11", "20", pytest.approx(1, abs=1e-6))


def test_an_output_never_replaces_the_file_that_an_array_is_read_from(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", l=REAL, r=REAL)
    before = Path("a.npz").read_bytes()
    for words in (["a.npz:l", "a.npz:r"], ["autocorr", "a.npz:l"], ["piv", "a.npz:l", "a.npz:r"]):
        assert "named twice" in refused(capsys, *words, "--output", "a.npz", "--force")
    assert Path("a.npz").read_bytes() == before and os.listdir() == ["a.npz"]


@pytest.mark.parametrize("command", [[], ["autocorr"], ["piv"]])
def test_the_help_says_what_is_read(capsys, command):
    with pytest.raises(SystemExit):
        correlate.main([*command, "--help"], ScipyLibrary())
    text = capsys.readouterr().out
    assert formats.HELP in text
    for word in (".npz", ".png", ".tif", ".jpg", ".csv", ".mseed", "one dimension is"):
        assert word in formats.HELP.replace("\n  ", " ")
