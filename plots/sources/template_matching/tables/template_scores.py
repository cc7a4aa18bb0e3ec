"""What scores of templates cost beside plain sums of products: the fastest variant of each on the same problem, and their ratio."""

import pandas as pd

from plots import style, tidy
from plots.tables.table import FIELDS, MATRICES, SIZE, TIME, WINDOW, Grid, Page, Table, duration
from xcorr.fields import Fields

FEEDS = "template_matching"  # experiments that feed it say which scores count
PRECISIONS = ("fp32", "3xtf32")  # FP32 grade
BARS = {"none": 1.3, "masks": 4.0}  # most that a score may take, in times of the product
SHORTEST_US = 20.0  # a product that takes less has no bar: constant costs decide
ABOUT = (
    f"Each problem of template matching that was measured with a score, ncc or zncc, and as plain sums of products of the same matrices, window and result. Both times are those of "
    f"the fastest variant of all that any experiment measured. The bar is {BARS['none']} times the product without masks and {BARS['masks']:g} times with masks. "
    f"It is for problems whose product takes at least {SHORTEST_US:g} µs. The largest ratio comes first."
)
PLACE = [*tidy.PROBLEM, "backend"]
PRODUCT = ["product_variant", "product_params", "product_precision", "product_us"]
COLUMNS = [*PLACE, *"fields variant params precision time_us".split(), *PRODUCT, "ratio", "bar"]


def product_of(fields: str) -> str:
    """The fields of a problem with its scores and masks replaced by sums of products: `score=zncc:0.3/result=peak` gives `result=peak`."""
    cells = Fields.of_text(fields)
    return Fields(boundary=cells.boundary, result=cells.result, same=cells.same, views=cells.views).text


def table(results: tidy.ResultSet) -> pd.DataFrame:
    """A line per problem with a score, the largest ratio first: columns COLUMNS. `bar` is NaN where the product takes less than
    SHORTEST_US. Times in microseconds. A CPU is compared with a CPU, a GPU with a GPU."""
    own = tidy.passed(tidy.joined((results.points, results.with_fields)), mode="stream", input="uniform")
    own = own[own["precision"].isin(PRECISIONS)] if len(own) else own
    if own.empty:
        return pd.DataFrame(columns=COLUMNS)
    best = own.sort_values(["compute_us", "variant"], kind="stable").drop_duplicates([*PLACE, "fields"])
    kinds = {text: Fields.of_text(text) for text in own["fields"].unique()}
    places = pd.MultiIndex.from_frame(results.fed(own, FEEDS)[[*PLACE, "fields"]])
    scored = best["fields"].map(lambda text: kinds[text].score.startswith(("ncc", "zncc")))
    scores = best[scored & pd.MultiIndex.from_frame(best[[*PLACE, "fields"]]).isin(places)]
    scores = scores.rename(columns={"compute_us": "time_us"}).assign(
        product=[product_of(text) for text in scores["fields"]],
        most=[BARS["none" if kinds[text].masks == "none" else "masks"] for text in scores["fields"]],
    )
    named = {name: f"product_{name}" for name in ("variant", "params", "precision")}
    products = best.rename(columns={"fields": "product", "compute_us": "product_us", **named})
    products = products[[*PLACE, "product", *PRODUCT]]
    found = scores.merge(products, on=[*PLACE, "product"])
    found = found.assign(
        ratio=found["time_us"] / found["product_us"], bar=found["most"].where(found["product_us"] >= SHORTEST_US)
    )
    return found.sort_values("ratio", ascending=False, kind="stable")[COLUMNS].reset_index(drop=True)


def verdict(ratio: float, bar: float) -> str:
    """`at most 1.3`, `above 1.3`, or that there is no bar."""
    if pd.isna(bar):
        return f"none, product below {SHORTEST_US:g} µs"
    return f"at most {bar:g}" if ratio <= bar else f"**above {bar:g}**"


SHOWN = (
    *(MATRICES, SIZE, WINDOW, FIELDS),
    ("Fastest score", "variant precision", style.label),
    TIME,
    ("Fastest product", "product_variant product_precision", style.label),
    ("Time of the product", "product_us", duration),
    ("Ratio", "ratio", "{:.2f}".format),
    ("Bar", "ratio bar", verdict),
)


def summary(lines: pd.DataFrame) -> str:
    """A sentence that counts the problems above their bar."""
    judged = lines.dropna(subset=["bar"])
    above = int((judged["ratio"] > judged["bar"]).sum())
    return f"{len(lines)} problems, {len(judged)} with a bar, {above} of them above it."


def page(results: tidy.ResultSet) -> Page:
    """What the table says of a set; nothing in the report where no problem has both."""
    lines = table(results)
    if lines.empty:
        return Page(["No problem of template matching was measured with a score and with products."], notes=())
    said = summary(lines)
    grid = Grid(lines, SHOWN, TABLE.title, open=False, file=TABLE.name)
    return Page([ABOUT, said, grid], [f"{TABLE.title}: {said} {ABOUT}"])


TABLE = Table("template_scores", "Scores beside products", page, part_of=("template_matching", 2))
