// The map with arrivals: rings around unusual ones, a fading ring around new ones.
const PULSE_MS = 1200, STEP_MS = 40, MAX_RINGS = 400, UNUSUAL_COLOUR = { light: "#d55e00", dark: "#ff8c42" };

class LiveMap extends MapView {
  constructor(stage, data, arrivals, tell) {
    super(stage, data, tell);
    this.arrivals = arrivals;
    this.rowOf = new Map();
    data.rows.forEach((row, at) => this.rowOf.set(row, at));
    this.base = { pixels: new Uint32Array(0) };  // the picture of the training points alone
    this.forget();
  }

  forget() {
    this.pulses = [];  // arrivals by id, and when they came
    this.neighborsById = new Map();  // of arrivals whose details were requested
    this.point(null);
  }

  // Draw another layer of arrivals.
  replace(layer, column) {
    const { a, b, single } = this.axes, half = this.data.half, before = this.under;
    const along = (axis, unit) => layer.coordinates[axis].map((v) => v * (half[axis] / unit));
    layer.x = along(a, this.unit[0]);
    layer.y = single ? Float32Array.from(layer.ids, (id) => 0.24 * ((id * 0.618034) % 1 - 0.5))
      : along(b, this.unit[1]);
    layer.paint = painted(layer, layer.columns.find(({ name }) => name === column) || null);
    layer.colours = this.tables[layer.paint.kind];
    layer.rings = [];
    for (let i = layer.n - 1; i >= 0 && layer.rings.length < MAX_RINGS; i--) {
      if (this.arrivals.isUnusual(layer.first + i)) layer.rings.push(i);
    }
    this.data.placed = layer;
    this.layers = [this.data.training, layer];
    if (before && before.layer.kind === "new") {  // the same arrival at its new index
      const i = placeOf(layer, before.layer.ids[before.i]);
      if (i < 0) this.point(null);
      else this.under = { layer, i, kept: before.kept };
    }
    this.later(true);
  }

  pulse(ids) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const now = performance.now();
    for (const id of ids.slice(-50)) this.pulses.push({ id, now });
    this.pulses = this.pulses.slice(-100);
    this.later(false);
  }

  setNeighbors(id, near) {
    this.neighborsById.set(id, near);
    if (this.neighborsById.size > 200) this.neighborsById.delete(this.neighborsById.keys().next().value);
    this.later(false);
  }

  neighborsOf(layer, i) {
    const near = layer.kind === "new" && this.neighborsById.get(layer.ids[i]);
    return near ? { known: true, found: near } : super.neighborsOf(layer, i);
  }

  // The training points are drawn when the map has moved, otherwise copied.
  drawPoints() {
    const { training, placed } = this.data, { base, raster } = this, at = this.begin();
    const here = [this.wide, this.high, this.dense, this.zoom, ...Object.values(at)].join();
    const same = base.here === here && base.laid === training.laid && base.colours === training.colours;
    if (same) raster.pixels.set(base.pixels);
    else {
      this.drawLayer(training, 1, at);
      if (base.pixels.length !== raster.pixels.length) base.pixels = new Uint32Array(raster.pixels.length);
      base.pixels.set(raster.pixels);
      Object.assign(base, { here, laid: training.laid, colours: training.colours });
    }
    this.drawLayer(placed, 1, at);
    raster.show(false);
  }

  drawLines() {
    super.drawLines();
    const layer = this.data.placed, { pen } = this, now = performance.now();
    if (!layer.rings) return;
    const radius = this.radius(layer) / this.dense;
    pen.lineWidth = 2;
    pen.strokeStyle = UNUSUAL_COLOUR[this.theme];
    pen.beginPath();
    for (const i of layer.rings) {
      const [x, y] = this.toScreen(layer, i);
      pen.moveTo(x + radius + 3, y);
      pen.arc(x, y, radius + 3, 0, 7);
    }
    pen.stroke();
    pen.strokeStyle = this.ink;
    this.pulses = this.pulses.filter((pulse) => now - pulse.now < PULSE_MS);
    for (const { id, now: begin } of this.pulses) {
      const i = placeOf(layer, id), share = (now - begin) / PULSE_MS;
      if (i < 0) continue;
      pen.globalAlpha = 1 - share;
      pen.beginPath();
      pen.arc(...this.toScreen(layer, i), radius + 2 + 16 * share, 0, 7);
      pen.stroke();
    }
    pen.globalAlpha = 1;
    if (this.pulses.length && !this.stepping) {
      this.stepping = setTimeout(() => { this.stepping = 0; this.later(false); }, STEP_MS);
    }
  }
}

function placeOf({ ids }, id) {
  const i = lowest(ids, id);
  return ids[i] === id ? i : -1;
}
