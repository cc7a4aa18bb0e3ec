"use strict";
// The page of the chooser: lists and fields that ask, and the answer of chooser.js.
(() => {
  const {
    lines, TITLES, USUAL, answer, area, auto, command, elsewhere, facts, fits, label, nearby, offered, python, settled, size, time, unique, word,
  } = Chooser;
  const element = (tag, text = "", attributes = {}) => Object.assign(document.createElement(tag), { textContent: text, ...attributes });

  function code(title, text) {
    const block = element("pre", "", { tabIndex: 0 });
    block.setAttribute("aria-label", title);
    block.append(element("code", text));
    return block;
  }

  function table(line) {
    const list = element("dl");
    for (const [title, text, look] of facts(line)) list.append(element("dt", title), element("dd", text, look ? { className: look } : {}));
    return list;
  }

  function shown(line) {
    const box = element("div");
    box.append(table(line));
    if (command(line)) box.append(element("strong", "Command"), code("Command", command(line)));
    box.append(element("strong", "Python"), code("Python", python(line)));
    return box;
  }

  function missing(chosen, near) {
    const box = element("div");
    box.append(element("p", nearby(chosen, near), { className: "told" }));
    const pair = element("div", "", { className: "near" });
    for (const line of near) {
      const own = element("section");
      own.append(element("h4", line.size), table(line));
      pair.append(own);
    }
    box.append(pair);
    const others = elsewhere(chosen);
    if (others.length) {
      const told = others.map((one) => `${one.size}: ${label(one.best)}, ${time(one.time_us)}`).join("; ");
      box.append(element("p", `Measured nearest in mode stream with kept plans: ${told}.`));
    }
    box.append(element("p", "The library predicts its choice from these times. This line prints it on your machine:"), code("Command", auto(chosen, near[0]?.device)));
    return box;
  }

  // ---- the page

  function start() {
    const questions = document.getElementById("questions");
    const inputs = {};
    let chosen = { ...Object.fromEntries(Chooser.asked.map((name) => [name, lines[0][name]])), machine: Chooser.mostAnswered() };
    chosen = { ...chosen, ...USUAL, form: "one-to-one", counts: "1-to-1", size: "256x256" };
    if (!lines.some((line) => fits(line, chosen, ["size"]))) chosen = settled("machine", chosen.machine, chosen);

    for (const name of Chooser.asked) {
      const asked = element("label", TITLES[name]);
      const input = document.createElement(name === "size" ? "input" : "select");
      input.id = `ask-${name}`;
      if (name === "size") input.setAttribute("list", "sizes");
      asked.append(input);
      questions.append(asked);
      inputs[name] = input;
      input.addEventListener("change", () => change(name, input.value));
    }
    questions.append(element("datalist", "", { id: "sizes" }));

    function change(name, value) {
      let said = "";
      if (name === "size") {
        const found = size(value);
        if (!found) said = `"${value}" is no size; write 700, 36x90 or 24x24:120x160.`;
        value = found ?? chosen.size;
      }
      const before = chosen;
      chosen = settled(name, value, chosen);
      const other = Chooser.asked.filter((one) => one !== name && chosen[one] !== before[one]);
      if (other.length) {
        said = `Nothing was measured with these choices together. Changed: ${other.map((one) => `${TITLES[one]} to ${word(one, chosen[one])}`).join("; ")}.`;
      }
      render(said);
    }

    function render(said = "") {
      for (const name of Chooser.asked) {
        if (name === "size") {
          const own = lines.filter((line) => fits(line, chosen, ["size"])).map((line) => line.size);
          inputs.size.value = chosen.size;
          document.getElementById("sizes").replaceChildren(...unique(own).sort((a, b) => area(a) - area(b)).map((value) => element("option", "", { value })));
          continue;
        }
        const { now, other } = offered(name, chosen);
        const options = (values) => values.map((value) => element("option", word(name, value), { value }));
        const group = element("optgroup", "", { label: "changes other choices" });
        group.append(...options(other));
        inputs[name].replaceChildren(...options(now), ...(other.length ? [group] : []));
        inputs[name].value = chosen[name];
      }
      const { line, near } = answer(chosen);
      document.getElementById("changed").textContent = said;
      document.getElementById("answer").replaceChildren(element("h3", "Answer"), line ? shown(line) : missing(chosen, near));
    }

    // #mode=latency&size=700x700 asks a question; what it does not name is usual.
    function asked() {
      const given = new URLSearchParams(location.hash.slice(1));
      if (![...given.keys()].some((name) => Chooser.asked.includes(name))) return render();
      chosen = { ...chosen, machine: given.get("machine") ?? Chooser.mostAnswered(), ...USUAL };
      for (const [name, value] of given) if (Chooser.asked.includes(name)) chosen[name] = name === "size" ? (size(value) ?? chosen.size) : value;
      const first = [...given.keys()].find((name) => Chooser.asked.includes(name) && name !== "size") ?? "machine";
      chosen = settled(first, chosen[first], chosen);
      render();
      document.getElementById("chooser-title").scrollIntoView();
    }

    addEventListener("hashchange", asked);
    asked();
  }

  document.getElementById("chooser").addEventListener("submit", (event) => event.preventDefault());
  start();
})();
