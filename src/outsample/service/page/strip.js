// P-values along time, small ones at the top; a brush selects the time span of the map.
const MIN_P = 1e-4, LOWEST = Math.log10(MIN_P), FOOT = 16;

class Strip {
  constructor(box, choose) {
    this.box = box;
    this.canvas = box.querySelector("canvas");
    this.pen = this.canvas.getContext("2d");
    this.choose = choose;  // called with shares of the time shown, from and until
    this.drag = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      this.canvas.setPointerCapture(event.pointerId);
      this.drag = this.share(event);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.drag !== null) this.brushed(event, false);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (this.drag !== null) this.brushed(event, true);
      this.drag = null;
    });
    this.canvas.addEventListener("pointercancel", () => { this.drag = null; });
  }

  share(event) {
    const box = this.canvas.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  }

  brushed(event, ended) {
    const here = this.share(event), [from, until] = [Math.min(here, this.drag), Math.max(here, this.drag)];
    if (until - from > 0.005) this.choose(from, until);
    else if (ended) this.choose(0, 1);
  }

  resize() {
    const dense = Math.min(2, devicePixelRatio || 1), { clientWidth, clientHeight } = this.box;
    const W = Math.round(clientWidth * dense), H = Math.round(clientHeight * dense);
    Object.assign(this, { dense, wide: clientWidth, high: clientHeight });
    if (!W || (this.canvas.width === W && this.canvas.height === H && this.image)) return;
    Object.assign(this.canvas, { width: W, height: H });
    this.image = this.pen.createImageData(W, H);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  height(p) {
    return 6 + (1 - Math.max(Math.log10(p), LOWEST) / LOWEST) * (this.high - FOOT - 10);
  }

  draw(view, arrivals, { begin, end, from, until }) {
    this.resize();
    const { pen, dense, wide, high } = this, x = (time) => (time - begin) / (end - begin || 1) * wide;
    if (!wide) return;
    this.marks(view, arrivals, begin, end);
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    pen.globalAlpha = 0.55;
    pen.fillStyle = css(view.ground);
    pen.fillRect(0, 0, x(from), high - FOOT);
    pen.fillRect(x(until), 0, wide - x(until), high - FOOT);
    pen.globalAlpha = 1;
    pen.fillStyle = pen.strokeStyle = view.soft;
    pen.font = SMALL;
    pen.textBaseline = "alphabetic";
    pen.textAlign = "left";
    pen.fillText(clock(begin), 6, high - 4);
    pen.textAlign = "right";
    pen.fillText(clock(end), wide - 6, high - 4);
    if (!arrivals.judged) return;
    const level = Math.round(this.height(arrivals.alpha)) + 0.5;
    pen.setLineDash([4, 4]);
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(0, level);
    pen.lineTo(wide, level);
    pen.stroke();
    pen.setLineDash([]);
    pen.textAlign = "left";
    haloed({ pen, ground: view.ground }, `p = ${figure(arrivals.alpha)}`, 6, level - 5);
  }

  // A square for each arrival, written to the pixels: there may be a hundred thousand.
  marks(view, arrivals, begin, end) {
    const { pixels, dense } = this, { width: W, height: H } = this.canvas, { times, alpha } = arrivals;
    const usual = packedColour(rgb(view.soft)), unusual = packedColour(rgb(UNUSUAL_COLOUR[view.theme]));
    const per = W / (end - begin || 1), even = Math.round(dense * (this.high - FOOT) / 2);
    const p = arrivals.values.get("p_value"), last = lowest(times, end + 1e-6, arrivals.n);
    pixels.fill(0);
    for (let at = arrivals.since(begin); at < last; at++) {
      const marked = p && p[at] <= alpha, half = marked ? 2 * dense : dense, colour = marked ? unusual : usual;
      const px = Math.round((times[at] - begin) * per), py = p ? Math.round(dense * this.height(p[at])) : even;
      const left = Math.max(0, px - half), right = Math.min(W, px + half), foot = Math.min(H, py + half);
      for (let row = py - half; row < foot; row++) {
        for (let x = row * W + left; x < row * W + right; x++) pixels[x] = colour;
      }
    }
    this.pen.putImageData(this.image, 0, 0);
  }
}
