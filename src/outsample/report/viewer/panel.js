// The panel beside the map: colours, search, filter, selection.
function options(select, columns, first) {
  if (first) element("option", "", select, first).value = "";
  for (const column of columns) element("option", "", select, titled(column.name)).value = column.name;
}

// Columns to colour by: numbers and categories.
function colourable(layer) {
  const first = ["p_value", "error_bar", "abnormality", "left_out_error"];
  const rank = ({ name, kind }) => (first.includes(name) ? first.indexOf(name)
    : kind === "category" ? 4 : 5);
  return layer.columns.filter((column) => column.kind !== "text" && column !== layer.named)
    .sort((a, b) => rank(a) - rank(b));
}

// Histogram of p-values; the dashed line is the expectation for points like the training points.
function histogram(box, column, choice) {
  const bins = 20, counts = new Array(bins).fill(0);
  let total = 0;
  for (const p of column.data) {
    if (!(p >= 0)) continue;
    counts[Math.max(0, Math.min(bins - 1, Math.ceil(p * bins - 1e-6) - 1))]++;
    total++;
  }
  const expected = total / bins, highest = Math.max(...counts, expected), buttons = [];
  counts.forEach((count, at) => {
    const bar = element("button", "", box), from = at / bins, to = (at + 1) / bins;
    bar.type = "button";
    bar.style.setProperty("--share", 100 * count / highest + "%");
    bar.title = `p from ${figure(from)} to ${figure(to)}: ${grouped(count)} points, `
      + `${figure(expected)} expected`;
    bar.setAttribute("aria-label", bar.title);
    bar.addEventListener("click", () => {
      const same = choice.range[0] === from && choice.range[1] === to;
      choice.range = same ? [0, 1] : [from, to];
      choice.apply();
    });
    buttons.push(bar);
  });
  element("div", "even", box).style.bottom = 100 * expected / highest + "%";
  return () => buttons.forEach((bar, at) => {
    const on = choice.range[0] < (at + 1) / bins - 1e-9 && choice.range[1] > at / bins;
    bar.setAttribute("aria-pressed", String(on));
  });
}

function summary(view, choice) {
  const parts = [];
  for (const layer of [...view.layers].reverse()) {
    const rows = choice.rows(layer);
    if (!rows.length) continue;
    let words = `${grouped(rows.length)} ${layer.kind === "new" ? "new" : "training"}`;
    const p = choice.column(layer, "p_value");
    if (p) {
      const values = rows.map((i) => p.data[i]).filter((v) => v >= 0).sort((a, b) => a - b);
      const unusual = values.filter((v) => v <= Math.fround(0.01)).length;
      if (values.length) {
        words += ` (median p ${figure(values[values.length >> 1])}, ${grouped(unusual)} at p ≤ 0.01)`;
      }
    }
    const label = layer.label;
    if (label) {
      const counts = new Map();
      for (const i of rows) counts.set(label.data[i], (counts.get(label.data[i]) || 0) + 1);
      const common = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([code, count]) =>
        `${(label.words[code] || "missing").slice(0, 24)} ${Math.round(100 * count / rows.length)} %`);
      words += `; ${titled(label.name)}: ${common.join(", ")}`;
    }
    parts.push(words);
  }
  return parts.join(". ") || "no points";
}

function search(view, choice, status) {
  const input = byId("find"), list = byId("found");
  const go = () => {
    const wanted = input.value.trim().toLowerCase();
    list.replaceChildren();
    if (!wanted) { status.textContent = ""; return []; }
    const matches = [];
    for (const layer of [...view.layers].reverse()) {
      const words = layer.columns.filter((column) => column.kind !== "number" && column.name !== "main_reason");
      const hits = words.map((column) => column.kind === "category"
        ? column.words.map((word) => word.toLowerCase().includes(wanted)) : null);
      const numbered = !layer.named || layer.named.kind === "number";
      for (let i = 0; i < layer.n; i++) {
        if ((numbered && nameOf(view.data, layer, i) === wanted) || words.some((column, at) => hits[at] ? hits[at][column.data[i]]
          : column.words[i].toLowerCase().includes(wanted))) matches.push({ layer, i });
      }
    }
    for (const { layer, i } of matches.slice(0, 8)) {
      const button = element("button", "", element("li", "", list));
      button.type = "button";
      element("bdi", "", button, nameOf(view.data, layer, i));
      element("span", "", button, layer.label ? layer.label.shown(i) : layer.kind);
      button.addEventListener("click", () => view.visit(layer, i));
    }
    if (matches.length > 1) {
      const all = element("button", "all", element("li", "", list), `Select all ${grouped(matches.length)}`);
      all.type = "button";
      all.addEventListener("click", () => {
        const sets = new Map(view.layers.map((layer) => [layer, new Set()]));
        for (const { layer, i } of matches) sets.get(layer).add(i);
        choice.choose(`“${input.value.trim()}”`, (layer, i) => sets.get(layer).has(i));
      });
    }
    status.textContent = matches.length ? `${grouped(matches.length)} found` : "Nothing found";
    return matches;
  };
  let waiting = 0;
  input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(go, 120); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { input.value = ""; go(); }
    if (event.key !== "Enter") return;
    event.preventDefault();
    const [first] = go();
    if (first) view.visit(first.layer, first.i);
  });
}
