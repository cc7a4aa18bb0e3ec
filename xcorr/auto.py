"""Prints in one line which variant and parameters auto chooses for a problem, and why (docs/library.md, How auto chooses).

The first source with a near problem decides: the times of this machine (local, else published), the shipped times of the
nearest machine, else the speeds of `speeds.toml`.

Example: python3 -m xcorr.auto --form n-to-m --left 56 --right 56 --lefts 4 --rights 9 --device cuda
"""

import sys
from collections.abc import Sequence

from xcorr.choice import plans
from xcorr.choice.auto import Auto
from xcorr.errors import NOTHING_WRITTEN, Parser, UserError, choose, command
from xcorr.fields import NAMES, PLAIN, Fields
from xcorr.native.library import Library
from xcorr.native.precisions import PRECISIONS
from xcorr.problem import FORMS, Problem, parse_counts, parse_size


def parser() -> Parser:
    made = Parser(prog="python3 -m xcorr.auto", description=__doc__)
    add = made.add_argument
    add("--form", default="one-to-one", help=", ".join(FORMS) + " (default: one-to-one)")
    add("--left", required=True, metavar="ROWSxCOLS", help="shape of the left matrices, 64 is 64x64")
    add("--right", metavar="ROWSxCOLS", help="shape of the right matrices (default: the left one)")
    add("--lefts", type=int, default=1, metavar="N", help="how many left matrices (default: 1)")
    add("--rights", type=int, default=1, metavar="N", help="how many right matrices in all (default: 1)")
    add("--window", default="full", help="full (default), valid or sy:a..b,sx:c..d")
    for name in NAMES:
        add(f"--{name}", default=getattr(PLAIN, name), help=f"a field of the problem (default: {getattr(PLAIN, name)})")
    add("--precision", default="fp32", help="fp32 (default), fp64, ...")
    add("--device", default="cpu", help="cpu (default) or cuda:N")
    shared = "calls that share a plan (default: many, it is kept)"
    add("--calls", type=_calls, default=plans.KEPT, metavar="N", help=shared)
    made.add_results()
    return made


def _calls(text: str) -> float:
    """A number of calls, or `many`."""
    if text == "many":
        return plans.KEPT
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise UserError(f"--calls {text}: not a number of calls; give 1 to 999999999, or many")
    return float(text)


def run(argv: Sequence[str]) -> int:
    """The command; raises UserError and LibraryError."""
    options = parser().parse_args(argv)
    choose("form", [options.form], FORMS)
    choose("precision", [options.precision], PRECISIONS)
    left, right = (parse_size(size)[0] for size in (options.left, options.right or options.left))
    lefts, rights = parse_counts(f"{options.lefts}:{options.rights}")
    fields = Fields(**{name: getattr(options, name) for name in NAMES})
    problem = Problem(options.form, left, right, lefts, rights, options.window, fields)
    chosen = Auto(Library(), options.device, options.results, calls=options.calls).choose(problem, options.precision)
    print(f"{problem.id}: {chosen.variant} {chosen.params}".rstrip() + f": {chosen.why}")
    return 0


if __name__ == "__main__":
    sys.exit(command(run, interrupted=NOTHING_WRITTEN))
