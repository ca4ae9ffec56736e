// Details of a point: a card next to it, and a sentence for screen readers.
const TITLES = { p_value: "p-value", abnormality: "abnormality", main_reason: "reason",
  error_bar: "error bar", left_out_error: "leave-one-out error", bound: "bound",
  n_neighbors: "neighbours" };
const REASONS = { nearest_distance: "far from all training points",
  plane_distance: "off the surface that its neighbours lie on",
  relative_distance: "far for the density of its neighbourhood",
  residual: "its neighbours are far apart on the map (the nearest weigh most)",
  dispersion: "its neighbours are far apart on the map (the farthest weigh most)" };

function textFor(table, name) { return Object.hasOwn(table, name) ? table[name] : name; }

function titled(name) { return textFor(TITLES, name); }

function nameOf(data, layer, i) {
  const column = layer.named;
  const row = layer.kind === "new" ? i : data.rows[i];
  return (column && column.raw(i)) || "row " + row;
}

// The column that identifies points: called id or similar, else text that hardly repeats.
function naming(layer) {
  const words = layer.columns.filter((column) => column.name !== "main_reason");
  return words.find((column) => /^(id|ids|_?index|name|key|uid|uuid|cell|barcode)$/i.test(column.name))
    || words.find((column) => column.kind === "text") || null;
}

class Card {
  // `announcer` is the element that screen readers read; at most `maxNeighbors` are listed.
  constructor(stage, announcer, data, maxNeighbors = Infinity) {
    Object.assign(this, { stage, announcer, data, maxNeighbors });
    this.box = element("div", "card", stage);
    this.box.hidden = true;
  }

  show(view, under) {
    this.box.hidden = !under;
    if (!under) return;
    const { layer, i } = under, { data } = this, isNew = layer.kind === "new";
    this.box.replaceChildren();
    const head = element("p", "card-name", this.box);
    element("bdi", "", head, nameOf(data, layer, i));
    element("span", "", head, isNew ? "new" : "training");
    const list = element("dl", "", this.box), announced = [];
    const add = (name, value, announce) => {
      element("dt", "", list, name);
      element("bdi", "", element("dd", "", list), value);
      if (announce) announced.push(name + " " + value);
    };
    const ours = Object.keys(TITLES), rank = ({ name }) => (ours.indexOf(name) + 99) % 99;
    const columns = layer.columns.filter((column) => column !== layer.named);
    for (const column of columns.sort((a, b) => rank(a) - rank(b)).slice(0, 12)) {
      const reason = column.name === "main_reason", bar = column.name === "error_bar";
      let value = reason ? textFor(REASONS, column.raw(i)) : column.shown(i);
      if (bar && column.data[i] > 2 * Math.max(...data.half)) value += ", wider than the map";
      add(titled(column.name), value, Object.hasOwn(TITLES, column.name));
    }
    add("position", data.axes.map((_, axis) =>
      figure(data.middle[axis] + layer.coordinates[axis][i] * data.half[axis], 4)).join(" · "));
    const near = view.neighborsOf(layer, i), listed = near.found.slice(0, this.maxNeighbors);
    if (listed.length) {
      add(near.known ? "nearest" : "nearest on the map", listed.map(({ row, far }) => {
        const label = data.training.label ? " · " + data.training.label.raw(row) : "";
        const distance = Number.isNaN(far) ? "" : " at " + figure(far);
        return nameOf(data, data.training, row).slice(0, 22) + label + distance;
      }).join(",\n"));
    }
    this.announcer.textContent = `${isNew ? "New" : "Training"} point ${nameOf(data, layer, i)}. `
      + announced.join(", ");
    this.put(view, under);
  }

  // Puts the card next to the point, where it covers neither the error bar nor close neighbours.
  put(view, { layer, i }) {
    const [px, py] = view.toScreen(layer, i), { style } = this.box;
    const narrow = view.wide < 560;  // on a phone: the half of the map without the point
    this.box.classList.toggle("docked", narrow);
    if (narrow) {
      const below = py < view.high / 2;
      Object.assign(style, { left: "6px", top: below ? "auto" : "6px", bottom: below ? "6px" : "auto" });
      return;
    }
    style.bottom = "auto";
    const { offsetWidth: w, offsetHeight: h } = this.box;
    const bar = layer.columns.find((column) => column.name === "error_bar");
    const gaps = [-1, 1].map((side) => {
      const circle = bar ? bar.number(i) / view.unit[0] * view.perUnit : 0;
      const offsets = view.neighborsOf(layer, i).found
        .map(({ row }) => side * (view.toScreen(view.data.training, row)[0] - px));
      return Math.max(10, ...[circle, ...offsets].filter((offset) => offset < 150)) + 12;
    });
    const left = px + gaps[1] + w < view.wide - 6 ? px + gaps[1] : px - gaps[0] - w;
    const inside = (v, size, all) => Math.max(6, Math.min(v, all - size - 6));
    style.left = inside(left, w, view.wide) + "px";
    style.top = inside(py - h / 2, h, view.high) + "px";
  }
}
