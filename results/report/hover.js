"use strict";
// Values of figures: the data point nearest to the pointer or the finger gets a ring and its values. data/points-PAGE.js has the points.
(() => {
  const REACH = 20; // pixels between the pointer and a point that it shows
  const ring = document.createElement("div");
  const told = document.createElement("div");
  ring.className = "ring";
  ring.hidden = true;
  ring.append(told);
  document.body.append(ring);

  for (const image of document.querySelectorAll("img")) {
    const figure = window.XCORR_POINTS[image.getAttribute("src")];
    if (!figure) continue;
    const points = figure.series.flatMap(([series, ...own]) => own.map(([x, y, values]) => ({ x, y, text: series ? `${series}: ${values}` : values })));

    const show = (event) => {
      const frame = image.getBoundingClientRect();
      const scale = frame.width / figure.width;
      const [x, y] = [(event.clientX - frame.left) / scale, (event.clientY - frame.top) / scale];
      const away = (one) => Math.hypot(one.x - x, one.y - y);
      const nearest = points.reduce((a, b) => (away(b) < away(a) ? b : a));
      ring.hidden = away(nearest) * scale > REACH;
      if (ring.hidden) return;
      // Points at the same place are told together.
      told.textContent = points.filter((one) => Math.hypot(one.x - nearest.x, one.y - nearest.y) < 0.5).map((one) => one.text).join("\n");
      const [left, top] = [frame.left + nearest.x * scale, frame.top + nearest.y * scale];
      ring.style.left = `${left + scrollX}px`;
      ring.style.top = `${top + scrollY}px`;
      ring.classList.toggle("leftwards", left > document.documentElement.clientWidth / 2);
    };
    image.addEventListener("pointermove", show);
    image.addEventListener("pointerdown", show);
    image.addEventListener("pointerleave", () => (ring.hidden = true));
  }
})();
