// Filter by p-value, selection of points, and export of the selection.
class Choice {
  constructor(view, onChange) {
    this.view = view;
    this.onChange = onChange;
    this.range = [0, 1];
    this.kinds = { training: true, new: true };
    this.chosen = null;  // by layer, 1 for a selected point
    this.words = "";
  }

  column(layer, name) { return layer.columns.find((column) => column.name === name); }

  get filtered() { return this.range[0] > 0 || this.range[1] < 1; }

  // Both sides are rounded to float32, in which p-values are stored: 0.05 differs from float64.
  passes(p) {
    return !this.filtered
      || (p <= Math.fround(this.range[1]) && (this.range[0] === 0 || p > Math.fround(this.range[0])));
  }

  apply() {
    for (const layer of this.view.layers) {
      const own = layer.kind === "new" ? this.column(layer, "p_value") : null;
      const mask = this.chosen && this.chosen.get(layer), { states } = layer;
      const shown = this.kinds[layer.kind];
      for (let i = 0; i < layer.n; i++) {
        const visible = shown && (!own || this.passes(own.data[i]));
        states[i] = !visible ? 0 : !mask || mask[i] ? 1 : 2;
      }
      layer.laid = null;
    }
    this.view.later(true);
    this.onChange();
  }

  // Selects the visible points for which `test(layer, i)` is true; `words` describe the selection.
  choose(words, test) {
    const chosen = new Map();
    for (const layer of this.view.layers) {
      const mask = new Uint8Array(layer.n);
      for (let i = 0; i < layer.n; i++) if (layer.states[i] && test(layer, i)) mask[i] = 1;
      chosen.set(layer, mask);
    }
    Object.assign(this, { chosen, words });
    this.apply();
  }

  drop() {
    Object.assign(this, { chosen: null, words: "" });
    this.apply();
  }

  inside(polygon) {
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [x, y] of polygon) {
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [low, high] = [Math.min(low, y), Math.max(high, y)];
    }
    this.choose("in the lasso", ({ x, y }, i) => x[i] >= left && x[i] <= right
      && y[i] >= low && y[i] <= high && within(polygon, x[i], y[i]));
  }

  inView() {
    const { view } = this, [left, top] = view.fromScreen(0, 0);
    const [right, low] = view.fromScreen(view.wide, view.high);
    this.choose("in view", ({ x, y }, i) => x[i] >= left && x[i] <= right
      && y[i] >= low && y[i] <= top);
  }

  // Selected rows of a layer; all visible rows without a selection.
  rows(layer) {
    const rows = [];
    for (let i = 0; i < layer.n; i++) if (layer.states[i] === 1) rows.push(i);
    return rows;
  }

  csv() {
    const { view } = this, { data } = view, names = [];
    for (const layer of view.layers) {
      for (const { name } of layer.columns) if (!names.includes(name)) names.push(name);
    }
    const lines = [["set", "row", ...data.axes, ...names].map(cell).join(",")];
    for (const layer of [...view.layers].reverse()) {
      const columns = names.map((name) => this.column(layer, name));
      for (const i of this.rows(layer)) {
        const row = layer.kind === "new" ? i : data.rows[i];
        const where = data.axes.map((_, axis) => Number((data.middle[axis]
          + layer.coordinates[axis][i] * data.half[axis]).toPrecision(8)));
        const values = columns.map((column) => !column ? ""
          : column.kind === "number" ? column.raw(i) : cell(column.raw(i)));
        lines.push([layer.kind, row, ...where, ...values].join(","));
      }
    }
    return lines.join("\r\n") + "\r\n";
  }
}

// A cell of a CSV file; text that a spreadsheet would run as a formula is prefixed by a quote.
function cell(words) {
  const safe = /^[\s]*[=+\-@\t\r]/.test(words) && !/^[-+]?[\d.]+([eE][-+]?\d+)?$/.test(words)
    ? "'" + words : words;
  return /[",\r\n]|^\s|\s$/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
}

function within(polygon, x, y) {
  let inside = false;
  for (let a = 0, b = polygon.length - 1; a < polygon.length; b = a++) {
    const [ax, ay] = polygon[a], [bx, by] = polygon[b];
    if ((ay > y) !== (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

function saveFile(text, name) {
  const link = document.createElement("a");
  const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
