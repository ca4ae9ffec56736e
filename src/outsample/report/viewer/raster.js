// Draws points into an array of pixels, without canvas paths: one call per frame, not one per point.
const MAX_SMOOTH_POINTS = 250000;  // more points are drawn without antialiasing

// Pixel offsets of a mark from its centre: `core` is covered fully; `edge` holds triples of an offset
// and the coverage (of 256) by fill and rim. A hard mark has no edge, which is faster.
function sprite(radius, shape, rim, stride, hard = false) {
  const reach = Math.ceil(radius + rim + 0.5), core = [], edge = [];
  for (let y = -reach; y <= reach; y++) {
    for (let x = -reach; x <= reach; x++) {
      const far = distance(x, y, shape, radius);
      const fill = Math.min(Math.max(radius + 0.5 - far, 0), 1);
      const ring = Math.min(Math.max(radius + rim + 0.5 - far, 0), 1);
      if (fill > (hard ? 0.4 : 0.98)) core.push(y * stride + x);
      else if (!hard && ring > 0.02) edge.push(y * stride + x, fill * 256, rim ? ring * 256 : 0);
    }
  }
  return { core: Int32Array.from(core), edge: Int32Array.from(edge), reach };
}

function distance(x, y, shape, radius) {
  if (shape === 0) return Math.hypot(x, y);
  if (shape === 1) return 0.8 * (Math.abs(x) + Math.abs(y));  // a diamond
  return Math.max(0.9 * Math.abs(x) + 0.5 * (y - 0.2 * radius), -(y - 0.2 * radius) * 1.25,
    Math.abs(x) * 0.9 - 0.3) * (y > 0.9 * radius ? 1.4 : 1);  // a wedge, wide at its foot
}

class Raster {
  constructor(canvas, opaque = true) {
    this.pen = canvas.getContext("2d", { alpha: !opaque });
    this.canvas = canvas;
    this.sprites = new Map();
  }

  // Sizes are in device pixels; the margin makes clipping of marks at the border unnecessary.
  resize(wide, high, margin) {
    if (this.wide === wide && this.high === high && this.margin === margin) return;
    Object.assign(this, { wide, high, margin, stride: wide + 2 * margin });
    this.canvas.width = wide;
    this.canvas.height = high;
    this.image = this.pen.createImageData(this.stride, high + 2 * margin);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.sprites.clear();
  }

  clear(ground) { this.pixels.fill(ground); }

  // Printing ignores putImageData, so that the image is drawn through a second canvas.
  show(onPaper) {
    const { pen, image, margin, wide, high } = this;
    if (!onPaper) return pen.putImageData(image, -margin, -margin);
    const copy = document.createElement("canvas");
    copy.width = wide;
    copy.height = high;
    copy.getContext("2d").putImageData(image, -margin, -margin);
    pen.drawImage(copy, 0, 0);
  }

  mark(radius, shape, rim, hard) {
    const key = [radius, shape, rim, hard].join();
    if (!this.sprites.has(key)) {
      this.sprites.set(key, sprite(radius, shape, rim, this.stride, hard));
    }
    return this.sprites.get(key);
  }

  // Draws the points of one state; the pixel of x is atX + perX * x, and likewise for y.
  draw({ x, y, codes, states, kind }, colours, state, place, radius, rim, rimColour) {
    const { atX, perX, atY, perY } = place, { pixels, stride, margin, wide, high } = this;
    const cores = [], edges = [], n = x.length, hard = n > MAX_SMOOTH_POINTS;
    for (let shape = 0; shape < SHAPES; shape++) {
      const { core, edge } = this.mark(radius, shape, rim, hard);
      cores.push(core);
      edges.push(edge);
    }
    const shapes = Uint8Array.from({ length: 256 }, (_, code) => shapeOf(kind, code));
    const { reach } = this.mark(radius, 0, rim, hard), fade = state === 2 ? 256 : 0, M = 0xff00ff;
    const right = wide + reach, foot = high + reach;
    for (let k = 0; k < n; k++) {
      if (states[k] !== state) continue;
      const px = Math.floor(atX + perX * x[k] + 0.5), py = Math.floor(atY + perY * y[k] + 0.5);
      if (!(px >= -reach && px < right && py >= -reach && py < foot)) continue;
      const at = (py + margin) * stride + px + margin, code = codes[k], shape = shapes[code];
      const colour = colours[code + fade], core = cores[shape], edge = edges[shape];
      for (let c = 0; c < core.length; c++) pixels[at + core[c]] = colour;
      for (let e = 0; e < edge.length; e += 3) {
        const here = at + edge[e], fill = edge[e + 1], ring = edge[e + 2];
        let under = pixels[here];
        if (ring) under = blended(under, rimColour, ring, M);
        pixels[here] = fill ? blended(under, colour, fill, M) : under;
      }
    }
  }
}

function blended(under, over, share, M) {
  const keep = 256 - share;
  const rb = ((under & M) * keep + (over & M) * share) >>> 8;
  const g = (((under >>> 8) & 255) * keep + ((over >>> 8) & 255) * share) >>> 8;
  return (0xff000000 | (rb & M) | (g << 8)) >>> 0;
}

// The arrays of a layer in drawing order: sequential memory access dominates the time for a million
// points.
function laidOut({ x, y, paint, states }) {
  const { order, codes, kind } = paint, n = order.length;
  const laid = { x: new Float32Array(n), y: new Float32Array(n), codes: new Uint8Array(n),
    states: new Uint8Array(n), kind };
  for (let k = 0; k < n; k++) {
    const i = order[k];
    laid.x[k] = x[i];
    laid.y[k] = y[i];
    laid.codes[k] = codes[i];
    laid.states[k] = states[i];
  }
  return laid;
}

// Uniform grid over the map, to find points by position.
class Grid {
  constructor(x, y) {
    const n = x.length, cells = Math.max(1, Math.min(1024, Math.ceil(Math.sqrt(n / 4))));
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < n; i++) {
      if (x[i] < left) left = x[i];
      if (x[i] > right) right = x[i];
      if (y[i] < low) low = y[i];
      if (y[i] > high) high = y[i];
    }
    Object.assign(this, { x, y, cells, left, low, right, high,
      perX: cells / (right - left || 1), perY: cells / (high - low || 1) });
    this.starts = new Uint32Array(cells * cells + 1);
    this.members = new Uint32Array(n);
    const cell = new Uint32Array(n);
    for (let i = 0; i < n; i++) {
      cell[i] = this.column(x[i]) + cells * this.row(y[i]);
      this.starts[cell[i] + 1]++;
    }
    for (let c = 0; c < cells * cells; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice();
    for (let i = 0; i < n; i++) this.members[next[cell[i]]++] = i;
  }

  column(x) { return this.clamped((x - this.left) * this.perX); }
  row(y) { return this.clamped((y - this.low) * this.perY); }
  clamped(at) { return Math.max(0, Math.min(this.cells - 1, Math.floor(at))); }

  // Calls `see` with every point in the cells that overlap a box.
  visit(left, right, low, high, see) {
    if (right < this.left || left > this.right || high < this.low || low > this.high) return;
    for (let r = this.row(low); r <= this.row(high); r++) {
      for (let c = this.column(left); c <= this.column(right); c++) {
        const at = c + this.cells * r;
        for (let k = this.starts[at]; k < this.starts[at + 1]; k++) see(this.members[k]);
      }
    }
  }
}
