"use strict";
// The page of mipforest explore: it shows what the server knows of the tree, and sends edits. All texts are set as texts;
// the picture of the tree is made by the server, which escapes names.

const token = new URLSearchParams(location.search).get("token") || "";
const by = (id) => document.getElementById(id);
let state = null, chosen = null, asked = 0, listed = "", grouped = "";

const ask = async (path, entries = {}) => {
  const answer = await fetch(path, {
    method: "POST", headers: {"X-Token": token, "Content-Type": "application/json"}, body: JSON.stringify(entries),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
};

const make = (tag, text = "", attributes = {}) => {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

const number = (value) => value === null ? "–" : Math.abs(value) < 1e-12 ? "0" : String(Number(value.toPrecision(6)));

const button = (words, act) => {
  const made = make("button", words, {type: "button"});
  made.addEventListener("click", act);
  return made;
};

const failed = (error) => { by("error").textContent = error.message; };

const edit = async (action, entries = {}) => {
  by("error").textContent = "";
  try {
    show(await ask("/edit", {action, ...entries}));
  } catch (error) {
    failed(error);
  }
};

const pair = (name, value) => {
  const group = make("div");
  group.append(make("dt", name), make("dd", value));
  return group;
};

const proof = () => {
  if (state.busy) return `Searching: the best tree so far has ${number(state.objective)}, proven ${number(state.bound)}`;
  if (state.status === "infeasible") return "Proven: no tree is within these edits. Undo one.";
  if (state.error) return `The search could not go on: ${state.error}. Undo the last edit.`;
  if (!state.svg) return "No tree was found.";
  return state.proven ? "Proven: no tree within these edits is better" : `Best found; a better one has at least ${number(state.bound)}`;
};

const cost = () => {
  if (!state.price) return "–";
  const [least, most] = state.price;
  return least === most ? number(least) : `${number(least)} to ${number(most)}`;
};

const show = (found) => {
  const drawn = state && state.svg === found.svg;
  state = found;
  document.title = by("title").textContent = state.title;
  by("proof").textContent = proof();
  by("numbers").replaceChildren(
    pair("objective", number(state.objective)), pair("bound", number(state.bound)), pair("price of the edits", cost()),
    ...state.measures.map(([name, text]) => pair(name, text)),
  );
  by("busy").hidden = !state.busy;
  by("undo").disabled = !state.edits.length;
  by("redo").disabled = !state.redo;
  by("edits").replaceChildren(...state.edits.map((one) => make("li", one.words)));
  if (!state.busy || state.svg) {
    if (!drawn) {
      by("tree").innerHTML = state.svg || "";
      for (const box of by("tree").querySelectorAll("a.node")) {
        box.addEventListener("click", (event) => { event.preventDefault(); choose(Number(box.dataset.node), true); });
      }
    }
    const edited = new Set(state.edits.map((one) => one.node));
    const at = new Map(state.nodes.map((one) => [one.node, one.at]));
    for (const box of document.querySelectorAll("a.node")) box.classList.toggle("edited", edited.has(at.get(Number(box.dataset.node))));
    if (!state.nodes.some((one) => one.node === chosen)) chosen = null;
    if (!drawn) choose(chosen, false);
    confusion();
    beside();
  }
  if (by("column").options.length !== state.columns.length) {
    by("column").replaceChildren(...state.columns.map((name) => make("option", name, {value: name})));
    by("of-groups").hidden = !state.columns.length;
  }
  for (const one of document.querySelectorAll(".of-run")) one.hidden = !state.writes;
  const known = JSON.stringify([state.edits, state.version]);
  if (!state.busy && grouped !== known) { grouped = known; groups(); }
  const edits = JSON.stringify(state.edits);
  if (listed !== edits) { listed = edits; by("trees").replaceChildren(); }
};

// A table of texts: names of columns, and rows whose first entry is a heading; an entry may be an element.
const tableOf = (caption, names, rows) => {
  const table = make("table"), head = make("tr"), body = make("tbody");
  table.append(make("caption", caption), make("thead"), body);
  for (const name of names) head.append(make("th", name, {scope: "col"}));
  table.tHead.append(head);
  for (const row of rows) {
    const line = make("tr");
    row.forEach((entry, k) => {
      const cell = make(k ? "td" : "th", entry instanceof Node ? "" : entry, k ? {} : {scope: "row"});
      if (entry instanceof Node) cell.append(entry);
      line.append(cell);
    });
    body.append(line);
  }
  return table;
};

const confusion = () => {
  by("confusion").replaceChildren(...state.confusion.map((one) => tableOf(
    `Samples by class (rows) and prediction, ${one.name}`, ["", ...state.labels],
    one.counts.map((counts, k) => [state.labels[k], ...counts.map(String)]),
  )));
};

const share = (value) => `${(100 * value).toFixed(1)}%`;

const groups = async () => {
  const column = by("column").value, place = by("groups");
  if (!column || !state.svg) { place.replaceChildren(); return; }
  try {
    const found = await ask("/groups", {column});
    const names = ["group", "samples"];
    if (found[0].wrong !== undefined) names.push("wrong");
    names.push(...(found[0].shares ? state.labels.map((label) => `predicted ${label}`) : ["mean prediction"]));
    place.replaceChildren(tableOf(`Training samples by ${column}`, names, found.map((one) => [
      one.group, String(one.samples), ...(one.wrong === undefined ? [] : [`${one.wrong} (${share(one.wrong / one.samples)})`]),
      ...(one.shares ? one.shares.map(share) : [number(one.mean)]),
    ])));
  } catch (error) {
    place.replaceChildren();
  }
};

const beside = () => {
  by("beside").hidden = !state.free;
  if (!state.free) return;
  const measures = state.free.measures.map(([name, text]) => `${name}: ${text}`);
  by("free-numbers").textContent = [`objective ${number(state.free.objective)}`, ...measures].join("; ");
  if (by("free").dataset.drawn) return;
  by("free").innerHTML = state.free.svg;
  by("free").dataset.drawn = "1";
  // Its nodes are not edited: they are no links, and their names are there once.
  for (const box of by("free").querySelectorAll("a")) { box.replaceWith(...box.childNodes); }
  for (const one of by("free").querySelectorAll("[id]")) one.removeAttribute("id");
};

const near = async (within) => {
  const place = by("trees");
  place.replaceChildren(make("p", "Searching", {class: "faint"}));
  try {
    const found = await ask("/near", {within: within / 100});
    const rows = found.trees.map((one, k) => [
      String(k + 1), number(one.objective), String(one.splits),
      [...one.more.map((name) => `+ ${name}`), ...one.less.map((name) => `− ${name}`)].join(", ") || "the same",
      button("Load", () => edit("load", {number: k})),
    ]);
    const all = found.complete ? `All ${found.trees.length} trees` : `The best ${found.trees.length} trees`;
    place.replaceChildren(tableOf(`${all} within ${within} % of the best one`,
                                  ["tree", "objective", "splits", "features", ""], rows));
  } catch (error) {
    place.replaceChildren();
    failed(error);
  }
};

const choose = (node, moves) => {
  chosen = node;
  asked += 1;
  for (const box of document.querySelectorAll("a.node")) box.classList.toggle("chosen", Number(box.dataset.node) === node);
  const place = by("node"), known = state.nodes.find((one) => one.node === node);
  place.replaceChildren();
  by("node-title").textContent = known ? `Node ${known.at}: ${known.headline}` : "No node is chosen";
  if (!known) return;
  place.append(make("p", known.samples));
  const actions = make("div", "", {class: "actions"}), feature = known.feature, at = known.at;
  if (feature) {
    actions.append(
      button("Keep this split", () => edit("pin", {node: at, feature, threshold: known.threshold})),
      button(`Keep ${known.name}`, () => edit("pin", {node: at, feature: known.column})),
      button(`Not ${known.name} here`, () => edit("forbid", {node: at, feature: known.column})),
      button(`${known.name} nowhere`, () => edit("forbid", {feature: known.column})),
      button("No split here", () => edit("leaf", {node: at})),
    );
  } else if (known.leaf && !known.last) {
    actions.append(button("Stays a leaf", () => edit("leaf", {node: at})));
  }
  for (const name of known.others) {
    actions.append(
      button(`Not ${name.short} here`, () => edit("forbid", {node: at, feature: name.column})),
      button(`${name.short} nowhere`, () => edit("forbid", {feature: name.column})),
    );
  }
  if (known.others.length) actions.append(button("No split here", () => edit("leaf", {node: at})));
  if (known.leaf) {
    for (const label of state.labels) actions.append(button(`Predicts ${label}`, () => edit("label", {node: at, label})));
  }
  place.append(actions);
  if (!known.last) place.append(splitForm(at));
  if (feature || (known.leaf && !known.last)) {
    place.append(make("p", "", {class: "actions"}));
    place.lastChild.append(button("Which other splits?", () => ranked(at)));
    if (feature) place.lastChild.append(button("Which other thresholds?", () => curve(at, feature, known.name)));
    place.append(make("div", "", {id: "answer", "aria-live": "polite"}));
  }
  if (moves) by("panel").focus();
};

// A split that is named: a column, and a threshold or any.
const splitForm = (node) => {
  const form = make("form"), column = make("select", "", {id: "split-column"}), at = make("input", "", {
    id: "split-at", inputmode: "decimal", size: 7, autocomplete: "off", placeholder: "any",
  });
  column.append(...state.features.map((name) => make("option", name, {value: name})));
  const pin = make("button", "Split so");
  form.append(make("label", "Split on", {for: "split-column"}), column, make("label", "below", {for: "split-at"}), at, pin);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at.value.trim().replace(",", "."), value = Number(text);
    if (text && !Number.isFinite(value)) { failed(new Error(`The threshold is ${at.value}, and has to be a number.`)); return; }
    edit("pin", {node, feature: column.value, threshold: text ? value : null});
  });
  return form;
};

const answer = async (path, entries, shown) => {
  const own = ++asked, place = by("answer");
  place.replaceChildren(make("p", "Searching", {class: "faint"}));
  try {
    const found = await ask(path, entries);
    if (own === asked) place.replaceChildren(shown(found));
  } catch (error) {
    if (own === asked) { place.replaceChildren(); failed(error); }
  }
};

const ranked = (node) => answer("/alternatives", {node}, (found) => {
  if (!found.length) return make("p", "No other split is possible.");
  return tableOf("The best tree with each split at this node; all below is free", ["feature", "below", "objective", ""],
    found.map((one) => [
      one.name, number(one.threshold), number(one.objective) + (one.proven ? "" : " (best found)"),
      button("Pin", () => edit("pin", {node, feature: one.feature, threshold: one.threshold})),
    ]));
});

const curve = (node, feature, name) => answer("/curve", {node, feature}, (found) => {
  const here = state.nodes.find((one) => one.at === node && one.feature === feature);
  if (here && !state.busy) found.push({feature, threshold: here.threshold, objective: state.objective, proven: state.proven});
  const usable = found.filter((one) => one.objective !== null).sort((a, b) => a.threshold - b.threshold);
  if (usable.length < 2) return make("p", "There is no other threshold.");
  const space = "http://www.w3.org/2000/svg", width = 400, height = 200, left = 60, low = 170;
  const drawn = (tag, attributes, text = "") => {
    const element = document.createElementNS(space, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const xs = usable.map((one) => one.threshold), ys = usable.map((one) => one.objective);
  const scale = (values, from, to) => {
    const least = Math.min(...values), most = Math.max(...values);
    return (value) => most > least ? from + (value - least) / (most - least) * (to - from) : (from + to) / 2;
  };
  const x = scale(xs, left, width - 12), y = scale(ys, low, 14);
  const picture = drawn("svg", {viewBox: `0 0 ${width} ${height}`, class: "curve", role: "group",
                                "aria-label": `Objective by the threshold of ${name}`});
  picture.append(
    drawn("path", {d: "M" + usable.map((one) => `${x(one.threshold).toFixed(1)} ${y(one.objective).toFixed(1)}`).join("L")}),
    drawn("text", {x: 2, y: low}, number(Math.min(...ys))), drawn("text", {x: 2, y: 18}, number(Math.max(...ys))),
    drawn("text", {x: left, y: height - 8}, number(Math.min(...xs))),
    drawn("text", {x: width - 12, y: height - 8, "text-anchor": "end"}, number(Math.max(...xs))),
  );
  for (const one of usable) {
    const dot = drawn("circle", {cx: x(one.threshold).toFixed(1), cy: y(one.objective).toFixed(1), r: 6, tabindex: 0,
      role: "button", class: one.proven ? "" : "open",
      "aria-label": `Pin ${name} below ${number(one.threshold)}: ${number(one.objective)}`});
    dot.append(drawn("title", {}, `${name} < ${number(one.threshold)}: ${number(one.objective)}`));
    const pin = () => edit("pin", {node, feature: one.feature, threshold: one.threshold});
    dot.addEventListener("click", pin);
    dot.addEventListener("keydown", (event) => { if (["Enter", " "].includes(event.key)) { event.preventDefault(); pin(); } });
    picture.append(dot);
  }
  // The threshold is dragged along the curve: a line follows the nearest point, which is pinned in the end.
  const line = drawn("line", {y1: 14, y2: low, class: "marker"}), told = make("p", "", {class: "faint", "aria-live": "polite"});
  const nearest = (event) => {
    const box = picture.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * width;
    return usable.reduce((best, one) => Math.abs(x(one.threshold) - at) < Math.abs(x(best.threshold) - at) ? one : best);
  };
  const moved = (one) => {
    for (const side of ["x1", "x2"]) line.setAttribute(side, x(one.threshold).toFixed(1));
    told.textContent = `${name} below ${number(one.threshold)}: ${number(one.objective)}`;
  };
  let drags = false;
  moved(usable.find((one) => here && one.threshold === here.threshold) || usable[0]);
  picture.append(line);
  picture.addEventListener("pointerdown", (event) => {
    if (event.target.tagName === "circle") return;
    drags = true;
    picture.setPointerCapture(event.pointerId);
    moved(nearest(event));
  });
  picture.addEventListener("pointermove", (event) => { if (drags) moved(nearest(event)); });
  picture.addEventListener("pointerup", (event) => {
    if (!drags) return;
    drags = false;
    const one = nearest(event);
    edit("pin", {node, feature: one.feature, threshold: one.threshold});
  });
  const part = make("div");
  part.append(picture, told);
  return part;
});

const download = (name, text, kind) => {
  const link = make("a", "", {download: name, href: URL.createObjectURL(new Blob([text], {type: kind}))});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

const follow = async () => {
  let pause = 300;
  try {
    // A page that shows the end of a search needs nothing more of it.
    const found = await ask("/state", state && !state.busy ? {version: state.version} : {});
    if (by("proof").dataset.lost) { delete by("proof").dataset.lost; by("error").textContent = ""; }
    if (found.title && JSON.stringify(found) !== JSON.stringify(state)) show(found);
    pause = found.busy ? 200 : 1000;
  } catch (error) {
    by("proof").dataset.lost = "1";
    failed(new Error("The server does not answer: it was stopped, or it is searching. Edits are not sent."));
    pause = 2000;
  }
  setTimeout(follow, pause);
};

for (const one of document.querySelectorAll("[data-form]")) {
  one.addEventListener("click", async () => {
    by("error").textContent = "";
    try {
      const found = await ask("/written", {form: one.dataset.form});
      if (found.name) { download(found.name, found.text, "text/html"); return; }
      by("text").textContent = found.text || "There are no edits.";
      by("text").hidden = false;
      by("text").focus();
    } catch (error) {
      failed(error);
    }
  });
}
by("limit").addEventListener("submit", (event) => {
  event.preventDefault();
  edit("limit", {text: by("limit-text").value});
});
by("near").addEventListener("submit", (event) => {
  event.preventDefault();
  near(Number(by("within").value.replace(",", ".")));
});
by("column").addEventListener("change", groups);
by("picture").addEventListener("click", () => {
  const drawn = by("tree").querySelector("svg");
  if (!drawn) return;
  const picture = drawn.cloneNode(true);
  picture.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  // The style of the page is none of a file's.
  const styled = [...drawn.querySelectorAll("*")];
  [...picture.querySelectorAll("*")].forEach((one, k) => {
    const style = getComputedStyle(styled[k]);
    for (const name of ["fill", "stroke", "stroke-width", "fill-opacity", "font-size", "text-anchor", "dominant-baseline"]) {
      one.setAttribute(name, style.getPropertyValue(name));
    }
  });
  picture.setAttribute("font-family", getComputedStyle(drawn).fontFamily);
  download("tree.svg", new XMLSerializer().serializeToString(picture), "image/svg+xml");
});
by("undo").addEventListener("click", () => edit("undo"));
by("redo").addEventListener("click", () => edit("redo"));
follow();
