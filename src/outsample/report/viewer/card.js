// What is told about a point: a card beside it, and a sentence for those who do not see.
const TITLES = { p_value: "p-value", abnormality: "abnormality", main_reason: "reason",
  error_bar: "error bar", left_out_error: "leave-one-out error", bound: "bound",
  n_neighbors: "neighbours" };
const REASONS = { nearest_distance: "far from all training points",
  plane_distance: "off the surface that its neighbours lie on",
  relative_distance: "far for how dense its neighbourhood is",
  residual: "its neighbours lie apart on the map, the near ones counting most",
  dispersion: "its neighbours lie apart on the map, the far ones counting most" };

function told(table, name) { return Object.hasOwn(table, name) ? table[name] : name; }

function titled(name) { return told(TITLES, name); }

function nameOf(data, layer, i) {
  const column = layer.named;
  const row = layer.kind === "new" ? i : data.rows[i];
  return (column && column.raw(i)) || "row " + row;
}

// The column that names points: one called id or name, else words that hardly repeat.
function naming(layer) {
  const words = layer.columns.filter((column) => column.name !== "main_reason");
  return words.find((column) => /^(id|ids|_?index|name|key|uid|uuid|cell|barcode)$/i.test(column.name))
    || words.find((column) => column.kind === "text") || null;
}

class Card {
  constructor(stage, said, data, nearest = Infinity) {
    Object.assign(this, { stage, said, data, nearest });  // neighbours that are named
    this.box = element("div", "card", stage);
    this.box.hidden = true;
  }

  show(view, under) {
    this.box.hidden = !under;
    if (!under) return;
    const { layer, i } = under, { data } = this, fresh = layer.kind === "new";
    this.box.replaceChildren();
    const head = element("p", "card-name", this.box);
    element("bdi", "", head, nameOf(data, layer, i));
    element("span", "", head, fresh ? "new" : "training");
    const list = element("dl", "", this.box), read = [];
    const add = (name, value, plain) => {
      element("dt", "", list, name);
      element("bdi", "", element("dd", "", list), value);
      if (plain) read.push(name + " " + value);
    };
    const known = Object.keys(TITLES), rank = ({ name }) => (known.indexOf(name) + 99) % 99;
    const columns = layer.columns.filter((column) => column !== layer.named);
    for (const column of columns.sort((a, b) => rank(a) - rank(b)).slice(0, 12)) {
      const reason = column.name === "main_reason", bar = column.name === "error_bar";
      let value = reason ? told(REASONS, column.raw(i)) : column.shown(i);
      if (bar && column.data[i] > 2 * Math.max(...data.half)) value += ", wider than the map";
      add(titled(column.name), value, Object.hasOwn(TITLES, column.name));
    }
    add("place", data.axes.map((_, axis) =>
      figure(data.middle[axis] + layer.coordinates[axis][i] * data.half[axis], 4)).join(" · "));
    const near = view.neighborsOf(layer, i), named = near.found.slice(0, this.nearest);
    if (named.length) {
      add(near.known ? "nearest" : "nearest on the map", named.map(({ row, far }) => {
        const label = data.training.label ? " · " + data.training.label.raw(row) : "";
        const apart = Number.isNaN(far) ? "" : " at " + figure(far);
        return nameOf(data, data.training, row).slice(0, 22) + label + apart;
      }).join(",\n"));
    }
    this.said.textContent = `${fresh ? "New" : "Training"} point ${nameOf(data, layer, i)}. `
      + read.join(", ");
    this.put(view, under);
  }

  // Beside the point, clear of its circle and of the neighbours that are near it on the map.
  put(view, { layer, i }) {
    const [px, py] = view.toScreen(layer, i), { style } = this.box;
    const narrow = view.wide < 560;  // a phone: over the half where the point is not
    this.box.classList.toggle("docked", narrow);
    if (narrow) {
      const below = py < view.high / 2;
      Object.assign(style, { left: "6px", top: below ? "auto" : "6px", bottom: below ? "6px" : "auto" });
      return;
    }
    style.bottom = "auto";
    const { offsetWidth: w, offsetHeight: h } = this.box;
    const bar = layer.columns.find((column) => column.name === "error_bar");
    const around = [-1, 1].map((side) => {
      const circle = bar ? bar.number(i) / view.unit[0] * view.perUnit : 0;
      const near = view.neighborsOf(layer, i).found
        .map(({ row }) => side * (view.toScreen(view.data.training, row)[0] - px));
      return Math.max(10, ...[circle, ...near].filter((far) => far < 150)) + 12;
    });
    const left = px + around[1] + w < view.wide - 6 ? px + around[1] : px - around[0] - w;
    const inside = (v, size, all) => Math.max(6, Math.min(v, all - size - 6));
    style.left = inside(left, w, view.wide) + "px";
    style.top = inside(py - h / 2, h, view.high) + "px";
  }
}
