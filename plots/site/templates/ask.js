"use strict";
// The page of the chooser: lists and fields that ask, and the answer of chooser.js.
(() => {
  const {
    lines, TITLES, USUAL, answer, area, auto, command, counts, differs, elsewhere, facts, fits, label, nearby, offered, python, settled, size, time,
    unique, word,
  } = Chooser;
  const TYPED = { size: [size, "write 700, 36x90 or 24x24:120x160"], counts: [counts, "write 200-to-1, 1-to-32 or 5000"] };
  const UNLISTED = "unlisted"; // the choice of a machine that nobody measured
  const element = (tag, text = "", attributes = {}) => Object.assign(document.createElement(tag), { textContent: text, ...attributes });

  function code(title, text) {
    const block = element("pre", "", { tabIndex: 0 });
    block.setAttribute("role", "group"); // a name belongs to a role
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
      const other = differs(line, chosen);
      own.append(element("h4", `${line.counts} of ${line.size}`), element("p", `Differs: ${other.join("; ")}.`), table(line));
      pair.append(own);
    }
    box.append(pair);
    const others = elsewhere(chosen);
    if (others.length) {
      const told = others.map((one) => `${one.size}: ${label(one.best)}, ${time(one.time_us)}`).join("; ");
      box.append(element("p", `Measured in mode stream with kept plans: ${told}.`));
    }
    box.append(element("p", "The library predicts its choice from these times. This line prints it on your machine:"), code("Command", auto(chosen, near[0]?.device)));
    return box;
  }

  // ---- the page

  function start() {
    const questions = document.getElementById("questions");
    const inputs = {};
    let unlisted = false;
    let chosen = { ...Object.fromEntries(Chooser.asked.map((name) => [name, lines[0][name]])), machine: Chooser.mostAnswered() };
    chosen = { ...chosen, ...USUAL, form: "one-to-one", counts: "1-to-1", size: "256x256" };
    if (!lines.some((line) => fits(line, chosen, ["size"]))) chosen = settled("machine", chosen.machine, chosen);

    for (const name of Chooser.asked) {
      const asked = element("label", TITLES[name]);
      const input = document.createElement(TYPED[name] ? "input" : "select");
      input.id = `ask-${name}`;
      if (TYPED[name]) {
        input.setAttribute("list", `measured-${name}`);
        questions.append(element("datalist", "", { id: `measured-${name}` }));
      }
      asked.append(input);
      questions.append(asked);
      inputs[name] = input;
      input.addEventListener("change", () => change(name, input.value));
    }

    // What is said of a machine that has no set: the answers are those of another one.
    function ofOthers() {
      return `Nothing was measured on another machine than those listed. These are the answers of ${word("machine", chosen.machine)}: on your machine times differ, and another variant may be the fastest. ./scripts/reproduce.sh measures there.`;
    }

    function change(name, value) {
      let said = "";
      if (name === "machine") unlisted = value === UNLISTED;
      if (unlisted && name === "machine") value = Chooser.mostAnswered();
      if (TYPED[name]) {
        const [read, how] = TYPED[name];
        const found = read(value, chosen.form);
        if (!found) said = `"${value}" is none of the kind; ${how}. `;
        value = found ?? chosen[name];
      }
      const before = chosen;
      chosen = settled(name, value, chosen);
      const other = Chooser.asked.filter((one) => one !== name && chosen[one] !== before[one]);
      if (other.length) said += `Changed with it: ${other.map((one) => `${TITLES[one]} to ${word(one, chosen[one])}`).join("; ")}.`;
      render(said);
    }

    function render(said = "") {
      for (const name of Chooser.asked) {
        if (TYPED[name]) {
          const own = lines.filter((line) => fits(line, chosen, name === "size" ? ["size"] : ["size", "counts"])).map((line) => line[name]);
          const order = name === "size" ? (a, b) => area(a) - area(b) : () => 0;
          inputs[name].value = chosen[name];
          document.getElementById(`measured-${name}`).replaceChildren(...unique(own).sort(order).map((value) => element("option", "", { value })));
          continue;
        }
        const { now, other } = offered(name, chosen);
        const options = (values) => values.map((value) => element("option", word(name, value), { value }));
        const group = element("optgroup", "", { label: "changes other choices" });
        group.append(...options(other));
        const more = name === "machine" ? [element("option", "another machine, such as an H100", { value: UNLISTED })] : [];
        inputs[name].replaceChildren(...options(now), ...(other.length ? [group] : []), ...more);
        inputs[name].value = name === "machine" && unlisted ? UNLISTED : chosen[name];
      }
      const { line, near } = answer(chosen);
      document.getElementById("changed").textContent = [unlisted ? ofOthers() : "", said].filter(Boolean).join(" ");
      document.getElementById("answer").replaceChildren(element("h3", "Answer"), line ? shown(line) : missing(chosen, near));
    }

    // #mode=latency&size=700x700 asks a question; what it does not name is usual.
    function asked() {
      const given = new URLSearchParams(location.hash.slice(1));
      if (![...given.keys()].some((name) => Chooser.asked.includes(name))) return render();
      const machine = given.get("machine") ?? Chooser.mostAnswered();
      unlisted = !(machine in Chooser.machines);
      const form = lines.some((line) => line.form === given.get("form")) ? given.get("form") : chosen.form;
      chosen = { ...chosen, ...USUAL, form, machine: unlisted ? Chooser.mostAnswered() : machine };
      for (const [name, value] of given) {
        if (!Chooser.asked.includes(name) || name === "machine") continue;
        if (TYPED[name]) chosen[name] = TYPED[name][0](value, form) ?? chosen[name];
        else if (lines.some((line) => line[name] === value)) chosen[name] = value;
      }
      chosen = settled("counts", chosen.counts, chosen);
      render();
      document.getElementById("chooser-title").scrollIntoView();
    }

    addEventListener("hashchange", asked);
    asked();
  }

  document.getElementById("chooser").addEventListener("submit", (event) => event.preventDefault());
  start();
})();
