"use strict";
// Tables with the class `sortable` sort by a click on a header; those in a box with data-filter get a field that hides other lines.
(() => {
  const SECONDS = { ns: 1e-9, µs: 1e-6, us: 1e-6, ms: 1e-3 };
  const number = (text) => {
    const found = /^[<>]?\s*(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)(?:\s(ns|µs|us|ms)\b)?/i.exec(text.trim());
    return found ? Number(found[1].replace(/,/g, "")) * (SECONDS[found[2]] ?? 1) : NaN;
  };
  const compare = (a, b) => {
    const [x, y] = [number(a), number(b)];
    if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a.localeCompare(b, "en", { numeric: true });
  };

  function sortable(table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const cell = (row) => row.cells[column].textContent;
        const empty = (row) => ["", "–"].includes(cell(row).trim());
        const rows = [...body.rows].sort((a, b) => {
          if (empty(a) !== empty(b)) return empty(a) - empty(b); // what is not known comes last in both orders
          return compare(cell(a), cell(b)) * (down ? -1 : 1);
        });
        body.append(...rows);
      });
    });
  }

  function filtered(box) {
    const rows = [...box.querySelector("tbody").rows];
    if (rows.length < 4) return;
    const label = document.createElement("label");
    const field = document.createElement("input");
    const count = document.createElement("span");
    field.type = "search";
    label.append("Show lines with ", field);
    count.setAttribute("role", "status");
    const line = document.createElement("p");
    line.className = "filter";
    line.append(label, " ", count);
    box.prepend(line);
    field.setAttribute("aria-label", `Show lines of the table ${box.dataset.filter} with these words`);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      count.textContent = words.length ? `${shown} of ${rows.length} lines` : "";
    });
  }

  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("[data-filter]").forEach(filtered);
})();
