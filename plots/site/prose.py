"""The Markdown of the project's README files and of results/machines/ as HTML: headings, paragraphs, lists, tables, pictures, code, links and
stress. Nothing else occurs there."""

import re
from pathlib import Path

from markupsafe import Markup, escape

from plots.site.sizes import pixels
from xcorr.paths import ROOT

LONG = 20  # rows of a table that scrolls in its box
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"!\[(.+)\]\(([^)\s]+)\)")
_STRESS = re.compile(r"\*\*(.+?)\*\*")


def inline(text: str, page: Path, up: str) -> Markup:
    """Code, links and stress of one line. Links of the file `page` of the tree become links from a page whose way to the root is `up`."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one that is not closed
        return Markup(escape(text))
    done = "".join(
        f"<code>{escape(part)}</code>" if place % 2 else str(escape(part)) for place, part in enumerate(parts)
    )
    done = _LINK.sub(lambda found: f'<a href="{_target(found[2], page, up)}">{found[1]}</a>', done)
    return Markup(_STRESS.sub(r"<strong>\1</strong>", done))


def _target(link: str, page: Path, up: str) -> str:
    if re.match(r"[a-z]+:|#", link):
        return link
    path, _, part = link.partition("#")
    found = (page.parent / path).resolve().relative_to(ROOT.resolve())
    return f"{up}{found.as_posix()}" + (f"#{part}" if part else "")


def cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table."""
    return [one.strip().replace(r"\|", "|") for one in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a Markdown text: lines of cells, the header first."""
    found: list[list[list[str]]] = []
    before = False
    for line in text.splitlines():
        now = line.startswith("|")
        if now and not before:
            found.append([])
        if now and not re.fullmatch(r"[|\s:-]+", line):
            found[-1].append(cells(line))
        before = now
    return found


def html(page: Path, up: str, title: bool = False) -> Markup:
    """The file `page` without its first heading, unless `title`; its headings are one step lower, since they stand below the title
    of the page of the report."""
    done: list[str] = []
    heading = page.parent.name
    for block in re.split(r"\n\s*\n", page.read_text(encoding="utf-8").strip()):
        lines = block.splitlines()
        if found := re.match(r"(#+) (.+)", lines[0]):
            if len(found[1]) > 1 or title:
                level = min(len(found[1]) + 1, 4)
                done.append(f"<h{level}>{inline(found[2], page, up)}</h{level}>")
                heading = found[2].replace("`", "")
            lines = lines[1:]
        if not lines:
            continue
        if picture := _PICTURE.fullmatch(lines[0]):
            done.append(_picture(picture[1], page.parent / picture[2], _target(picture[2], page, up)))
        elif lines[0].startswith("|"):
            head, *rows = tables(block)[0]
            done.append(_table(f"{heading}: {head[0]} and more", head, rows, page, up))
        elif lines[0][:2] in ("- ", "* "):
            items = " ".join(lines)[2:].split(f" {lines[0][0]} ")
            done.append("<ul>" + "".join(f"<li>{inline(one, page, up)}</li>" for one in items) + "</ul>")
        else:
            done.append(f"<p>{inline(' '.join(one.strip() for one in lines), page, up)}</p>")
    return Markup("\n".join(done))


def _picture(alt: str, file: Path, link: str) -> str:
    width, height = pixels(file)
    box = f'<div class="scroll" role="region" tabindex="0" aria-label="Figure: {escape(alt.partition(":")[0])}">'
    shown = f'<img src="{link}" alt="{escape(alt)}" width="{width}" height="{height}" loading="lazy">'
    return f'{box}<a href="{link}">{shown}</a></div>'


def _table(label: str, head: list[str], rows: list[list[str]], page: Path, up: str) -> str:
    top = "".join(f'<th scope="col">{inline(one, page, up)}</th>' for one in head)
    body = "\n".join("<tr>" + "".join(f"<td>{inline(one, page, up)}</td>" for one in row) + "</tr>" for row in rows)
    long, filtered = (" long", f' data-filter="{escape(label)}"') if len(rows) > LONG else ("", "")
    box = f'<div class="grid"{filtered}><div class="scroll{long}" role="region" tabindex="0" aria-label="{escape(label)}">'
    return f'{box}<table class="sortable"><thead><tr>{top}</tr></thead><tbody>\n{body}\n</tbody></table></div></div>'
