"""What a variant is, as tokens: the identity of its measured times (`source_hash`).

Times stay true when code is only written differently. So comments, layout, #include lines, file names, the
emulation's branches and prose (summaries, messages) do not count; every other token does, qualified names
included. Runs with Python's standard library alone, since Meson calls it.
"""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

# Raised by hand when what the harness asks of a variant, or how it times one, changes the times of all.
CONTRACT_VERSION = 1
# The reduction of surfaces to other results; of reduce_cpu and reduce_cuda only that of the backend counts.
REDUCTION = {
    "cpu": ("problem/results.hpp", "reduce/reduce.cpp", "reduce/reduce_rules.hpp", "reduce/reduce_cpu.cpp"),
    "cuda": ("problem/results.hpp", "reduce/reduce.cpp", "reduce/reduce_rules.hpp", "reduce/reduce_cuda.cu"),
}
HASHED_FOLDER = "algorithms"  # of what a variant includes; harness/variant.hpp is covered by the contract version
EMULATION = "XCORR_EMULATE"  # defined in tests only
PROSE_FIELDS = ("summary", "source", "parent")  # of struct Variant

TOKEN = re.compile(
    r"""
      (?P<space>(?:[ \t\r\f\v]|\\\r?\n)+)
    | (?P<newline>\n)
    | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
    | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\((?P<inside>.*?)\)(?P=mark)")
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    | (?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
    | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><<=|>>=|<=>|\.\.\.|->\*|::|->|\.\*|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|.)
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPE_THAT_GOES_ON = re.compile(r"\\(?:x[0-9a-fA-F]*|[0-7]{1,2})$")  # by a digit that follows
OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")
END_OF_DIRECTIVE = "\n"


@dataclass(frozen=True)
class Source:
    """The tokens of a file that count, and the names that it includes with quotes."""

    tokens: tuple[str, ...]
    includes: tuple[str, ...]

    def digest(self) -> str:
        return hashlib.sha256("\0".join(self.tokens).encode()).hexdigest()


def read_source(text: str) -> Source:
    """Scans a C++ file. A string is a token that begins with a quotation mark; adjacent ones are one."""
    tokens: list[str] = []
    includes: list[str] = []
    # Of each open conditional: whether its condition is the emulation's alone, and whether its branch counts.
    branches: list[tuple[bool, bool]] = []
    for directive, words in _lines(text):
        counts = all(taken for _, taken in branches)
        if not directive:
            if counts:
                tokens += words
            continue
        kind, rest = words[0] if words else "", words[1:]
        if kind in ("if", "ifdef", "ifndef"):
            kind, rest, taken = _condition(kind, rest)
            branches.append((taken is not None, taken is not False))
            if taken is not None:
                continue
        elif kind in ("else", "elif", "endif") and branches:
            emulation, taken = branches[-1]
            if emulation:
                if kind == "elif":
                    raise ValueError(f"#elif of {EMULATION} is not understood; write #else and #if")
                branches.pop()
                if kind == "else":
                    branches.append((True, not taken))
                continue
            if kind == "endif":
                branches.pop()
        if not counts:
            continue
        if kind == "include":
            if rest and rest[0].startswith('"'):
                includes.append(rest[0][1:])
        elif (kind, rest) != ("pragma", ["once"]):
            tokens += ["#", kind, *rest, END_OF_DIRECTIVE]
    return Source(tuple(_without_prose(_joined(tokens))), tuple(includes))


def _lines(text: str) -> list[tuple[bool, list[str]]]:
    """The tokens in runs: of code, and of one directive each (True, without its #)."""
    runs: list[tuple[bool, list[str]]] = [(False, [])]
    fresh = True  # nothing but space stands before in this line
    for match in TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup not in ("mark", "inside") else "raw"
        if kind == "newline":
            if runs[-1][0]:
                runs.append((False, []))
            fresh = True
        elif kind not in ("space", "comment"):
            if fresh and match[0] == "#":
                runs.append((True, []))
            else:
                runs[-1][1].append(_token(kind or "", match))
            fresh = False
    return runs


def _token(kind: str, match: re.Match[str]) -> str:
    text = match[0]
    if kind == "string":
        prefix, _, content = text[:-1].partition('"')
        return '"' + (f"{prefix}:" if prefix else "") + re.sub(r"\\\r?\n", "", content)
    if kind == "raw":
        escaped = match["inside"].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return '"' + escaped
    return text.replace("'", "") if kind == "number" else text


def _condition(kind: str, rest: list[str]) -> tuple[str, list[str], bool | None]:
    """The condition without what it says of the emulation; the last is whether its branch counts where the
    emulation decides alone, else None."""
    if kind in ("ifdef", "ifndef"):
        return kind, rest, kind == "ifndef" if rest == [EMULATION] else None
    asked = ["defined", "(", EMULATION, ")"]
    if rest[:4] == asked and rest[4:5] in ([], ["&&"]):
        return kind, rest, False
    if rest[:5] == ["!", *asked] and rest[5:6] in ([], ["&&"]):
        return kind, rest[6:], None if rest[5:] else True
    if EMULATION in rest:
        raise ValueError(f"#if {' '.join(rest)} is not understood; {EMULATION} must come first, joined by &&")
    return kind, rest, None


def _joined(tokens: list[str]) -> list[str]:
    """Adjacent strings as one."""
    out: list[str] = []
    for token in tokens:
        if token.startswith('"') and out and out[-1].startswith('"'):
            # "\x1" "2" is not "\x12"
            between = '""' if ESCAPE_THAT_GOES_ON.search(out[-1]) else ""
            out[-1] += between + token[1:]
        else:
            out.append(token)
    return out


def _without_prose(tokens: list[str]) -> list[str]:
    """Without what only a reader of a list or of an error sees."""
    out: list[str] = []
    i = 0
    while i < len(tokens):
        token, after = tokens[i], tokens[i + 1 : i + 2]
        is_prose = token == "." and after and after[0] in PROSE_FIELDS and tokens[i + 2 : i + 3] == ["="]
        if is_prose and tokens[i + 3].startswith('"') and tokens[i + 4] in (",", "}"):
            i += 5 if tokens[i + 4] == "," else 4
            continue
        if token == "no" and after == ["("] and out[-1:] != ["."]:
            out += ["no", "(", ")"]
            i = _end(tokens, i + 1) + 1
            continue
        if token == "throw":
            while tokens[i] not in (";", "(", "{"):
                out.append(tokens[i])
                i += 1
            if tokens[i] != ";":
                closing = _end(tokens, i)
                out += [tokens[i], tokens[closing]]
                i = closing + 1
            continue
        if (token == "static_assert" or token.startswith("check_")) and after == ["("]:
            closing = _end(tokens, i + 1)
            if tokens[closing - 1].startswith('"') and tokens[closing - 2] == ",":
                out.append(token)
                out += _without_prose(tokens[i + 1 : closing - 2])
                i = closing
                continue
        out.append(token)
        i += 1
    return out


def _end(tokens: list[str], opening: int) -> int:
    """Place of the bracket that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(tokens)):
        depth += (tokens[i] in OPENING) - (tokens[i] in CLOSING)
        if depth == 0:
            return i
    raise ValueError(f"a bracket is not closed after: {' '.join(tokens[opening - 1 : opening + 8])}")


def find_included(root: Path, including: Path, name: str) -> Path | None:
    """What an include with quotes means, relative to the root: found from there or beside the file."""
    for candidate in (Path(name), including.parent / name):
        if (root / candidate).is_file():
            return Path(os.path.normpath(candidate))
    return None


def source_hash(root: Path, path: Path, known: dict[Path, Source] | None = None) -> str:
    """16 hex digits of what the variant in `path` (relative to `root`) and its headers under algorithms/ say.

    `known` keeps files that are read already. ValueError, naming the file, for one that is not understood.
    """
    known = {} if known is None else known
    reached: set[Path] = set()
    todo = [path]
    while todo:
        at = todo.pop()
        if at in reached:
            continue
        reached.add(at)
        for name in _known(root, at, known).includes:
            found = find_included(root, at, name)
            if found is not None and found.parts[0] == HASHED_FOLDER:
                todo.append(found)
    # Neither names nor order of files count, nor one that holds nothing but includes.
    digests = sorted({known[at].digest() for at in reached if known[at].tokens})
    return hashlib.sha256(" ".join([f"contract {CONTRACT_VERSION}", *digests]).encode()).hexdigest()[:16]


def reduction_hash(root: Path, backend: str) -> str:
    """8 hex digits of what the harness's reduction of surfaces on `backend` says: cpu or cuda.

    ValueError, naming the file, for one that is not understood.
    """
    files = [Path("harness") / name for name in REDUCTION[backend]]
    digests = sorted(_known(root, path, {}).digest() for path in files if (root / path).is_file())
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:8]


def _known(root: Path, path: Path, known: dict[Path, Source]) -> Source:
    if path not in known:
        try:
            known[path] = read_source((root / path).read_text(encoding="utf-8"))
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path}: {error}") from error
    return known[path]
