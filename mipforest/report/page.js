"use strict";
// Makes the picture of the tree move, and shows all about the node under the pointer or the focus beside it.
// Sends samples that the reader types through the tree, or adds up their points.
// Nothing of a run is in here: what is shown is copied from the list that the page holds anyway.
const picture = (() => {
  const frame = document.getElementById("view");
  if (!frame) return null;
  document.documentElement.classList.add("scripted");
  const drawing = frame.querySelector("svg");
  const panel = document.getElementById("panel");
  const nodes = [...frame.querySelectorAll(".node")], edges = [...frame.querySelectorAll(".edges path")];
  const full = drawing.getAttribute("viewBox");
  const [, , width, height] = full.split(" ").map(Number);
  const LARGEST = 6, READABLE = 0.6, STEP = 1.25, MOVE = 60, LOWEST = 260;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const size = () => [Math.max(frame.clientWidth, 1), Math.max(frame.clientHeight, 1)];
  const whole = () => Math.min(size()[0] / width, size()[1] / height, 1.2);
  let scale = 1, x = 0, y = 0; // pixels per unit of the picture; the unit in the middle of the frame

  function draw() {
    const [w, h] = size();
    scale = clamp(scale, whole() / 2, LARGEST);
    x = clamp(x, 0, width);
    y = clamp(y, 0, height);
    drawing.setAttribute("viewBox", `${x - w / scale / 2} ${y - h / scale / 2} ${w / scale} ${h / scale}`);
  }

  function fit() {
    [scale, x, y] = [whole(), width / 2, height / 2];
    draw();
  }

  function begin() {
    // A small tree needs no large frame; what the style sheet allows at most stays the most.
    frame.style.height = `${Math.max(height * clamp(size()[0] / width, READABLE, 1), LOWEST)}px`;
    fit();
    if (scale >= READABLE) return;
    // Letters that nobody can read are no beginning: the root at the top, as large as it needs to be.
    scale = READABLE;
    const root = nodes[0].getBBox();
    x = root.x + root.width / 2;
    y = size()[1] / scale / 2;
    draw();
  }

  function zoom(factor, dx = 0, dy = 0) {
    const before = scale;
    scale = clamp(scale * factor, whole() / 2, LARGEST);
    x += dx / before - dx / scale; // what lies dx, dy pixels from the middle stays there
    y += dy / before - dy / scale;
    draw();
  }

  function move(dx, dy) {
    x += dx / scale;
    y += dy / scale;
    draw();
  }

  function reveal(node) {
    const box = node.getBBox(), [w, h] = size().map((length) => length / scale / 2);
    if (box.x < x - w || box.x + box.width > x + w) x = box.x + box.width / 2;
    if (box.y < y - h || box.y + box.height > y + h) y = box.y + box.height / 2;
    draw();
  }

  function show(node) {
    if (node.classList.contains("shown")) return;
    const passed = new Set(); // the way from the root: node t hangs from node (t - 1) / 2
    for (let t = Number(node.dataset.node); t >= 0; t = Math.ceil(t / 2) - 1) passed.add(String(t));
    for (const part of [...nodes, ...edges]) part.classList.toggle("passed", passed.has(part.dataset.node));
    for (const other of nodes) other.classList.toggle("shown", other === node);
    const copy = document.getElementById(`all-${node.dataset.node}`).cloneNode(true);
    copy.removeAttribute("id");
    panel.replaceChildren(copy);
    panel.scrollTop = 0;
  }

  const nodeOf = (event) => event.target.closest(".node");
  const keys = {
    "+": () => zoom(STEP), "=": () => zoom(STEP), "-": () => zoom(1 / STEP), "0": fit,
    ArrowLeft: () => move(-MOVE, 0), ArrowRight: () => move(MOVE, 0),
    ArrowUp: () => move(0, -MOVE), ArrowDown: () => move(0, MOVE),
  };
  frame.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  const actions = { in: () => zoom(STEP), out: () => zoom(1 / STEP), fit };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", actions[button.dataset.zoom]);
  }
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !frame.contains(document.activeElement)) return;
    event.preventDefault();
    const box = frame.getBoundingClientRect();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? box.height : 1);
    const dx = event.clientX - box.left - box.width / 2, dy = event.clientY - box.top - box.height / 2;
    zoom(clamp(Math.exp(-pixels / 400), 0.5, 2), dx, dy);
  }, { passive: false });

  let held = null, dragged = false;
  frame.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = [event.clientX, event.clientY];
    dragged = false;
  });
  frame.addEventListener("pointermove", (event) => {
    if (!held) return;
    const dx = event.clientX - held[0], dy = event.clientY - held[1];
    if (!dragged && Math.hypot(dx, dy) < 5) return;
    if (!dragged) frame.setPointerCapture(event.pointerId);
    dragged = true;
    frame.classList.add("dragged");
    held = [event.clientX, event.clientY];
    move(-dx, -dy);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    frame.addEventListener(end, () => {
      held = null;
      frame.classList.remove("dragged");
    });
  }
  frame.addEventListener("dragstart", (event) => event.preventDefault());
  frame.addEventListener("click", (event) => {
    if (!nodeOf(event)) return;
    event.preventDefault();
    if (!dragged) show(nodeOf(event));
  });
  frame.addEventListener("pointerover", (event) => {
    if (nodeOf(event) && !held) show(nodeOf(event));
  });
  frame.addEventListener("focusin", (event) => {
    if (!nodeOf(event)) return;
    show(nodeOf(event));
    if (!held) reveal(nodeOf(event));
  });

  new ResizeObserver(draw).observe(frame);
  let closed = [];
  addEventListener("beforeprint", () => {
    drawing.setAttribute("viewBox", full);
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
    draw();
  });
  begin();
  show(nodes[0]);
  return { nodes, edges, show };
})();


// A sample that the reader types, by the numbers that the page holds.
(() => {
  const answer = document.getElementById("answer");
  if (!answer) return;
  document.documentElement.classList.add("scripted");
  const fields = [...document.querySelectorAll(".field input, .field select")];
  const chances = JSON.parse(answer.dataset.chances ?? "null"), points = JSON.parse(answer.dataset.points ?? "null");
  const make = (tag, ...parts) => {
    const made = document.createElement(tag);
    made.append(...parts);
    return made;
  };
  const percent = (share) => `${(100 * share).toFixed(1)}%`;
  const rounded = (value) => String(Number(value.toPrecision(6)));

  function typed() {
    const values = new Map(), names = new Map();
    for (const field of fields) {
      const first = Number(field.dataset.feature), option = field.selectedOptions?.[0];
      for (let k = 0; k < Number(field.dataset.count ?? 1); k += 1) {
        let value = NaN;
        if (!option) {
          const empty = field.value === "" && !field.validity.badInput, ends = JSON.parse(field.dataset.ends ?? "null");
          value = empty ? Number(field.dataset.fill ?? NaN) : field.valueAsNumber;
          if (ends) {
            // Of two features the first counts a missing value as smaller than all known ones, the second as larger.
            const [below, low, high, above] = ends;
            value = empty ? [below, above][k] : k ? Math.min(value, high) : Math.max(value, low);
          }
        } else if (!option.dataset.missing) {
          value = (option.dataset.on ?? "").split(" ").includes(String(k)) ? 1 : 0;
        }
        values.set(first + k, value);
        names.set(first + k, field.labels[0].textContent);
      }
    }
    return [values, names];
  }

  const weigh = (rule, values) => rule.terms.reduce(
    (sum, [j, w, offset, scale]) => sum + ((values.get(j) - offset) / scale) * w, rule.b);

  // A randomised tree sends a sample to all of its leaves, with probabilities.
  function mixed(values, names) {
    const { gamma, splits, leaves, classes, means } = chances, reach = [1], right = [];
    splits.forEach((rule, t) => {
      const score = weigh(rule, values);
      right[t] = 1 / (1 + Math.exp(-gamma * score));
      reach[2 * t + 1] = reach[t] / (1 + Math.exp(gamma * score));
      reach[2 * t + 2] = reach[t] * right[t];
    });
    const ends = reach.slice(splits.length), says = [];
    const mean = (value) => ends.reduce((sum, share, k) => sum + share * value(leaves[k]), 0);
    if (classes.length) {
      const shares = classes.map((name, k) => [name, mean((leaf) => leaf.classes[k])]).sort((a, b) => b[1] - a[1]);
      says.push(make("p", "Predicted class: ", make("strong", shares[0][0])));
      says.push(make("p", `Probabilities: ${shares.slice(0, 6).map(([name, share]) => `${name} ${percent(share)}`).join(", ")}`));
    } else {
      const value = mean((leaf) => weigh(leaf, values));
      says.push(make("p", "Predicted value: ", make("strong", rounded(value))));
    }
    const likely = ends.map((share, k) => [splits.length + k, share]).sort((a, b) => b[1] - a[1]).slice(0, 4);
    says.push(make("p", `Leaves: ${likely.map(([t, share]) => `n${t} ${percent(share)}`).join(", ")}`));
    if (!means) return says;
    const levels = make("ul");
    for (let first = 0; first < splits.length; first = 2 * first + 1) {
      const parts = new Map();
      let sent = 0;
      for (let t = first; t < 2 * first + 1; t += 1) {
        sent += reach[t] * right[t];
        for (const [j, w, , scale] of splits[t].terms) {
          const moved = (reach[t] * w * (values.get(j) - means[j])) / scale;
          parts.set(names.get(j), (parts.get(names.get(j)) ?? 0) + moved);
        }
      }
      const most = [...parts].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 4);
      const told = most.map(([name, moved]) => `${name} ${moved < 0 ? "−" : "+"}${Math.abs(moved).toPrecision(2)}`);
      levels.append(make("li", `${percent(sent)} to the right; ${told.join(", ")}`));
    }
    return [...says, make("p", "Level by level, what sends it right (+) or left (−) beside the mean of the training samples:"), levels];
  }

  // One way: what is said, and the nodes passed, the last one at the end.
  function way(values, names) {
    const list = make("ol"), says = [list], passed = [];
    let t = picture.nodes[0].dataset.node, score = 0;
    for (;;) {
      const entry = document.getElementById(`node-${t}`), rule = JSON.parse(entry.dataset.rule);
      const text = `n${t}: ${entry.querySelector(".says").textContent}`;
      passed.push(t);
      const needed = [...rule.terms ?? [], ...(rule.outcomes ?? []).flatMap(([, terms]) => terms)];
      if (chances) needed.push(...[...chances.splits, ...chances.leaves].flatMap((each) => each.terms ?? []));
      const unknown = needed.find(([j]) => !Number.isFinite(values.get(j)));
      if (unknown) {
        list.append(make("li", text));
        const name = names.get(unknown[0]);
        says.push(make("p", `The way ends at n${t}: it needs “${name}”, and there is no value. `
          + "This tree was fitted without missing values, and predicts only where there are none."));
        return [says, passed];
      }
      if (rule.yes === undefined) {
        list.append(make("li", make("strong", text)));
        if (chances) says.push(...mixed(values, names));
        else if (rule.terms) says.push(make("p", "Predicted value: ", make("strong", rounded(weigh(rule, values)))));
        for (const [name, terms, b] of rule.outcomes ?? []) {
          says.push(make("p", `Estimated outcome under ${name}: `, make("strong", rounded(weigh({ terms, b }, values)))));
        }
        if (answer.dataset.logistic) {
          const share = 1 / (1 + Math.exp(-Math.abs(rule.score ?? score)));
          says.push(make("p", `Probability of that class: ${percent(share)}`));
        }
        return [says, passed];
      }
      score = weigh(rule, values);
      list.append(make("li", `${text} – ${score >= 0 ? "yes" : "no"}`));
      t = String(score >= 0 ? rule.yes : rule.no);
    }
  }

  // The points of a score card, their total and its risk; the row of the total is marked.
  function added(values, names) {
    const list = make("ul"), says = [list];
    let total = 0;
    for (const [j, threshold, below, given, text] of points.rules) {
      if (!Number.isFinite(values.get(j))) {
        return [[make("p", `The card needs “${names.get(j)}”, and there is no value: neither a rule nor its opposite holds.`)], null];
      }
      if (below ? values.get(j) >= threshold : values.get(j) < threshold) continue;
      total += given;
      list.append(make("li", `${text}: ${given > 0 ? "+" : ""}${given}`));
    }
    const risk = 1 / (1 + Math.exp(-(total + points.intercept)));
    if (!list.children.length) says[0] = make("p", "No rule applies.");
    says.push(make("p", "Total: ", make("strong", String(total))));
    says.push(make("p", `Risk of ${points.outcome}: `, make("strong", percent(risk))));
    return [says, String(total)];
  }

  function go(event) {
    const [values, names] = typed();
    if (points) {
      const [says, total] = added(values, names);
      answer.replaceChildren(...says);
      for (const row of document.querySelectorAll(".risks tbody tr")) {
        row.classList.toggle("tried", row.cells[0].textContent === total);
      }
      return;
    }
    const [says, passed] = way(values, names);
    answer.replaceChildren(...says);
    if (!event) return; // the page opens with the root beside the picture, and no way marked
    for (const part of [...picture.nodes, ...picture.edges]) {
      part.classList.toggle("tried", passed.includes(part.dataset.node));
    }
    picture.show(picture.nodes.find((node) => node.dataset.node === passed.at(-1)));
  }

  for (const field of fields) field.addEventListener("input", go);
  go();
})();
