"use strict";
// The answers of the chooser: what can be asked, what fits together, and what is said of a line. data/answers.js has every line.
const Chooser = (() => {
  const data = window.XCORR_ANSWERS;
  const text = (name, cell) => (data.texts[name] ? data.texts[name][cell] : cell);
  const lines = data.lines.map((cells) => Object.fromEntries(data.columns.map((name, place) => [name, text(name, cells[place])])));
  const USUAL = {
    window: "full", boundary: "zero", score: "product", result: "surface", more: "", precision: "fp32", mode: "stream", plan: "kept",
  };
  const TITLES = {
    machine: "Machine", form: "Form", counts: "Matrices (left-to-right)", size: "Size", window: "Window of shifts", boundary: "Boundary",
    score: "Score", result: "Result", more: "Masks, views, same array", precision: "Precision", mode: "Mode of timing", plan: "Plan",
  };
  const WORDS = {
    mode: {
      stream: "stream: calls back to back", latency: "latency: a wait after each call", graph: "graph: replay of a CUDA graph",
      cold: "cold: caches flushed before each call",
    },
    plan: { kept: "kept between calls", anew: "made anew in every call" },
    window: { full: "full: all shifts", valid: "valid: one inside the other" },
    result: { surface: "surface: every output", peak: "peak: the largest output" },
    more: { "": "none" },
  };

  const word = (name, value) => (name === "machine" ? `${data.machines[value]} (${value})` : (WORDS[name]?.[value] ?? value));
  const label = (variant) => data.labels[variant] ?? variant;
  const labels = (joined) => joined.split(";").filter(Boolean).map(label);
  const unique = (values) => [...new Set(values)];

  // A size as the data has it: `700` is `700x700`; null where the text is no size.
  function size(text) {
    const found = /^(\d+)(?:x(\d+))?(?::(\d+)(?:x(\d+))?)?$/.exec(text.toLowerCase().replace(/[×*]/g, "x").replace(/\s+/g, ""));
    if (!found) return null;
    const left = `${found[1]}x${found[2] ?? found[1]}`;
    const right = found[3] ? `${found[3]}x${found[4] ?? found[3]}` : left;
    return /(^|[x:])0+(x|:|$)/.test(`${left}:${right}`) ? null : left === right ? left : `${left}:${right}`;
  }

  // Logarithms of the sides of left and right matrices; equal shapes have both.
  function sides(text) {
    const shapes = text.split(":").map((one) => one.split("x").map((side) => Math.log2(Number(side))));
    return [...shapes[0], ...(shapes[1] ?? shapes[0])];
  }
  const area = (text) => sides(text).reduce((sum, side) => sum + side, 0) / 4;
  const distance = (a, b) => {
    const [x, y] = [sides(a), sides(b)];
    return x.reduce((sum, side, place) => sum + Math.abs(side - y[place]), 0);
  };

  const fits = (line, chosen, except = []) => data.asked.every((name) => except.includes(name) || line[name] === chosen[name]);

  // Values of a question: those that occur with all other choices, whatever the size, and those that occur with other choices only.
  function offered(name, chosen) {
    const known = lines.some((line) => ["machine", "form", "counts"].every((one) => line[one] === chosen[one]));
    const typed = known ? ["size"] : ["size", "counts"];
    const now = unique(lines.filter((line) => fits(line, chosen, [name, ...typed])).map((line) => line[name]));
    return { now, other: unique(lines.map((line) => line[name])).filter((value) => !now.includes(value)) };
  }

  // Whether a form has such numbers of left and right matrices.
  function pairs(form, counts) {
    const [lefts, rights] = counts.split("-to-").map(Number);
    return { "one-to-one": counts === "1-to-1", "one-to-many": lefts === 1, "n-to-mn": rights % lefts === 0 }[form] ?? true;
  }

  // Numbers of matrices as the data has them: `200:1` is `200-to-1`, and `200` the numbers of a form with 200 pairs; null where the text
  // is none.
  function counts(text, form) {
    const found = /^(\d+)(?:(?:-?to-?|:)(\d+))?$/.exec(text.toLowerCase().replace(/\s+/g, ""));
    if (!found || !Number(found[1]) || found[2] === "0") return null;
    const [first, second] = [Number(found[1]), Number(found[2] ?? found[1])];
    return `${found[2] === undefined && form === "one-to-many" ? 1 : first}-to-${second}`;
  }

  // The choices after one is changed. Sizes and numbers of matrices may be any that the form has. Where nothing was measured with the
  // others, those of the line of this machine that shares most of them; where the machine has no such line, what was asked.
  function settled(name, value, chosen) {
    const wanted = { ...chosen, [name]: value };
    if (name === "size") return wanted;
    if (name === "counts" && !pairs(wanted.form, value)) wanted.form = value.startsWith("1-to-") ? "one-to-many" : "n-to-m";
    const possible = pairs(wanted.form, wanted.counts);
    if (possible && (name === "counts" || lines.some((line) => fits(line, wanted, ["size", "counts"])))) return wanted;
    let [best, most] = [null, -1];
    for (const line of lines) {
      if (line[name] !== value || line.machine !== wanted.machine) continue;
      let shared = 0;
      for (const one of data.asked) {
        if (line[one] === wanted[one]) shared += 1;
        else if (line[one] === USUAL[one]) shared += 0.1;
      }
      if (shared > most) [best, most] = [line, shared];
    }
    if (!best) return possible ? wanted : { ...wanted, counts: "1-to-1" };
    const found = Object.fromEntries(data.asked.map((one) => [one, best[one]]));
    return { ...found, size: wanted.size, counts: pairs(found.form, wanted.counts) ? wanted.counts : found.counts };
  }

  // How far numbers of matrices are from each other, in powers of two.
  function apart(a, b) {
    const [x, y] = [a, b].map((one) => one.split("-to-").map((number) => Math.log2(Number(number))));
    return Math.abs(x[0] - y[0]) + Math.abs(x[1] - y[1]);
  }
  const number = (text) => text.split("-to-").reduce((product, one) => product * Number(one), 1);

  // How far a line is from the choices. What changes the algorithm weighs more than what changes the amount of work.
  const WEIGHTS = { form: 2, window: 6, boundary: 12, score: 6, result: 6, more: 3, precision: 6, mode: 4, plan: 4 };
  function far(line, chosen) {
    const other = Object.keys(WEIGHTS).filter((one) => line[one] !== chosen[one]);
    return other.reduce((sum, one) => sum + WEIGHTS[one], distance(line.size, chosen.size) / 2 + apart(line.counts, chosen.counts) / 4);
  }

  // Of the lines the two next to the choices: a smaller and a larger one by `measure` where both exist.
  function around(own, chosen, measure, away) {
    const ranked = [...own].sort((a, b) => away(a) - away(b));
    const smaller = ranked.find((one) => measure(one) <= measure(chosen));
    const larger = ranked.find((one) => measure(one) > measure(chosen));
    return (smaller && larger ? [smaller, larger] : ranked.slice(0, 2)).sort((a, b) => measure(a) - measure(b));
  }

  // The line of the choices, or the nearest ones: with the same numbers of matrices the two next sizes, with the same other choices
  // those of the nearest size with the two next numbers of matrices, else the nearest line of the machine and of all others.
  function answer(chosen) {
    const own = lines.filter((line) => fits(line, chosen, ["size", "counts"]));
    const line = own.find((one) => one.size === chosen.size && one.counts === chosen.counts);
    if (line) return { line, near: [] };
    const away = (one) => far(one, chosen);
    const same = own.filter((one) => one.counts === chosen.counts);
    if (same.length) return { line: null, near: around(same, chosen, (one) => area(one.size), away) };
    const ranked = [...lines].sort((a, b) => away(a) - away(b));
    if (own.length) {
      const size = [...own].sort((a, b) => away(a) - away(b))[0].size;
      return { line: null, near: around(own.filter((one) => one.size === size), chosen, (one) => number(one.counts), away) };
    }
    const here = ranked.find((one) => one.machine === chosen.machine);
    const there = ranked.find((one) => one.machine !== chosen.machine);
    return { line: null, near: [here, there && (!here || away(there) < away(here)) ? there : null].filter(Boolean) };
  }

  // What of a line is not what was chosen: `result surface in place of peak`.
  function differs(line, chosen) {
    const said = (one, value) => (one === "machine" ? data.machines[value] : value || "none");
    const name = (one) => ({ machine: "", counts: "", size: "", more: "fields " }[one] ?? `${one} `);
    return data.asked.filter((one) => line[one] !== chosen[one]).map((one) => `${name(one)}${said(one, line[one])} in place of ${said(one, chosen[one])}`);
  }

  function time(us) {
    const value = Number(us.toPrecision(3));
    const [scale, unit] = value >= 1e6 ? [1e6, "s"] : value >= 1e3 ? [1e3, "ms"] : value >= 1 ? [1, "µs"] : [1e-3, "ns"];
    const shown = value / scale;
    return `${shown.toFixed(Math.max(0, 3 - String(Math.trunc(shown)).length))} ${unit}`;
  }

  const parameters = (text) => (text ? text.replaceAll(";", ", ") : "none");
  const several = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

  function facts(line) {
    const tied = labels(line.tied_with);
    const found = [["Use", label(line.best), "big"]];
    if (tied.length) found.push(["Ties with it", `${tied.join(", ")}: the difference is within the noise`]);
    found.push(["Parameters", parameters(line.params)]);
    found.push([`Time${line.plan === "anew" ? " with plan" : ""}`, `${time(line.time_us)} for all pairs`, "big"]);
    found.push(["Interval", `${time(line.low_us)} to ${time(line.high_us)} (${several(line.n, "sample")}, ${several(line.runs, "run")})`]);
    const second = line.runner_up
      ? `${label(line.runner_up)} (${parameters(line.runner_up_params)}): ${time(line.runner_up_us)}, ${(line.runner_up_us / line.time_us).toFixed(2)} times as long`
      : "no other variant was measured";
    found.push(["Runner-up", second]);
    found.push(["Distance to the hardware", roof(line)]);
    const missing = line.missing ? `; not asked: family ${line.missing.split(";").map((one) => one.replaceAll("_", "-")).join(", ")}` : "";
    found.push(["Compared", `${several(line.contenders, "variant")}${missing}`]);
    found.push(["Card", word("machine", line.machine)]);
    return found;
  }

  function roof(line) {
    if (line.floor_us !== null) {
      return `${(line.time_us / line.floor_us).toFixed(2)} times the floor of ${time(line.floor_us)}; the limit that binds is ${line.roof}`;
    }
    return "not known: the floor counts fp32 products without fields and with kept plans on a GPU whose limits were measured";
  }

  const command = (line) => (line.command ? `./scripts/xcorr ${line.command}` : "");
  const python = (line) => (line.python.startsWith("#") ? `import xcorr\n${line.python}` : line.python);

  function auto(chosen, device) {
    const [left, right] = chosen.size.split(":");
    const [lefts, rights] = chosen.counts.split("-to-");
    const words = ["--form", chosen.form, "--left", left, ...(right ? ["--right", right] : []), "--lefts", lefts, "--rights", rights];
    for (const name of ["window", "boundary", "score", "result", "precision"]) if (chosen[name] !== USUAL[name]) words.push(`--${name}`, chosen[name]);
    for (const field of chosen.more.split("/").filter(Boolean)) words.push(`--${field.replace("=", " ")}`);
    return `python3 -m xcorr.auto ${words.join(" ")} --device ${device === "cpu" ? "cpu" : "cuda"}`;
  }

  // What the nearest measured lines say of a problem that was not measured.
  function nearby(chosen, near) {
    const what = `${chosen.counts} of ${chosen.size}`;
    const sizes = near.every((one) => fits(one, chosen, ["size"]));
    if (!near.length) return `${what} was not measured with these choices, nor was anything near them.`;
    if (!near.every((one) => fits(one, chosen, ["size", "counts"]))) {
      return `${what} was not measured with these choices. Below is what was measured nearest, and how it differs.`;
    }
    const named = near.map((one) => (sizes ? one.size : `${one.counts} of ${one.size}`));
    const said = [`${what} was not measured with these choices. The nearest measured: ${named.join(" and ")}.`];
    const best = unique(near.map((one) => label(one.best)));
    if (near.length > 1) said.push(best.length === 1 ? `${best[0]} is the fastest at both.` : `At the one ${best[0]} is the fastest, at the other ${best[1]}.`);
    const side = area(chosen.size);
    const beyond = near.every((one) => area(one.size) < side) ? "smaller" : near.every((one) => area(one.size) > side) ? "larger" : "";
    if (beyond) said.push(`All measured sizes are ${beyond}, so that the fastest at ${chosen.size} may be another one.`);
    return said.join(" ");
  }

  // Where a size that was not measured with these choices lies between measured ones in another mode, these say more.
  function elsewhere(chosen) {
    const usual = { ...chosen, mode: "stream", plan: "kept" };
    if (chosen.mode === "stream" && chosen.plan === "kept") return [];
    const found = answer(usual);
    const measured = (found.line ? [found.line] : found.near).filter((one) => fits(one, usual, ["size"]));
    const bracket = (all) => all.some((one) => area(one.size) <= area(chosen.size)) && all.some((one) => area(one.size) >= area(chosen.size));
    return !bracket(answer(chosen).near) || found.line ? measured : [];
  }

  function mostAnswered() {
    const counts = {};
    for (const line of lines) counts[line.machine] = (counts[line.machine] ?? 0) + 1;
    return Object.keys(counts).sort((a, b) => counts[b] - counts[a])[0];
  }

  return {
    asked: data.asked, lines, machines: data.machines, TITLES, USUAL, answer, area, auto, command, counts, differs, elsewhere, facts, fits, label, mostAnswered, nearby, offered, python, settled,
    size, time, unique, word,
  };
})();
