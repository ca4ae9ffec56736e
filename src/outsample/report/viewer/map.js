// The map: a canvas of points below a canvas of lines and text, and the view's position and zoom.
const POINTER_REACH = 12;  // pixels
const MAX_LINES = 5;  // to the nearest training points

class MapView {
  constructor(stage, data, onPoint) {
    this.data = data;
    this.onPoint = onPoint;  // called with the point under the pointer, or null
    this.stage = stage;
    this.canvas = stage.querySelector(".points");
    this.top = stage.querySelector(".lines");
    this.raster = new Raster(this.canvas);
    this.pen = this.top.getContext("2d");
    this.layers = [data.training, data.placed].filter(Boolean);
    for (const layer of this.layers) layer.states = new Uint8Array(layer.n).fill(1);
    this.under = null;
    this.lasso = null;
    this.selecting = false;
    this.printing = false;
    this.labels = null;
    this.setAxes(0, Math.min(1, data.axes.length - 1));
    new ResizeObserver(() => this.later(true)).observe(stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
  }

  get theme() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return dark && !this.printing ? "dark" : "light";
  }

  // Both axes have the same scale, so that error bars are circles, unless the map is very elongated.
  setAxes(a, b) {
    const half = this.data.half, single = a === b;
    const most = Math.max(half[a], half[b]), alike = Math.min(half[a], half[b]) > most / 20;
    this.axes = { a, b, single };
    this.unit = single ? [half[a], Infinity] : alike ? [most, most] : [half[a], half[b]];
    for (const layer of this.layers) {
      const along = (axis, unit) => layer.coordinates[axis].map((v) => v * (half[axis] / unit));
      layer.x = along(a, this.unit[0]);
      layer.y = single ? scattered(layer.n) : along(b, this.unit[1]);
      layer.grid = new Grid(layer.x, layer.y);
      layer.laid = null;
    }
    this.fit();
  }

  fit() {
    const [training, placed] = this.layers.map((layer) => layer.grid);
    let box = [training.left, training.right, training.low, training.high];
    if (placed) {
      const all = [Math.min(box[0], placed.left), Math.max(box[1], placed.right),
        Math.min(box[2], placed.low), Math.max(box[3], placed.high)];
      const size = (b) => Math.max(b[1] - b[0], b[3] - b[2]);
      if (size(all) < 4 * size(box)) box = all;  // otherwise an outlier would shrink the map
    }
    this.home = box;
    this.middle = [(box[0] + box[1]) / 2, (box[2] + box[3]) / 2];
    this.zoom = 1;
    this.later(true);
  }

  // Pixels of the page for one unit of the map.
  get perUnit() {
    const [left, right, low, high] = this.home;
    return this.zoom * Math.min(this.wide * 0.92 / (right - left || 1),
      this.high * 0.9 / (high - low || 1));
  }

  toScreen(layer, i) {
    const per = this.perUnit;
    return [this.wide / 2 + (layer.x[i] - this.middle[0]) * per,
      this.high / 2 - (layer.y[i] - this.middle[1]) * per];
  }

  fromScreen(px, py) {
    const per = this.perUnit;
    return [this.middle[0] + (px - this.wide / 2) / per, this.middle[1] - (py - this.high / 2) / per];
  }

  move(dx, dy) {
    const per = this.perUnit;
    this.middle = [this.middle[0] - dx / per, this.middle[1] + dy / per];
    this.later(true);
  }

  zoomBy(factor, px = this.wide / 2, py = this.high / 2) {
    const zoom = Math.max(0.3, Math.min(2000, this.zoom * factor));
    const [x, y] = this.fromScreen(px, py);
    this.zoom = zoom;
    const [nx, ny] = this.fromScreen(px, py);
    this.middle = [this.middle[0] + x - nx, this.middle[1] + y - ny];
    this.later(true);
  }

  // Moves a point into view and shows its card.
  visit(layer, i) {
    const [px, py] = this.toScreen(layer, i), edge = 14;
    if (px < edge || py < edge || px > this.wide - edge || py > this.high - edge) {
      this.middle = [layer.x[i], layer.y[i]];
      this.later(true);
    }
    this.point(layer, i, true);
  }

  point(layer, i, kept = false) {
    const same = this.under && this.under.layer === layer && this.under.i === i;
    if (same && this.under.kept === kept) return;
    this.under = layer ? { layer, i, kept } : null;
    this.later(false);
    this.onPoint(this.under);
  }

  nearest(px, py) {
    const [x, y] = this.fromScreen(px, py), reach = POINTER_REACH / this.perUnit;
    for (const layer of [...this.layers].reverse()) {  // new points first
      let smallest = reach * reach, nearest = -1;
      layer.grid.visit(x - reach, x + reach, y - reach, y + reach, (i) => {
        if (layer.states[i] === 0) return;
        const squared = (layer.x[i] - x) ** 2 + (layer.y[i] - y) ** 2;
        if (squared < smallest) { smallest = squared; nearest = i; }
      });
      if (nearest >= 0) return { layer, i: nearest };
    }
    return null;
  }

  // Training rows nearest to a new point: in the data if the page has them (`known`), else on the map.
  neighborsOf(layer, i) {
    const training = this.data.training;
    if (layer !== training && layer.neighbors) {
      const neighbors = [];
      for (let k = 0; k < layer.width; k++) {
        const row = layer.neighbors[k * layer.n + i] - 1;
        const far = layer.distances ? layer.distances[k * layer.n + i] : NaN;
        if (row >= 0) neighbors.push({ row, far });
      }
      return { known: true, found: neighbors };
    }
    if (layer === training) return { known: false, found: [] };
    const x = layer.x[i], y = layer.y[i];
    let reach = 0.02, near = [];
    while (near.length < MAX_LINES && reach < 8) {
      near = [];
      training.grid.visit(x - reach, x + reach, y - reach, y + reach, (row) => {
        const far = Math.hypot(training.x[row] - x, training.y[row] - y);
        if (far <= reach) near.push({ row, far });
      });
      reach *= 2;
    }
    near.sort((a, b) => a.far - b.far || a.row - b.row);
    return { known: false, found: near.slice(0, MAX_LINES).map(({ row }) => ({ row, far: NaN })) };
  }

  restyle() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const paper = this.theme === "light";
    this.ink = paper ? "#1f2933" : colour("--ink");
    this.soft = paper ? "#55606c" : colour("--soft");
    this.ground = rgb(paper ? "#ffffff" : colour("--card"));
    this.groundPixel = packedColour(this.ground);
    this.tables = colourTable(this.theme, this.ground);
    for (const layer of this.layers) {
      if (layer.paint) layer.colours = this.tables[layer.paint.kind];
    }
    this.later(true);
  }

  paint(layer, column) {
    const { training, placed } = this.data;
    layer.paint = painted(layer, column, (layer === placed && training.paint.items) || []);
    layer.laid = null;
    // A category has the same colour for both kinds of points: training points are coloured first.
    if (layer === training && placed && placed.paint.kind === "names") {
      return this.paint(placed, placed.paint.column);
    }
    this.restyle();
  }

  radius(layer) {
    const sizes = layer.kind === "new" ? [5, 4, 3, 2, 1.4, 1] : [2.6, 2.2, 1.7, 1.3, 1, 1];
    const size = sizes[[400, 4000, 20000, 60000, 300000].filter((n) => layer.n > n).length];
    const grown = size * Math.min(2.4, Math.max(1, this.zoom) ** 0.3);
    const fits = Math.min(1, Math.max(0.72, this.wide / 700));
    return Math.max(0.5, Math.round(grown * fits * this.dense * 4) / 4);
  }

  later(all) {
    this.dirty = this.dirty || all;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    const box = this.stage.getBoundingClientRect();
    const wide = Math.round(box.width), high = Math.round(box.height);
    if (!wide || !high) return;
    // Up to 20,000 points are drawn at twice the resolution and scaled down, for round edges.
    const fine = this.data.training.n + (this.data.placed ? this.data.placed.n : 0) <= 20000;
    this.dense = this.printing ? 3 : Math.min(3, Math.max(devicePixelRatio || 1, fine ? 2 : 1));
    if (this.wide !== wide || this.high !== high) this.dirty = true;
    Object.assign(this, { wide, high });
    if (this.dirty) this.drawPoints();
    this.dirty = false;
    this.drawLines();
  }

  drawPoints() {
    const at = this.begin();
    for (const state of [2, 1]) {  // points that are not selected first
      for (const layer of this.layers) this.drawLayer(layer, state, at);
    }
    this.raster.show(this.printing);
  }

  // Clears the picture; returns the transformation from map units to pixels.
  begin() {
    const { dense, raster } = this, per = this.perUnit * dense;
    const W = Math.round(this.wide * dense), H = Math.round(this.high * dense);
    raster.resize(W, H, Math.ceil(34 * dense));
    raster.clear(this.groundPixel);
    return { atX: W / 2 - this.middle[0] * per, perX: per,
      atY: H / 2 + this.middle[1] * per, perY: -per };
  }

  drawLayer(layer, state, at) {
    const { dense } = this, radius = this.radius(layer), rim = layer.kind === "new" && radius > 2 * dense;
    layer.laid = layer.laid || laidOut(layer);
    this.raster.draw(layer.laid, layer.colours, state, at, radius, rim ? dense : 0, this.groundPixel);
  }

  drawLines() {
    const { pen, top, dense, wide, high } = this;
    const W = Math.round(wide * dense), H = Math.round(high * dense);
    // Resizing clears the canvas; in print, clearRect would paint white over the points.
    if (this.printing || top.width !== W || top.height !== H) {
      top.width = W;
      top.height = H;
    } else pen.clearRect(0, 0, wide, high);
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    drawAxes(this);
    if (this.labels) drawLabels(this);
    if (this.under) drawPoint(this, this.under);
    if (this.lasso) drawLasso(this);
  }
}

function scattered(n) {
  const y = new Float32Array(n);
  for (let i = 0; i < n; i++) y[i] = 0.24 * ((i * 0.618034) % 1 - 0.5);
  return y;
}
