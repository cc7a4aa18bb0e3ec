"use strict";
// The answers of the chooser: what can be asked, what fits together, and what is said of a line. data/answers.js has every line.
const Chooser = (() => {
  const data = window.XCORR_ANSWERS;
  const lines = data.lines.map((cells) => Object.fromEntries(data.columns.map((name, place) => [name, cells[place]])));
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
    const now = unique(lines.filter((line) => fits(line, chosen, [name, "size"])).map((line) => line[name]));
    return { now, other: unique(lines.map((line) => line[name])).filter((value) => !now.includes(value)) };
  }

  // The choices after one is changed: where nothing was measured with all the others, those of the line that shares most of them.
  function settled(name, value, chosen) {
    const wanted = { ...chosen, [name]: value };
    if (name === "size" || lines.some((line) => fits(line, wanted, ["size"]))) return wanted;
    let [best, most] = [null, -1];
    for (const line of lines) {
      if (line[name] !== value) continue;
      let shared = 0;
      for (const one of data.asked) {
        if (line[one] === wanted[one]) shared += one === "machine" ? 3 : 1;
        else if (line[one] === USUAL[one]) shared += 0.1;
      }
      if (shared > most) [best, most] = [line, shared];
    }
    return best ? Object.fromEntries(data.asked.map((one) => [one, best[one]])) : wanted;
  }

  // The line of the choices, or the two measured sizes next to the one that was asked for: a smaller and a larger one where both exist.
  function answer(chosen) {
    const own = lines.filter((line) => fits(line, chosen, ["size"]));
    const line = own.find((one) => one.size === chosen.size);
    if (line) return { line, near: [] };
    const ranked = [...own].sort((a, b) => distance(a.size, chosen.size) - distance(b.size, chosen.size));
    const smaller = ranked.find((one) => area(one.size) <= area(chosen.size));
    const larger = ranked.find((one) => area(one.size) > area(chosen.size));
    const near = smaller && larger ? [smaller, larger] : ranked.slice(0, 2);
    return { line: null, near: near.sort((a, b) => area(a.size) - area(b.size)) };
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
  function python(line) {
    const [problem, call] = line.python.split("\n");
    const imports = "from xcorr.native.library import Library\nfrom xcorr.problem import Problem\n";
    return `${imports}\nproblem = Problem(${problem})\nout = Library().correlate(${call})`;
  }

  function auto(chosen, device) {
    const [left, right] = chosen.size.split(":");
    const [lefts, rights] = chosen.counts.split("-to-");
    const words = ["--form", chosen.form, "--left", left, ...(right ? ["--right", right] : []), "--lefts", lefts, "--rights", rights];
    for (const name of ["window", "boundary", "score", "result", "precision"]) if (chosen[name] !== USUAL[name]) words.push(`--${name}`, chosen[name]);
    for (const field of chosen.more.split("/").filter(Boolean)) words.push(`--${field.replace("=", " ")}`);
    return `python3 -m xcorr.auto ${words.join(" ")} --device ${device === "cpu" ? "cpu" : "cuda"}`;
  }

  // What the nearest measured sizes say of one that was not measured.
  function nearby(chosen, near) {
    if (!near.length) return `${chosen.size} was not measured with these choices, nor was any other size.`;
    const said = [`${chosen.size} was not measured with these choices. The nearest measured: ${near.map((one) => one.size).join(" and ")}.`];
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
    const measured = found.line ? [found.line] : found.near;
    const bracket = (all) => all.some((one) => area(one.size) <= area(chosen.size)) && all.some((one) => area(one.size) >= area(chosen.size));
    return !bracket(answer(chosen).near) || found.line ? measured : [];
  }

  function mostAnswered() {
    const counts = {};
    for (const line of lines) counts[line.machine] = (counts[line.machine] ?? 0) + 1;
    return Object.keys(counts).sort((a, b) => counts[b] - counts[a])[0];
  }

  return {
    asked: data.asked, lines, TITLES, USUAL, answer, area, auto, command, elsewhere, facts, fits, label, mostAnswered, nearby, offered, python, settled,
    size, time, unique, word,
  };
})();
