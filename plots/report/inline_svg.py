"""SVG text of a figure made fit to stand inside one HTML page with others of its kind."""

import html
import re


def inline(svg: str, name: str, label: str) -> str:
    """The `<svg>` element of a file's text: no prolog, no metadata, every id prefixed with `name` (ids must be unique
    in a page), style rules kept to this element, `role=img` with a title. The natural width stays as `max-width`, in
    the page's own unit; the height follows."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.DOTALL)
    # Those of the file alone, which come first; points keep theirs. In a page `label` says what the caption beside the figure does not.
    body = re.sub(r"<(title|desc)>.*?</\1>\s*", "", body, count=2, flags=re.DOTALL)
    prefix = re.sub(r"[^A-Za-z0-9_-]", "-", name)
    seen: dict[str, int] = {}

    def renamed(match: re.Match[str]) -> str:
        # matplotlib names equal images alike; references may mean either of two equals
        name = match[1]
        seen[name] = seen.get(name, 0) + 1
        again = f".{seen[name]}" if seen[name] > 1 else ""
        return f'id="{prefix}.{name}{again}"'

    body = re.sub(r'\bid="([^"]+)"', renamed, body)
    body = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}.\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}.\1)", body)
    body = re.sub(
        r"(<style[^>]*>)(.*?)(</style>)",
        lambda found: found[1] + re.sub(r"([^{}]+)\{", rf"[id='{prefix}'] \1{{", found[2]) + found[3],
        body,
        flags=re.DOTALL,
    )
    head, rest = body.split(">", 1)
    width = re.search(r'\bwidth="([\d.]+)pt"', head)
    head = re.sub(r'\s(width|height|role)="[^"]*"', "", head)
    text = html.escape(label, quote=True)
    size = f' style="max-width:{float(width.group(1)) / 72 * 1.45:.2f}in"' if width else ""
    title = f"<title>{html.escape(label, quote=False)}</title>"
    return f'{head} id="{prefix}" role="img" aria-label="{text}"{size}>{title}{rest.strip()}'
