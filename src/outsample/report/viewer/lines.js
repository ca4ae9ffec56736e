// Overlay on the points: axes, labels, error bars, lines to neighbours, the lasso.
const SMALL = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const NAME = '600 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

// Keeps right-to-left text from reordering its surroundings.
function isolated(words) { return "\u2068" + words + "\u2069"; }

function haloed(view, words, x, y) {
  const { pen } = view;
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  pen.strokeStyle = css(view.ground);
  pen.strokeText(words, x, y);
  pen.fillText(words, x, y);
}

function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
  const values = [];
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) {
    values.push(Math.abs(v) < step / 1e6 ? 0 : Number(v.toPrecision(12)));
  }
  return values;
}

function drawAxes(view) {
  const { pen, wide, high, data, axes, unit } = view, per = view.perUnit;
  const [left, top] = view.fromScreen(0, 0), [right, low] = view.fromScreen(wide, high);
  const value = (axis, v, at) => data.middle[axis] + v * unit[at];
  pen.font = SMALL;
  pen.fillStyle = view.soft;
  pen.strokeStyle = view.soft;
  pen.lineWidth = 1;
  pen.globalAlpha = 0.9;
  pen.textBaseline = "alphabetic";
  const mark = (x, y, dx, dy) => {
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + dx, y + dy);
    pen.lineWidth = 1;
    pen.strokeStyle = view.soft;
    pen.stroke();
  };
  pen.textAlign = "center";
  for (const v of ticks(value(axes.a, left, 0), value(axes.a, right, 0), wide / 130)) {
    const x = wide / 2 + ((v - data.middle[axes.a]) / unit[0] - view.middle[0]) * per;
    if (x < 34 || x > wide - 90) continue;
    mark(x, high, 0, -5);
    haloed(view, figure(v, 6), x, high - 9);
  }
  pen.textAlign = "left";
  if (!axes.single) {
    pen.textBaseline = "middle";
    for (const v of ticks(value(axes.b, low, 1), value(axes.b, top, 1), high / 110)) {
      const y = high / 2 - ((v - data.middle[axes.b]) / unit[1] - view.middle[1]) * per;
      if (y < 44 || y > high - 30) continue;
      mark(0, y, 5, 0);
      haloed(view, figure(v, 6), 9, y);
    }
    pen.textBaseline = "top";
    pen.font = "600 " + SMALL;
    haloed(view, isolated(data.axes[axes.b]) + " ↑", 9, 12);
  }
  pen.font = "600 " + SMALL;
  pen.textBaseline = "alphabetic";
  pen.textAlign = "right";
  haloed(view, isolated(data.axes[axes.a]) + " →", wide - 10, high - 9);
  pen.globalAlpha = 1;
}

// Positions of group names: where the training points of each group are densest.
function labelPlaces(view, column) {
  const { training } = view.data, cells = 32, { left, low, right, high } = training.grid;
  const across = (v, from, to) => Math.min(cells - 1, Math.floor((v - from) / (to - from || 1) * cells));
  const groups = new Map();
  for (let i = 0; i < training.n; i++) {
    const code = column.data[i];
    if (!groups.has(code)) groups.set(code, new Map());
    const counts = groups.get(code);
    const cell = across(training.x[i], left, right) + cells * across(training.y[i], low, high);
    const sum = counts.get(cell) || [0, 0, 0];
    counts.set(cell, [sum[0] + 1, sum[1] + training.x[i], sum[2] + training.y[i]]);
  }
  const places = [];
  for (const [code, counts] of groups) {
    if (column.words[code] === "") continue;
    let best = [0, 0, 0];
    for (const cell of counts.keys()) {
      const sum = [0, 0, 0];
      for (const step of [0, 1, -1, cells, -cells, cells + 1, cells - 1, 1 - cells, -1 - cells]) {
        const own = counts.get(cell + step);
        if (own) own.forEach((v, at) => { sum[at] += v; });
      }
      if (sum[0] > best[0]) best = sum;
    }
    places.push({ word: column.words[code], n: best[0], x: best[1] / best[0], y: best[2] / best[0] });
  }
  return places.sort((a, b) => b.n - a.n);
}

function drawLabels(view) {
  const { pen } = view, per = view.perUnit, taken = [];
  pen.font = NAME;
  pen.fillStyle = view.ink;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (const { word, x, y } of view.labels) {
    const px = view.wide / 2 + (x - view.middle[0]) * per;
    const py = view.high / 2 - (y - view.middle[1]) * per;
    const short = word.length > 24 ? word.slice(0, 23) + "…" : word;
    const half = pen.measureText(short).width / 2 + 3;
    if (taken.some((t) => Math.abs(t[0] - px) < t[2] + half && Math.abs(t[1] - py) < 17)) continue;
    taken.push([px, py, half]);
    haloed(view, isolated(short), px, py);
  }
}

function drawPoint(view, { layer, i }) {
  const { pen, data } = view, per = view.perUnit, [px, py] = view.toScreen(layer, i);
  const bar = layer.columns.find((column) => column.name === "error_bar");
  const radius = bar ? bar.number(i) : NaN;
  if (Number.isFinite(radius)) {
    const rx = radius / view.unit[0] * per, ry = view.axes.single ? 0 : radius / view.unit[1] * per;
    pen.beginPath();
    if (view.axes.single) {
      for (const x of [px - rx, px + rx]) { pen.moveTo(x, py - 9); pen.lineTo(x, py + 9); }
      pen.moveTo(px - rx, py);
      pen.lineTo(px + rx, py);
    } else {
      pen.ellipse(px, py, Math.min(rx, 1e5), Math.min(ry, 1e5), 0, 0, 7);
      pen.globalAlpha = rx < view.wide / 2 ? 0.08 : 0;  // a large disc would shade the whole map
      pen.fillStyle = view.ink;
      pen.fill();
      pen.globalAlpha = 1;
    }
    pen.strokeStyle = view.ink;
    pen.lineWidth = 1.25;
    pen.stroke();
  }
  const near = view.neighborsOf(layer, i);
  pen.strokeStyle = view.ink;
  pen.lineWidth = 1.25;
  pen.setLineDash(near.known ? [] : [3, 3]);
  pen.globalAlpha = 0.75;
  pen.beginPath();
  for (const { row } of near.found) {
    const [x, y] = view.toScreen(data.training, row);
    pen.moveTo(px, py);
    pen.lineTo(x, y);
  }
  pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  for (const { row } of near.found) {
    const [x, y] = view.toScreen(data.training, row);
    ring(view, x, y, view.radius(data.training) / view.dense + 1.5, 1.5);
  }
  ring(view, px, py, view.radius(layer) / view.dense + 3, 2);
}

function ring(view, x, y, radius, width) {
  const { pen } = view;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.strokeStyle = css(view.ground);
  pen.lineWidth = width + 2;
  pen.stroke();
  pen.strokeStyle = view.ink;
  pen.lineWidth = width;
  pen.stroke();
}

function drawLasso(view) {
  const { pen } = view, per = view.perUnit;
  pen.beginPath();
  for (const [x, y] of view.lasso) {
    pen.lineTo(view.wide / 2 + (x - view.middle[0]) * per, view.high / 2 - (y - view.middle[1]) * per);
  }
  pen.closePath();
  pen.globalAlpha = 0.1;
  pen.fillStyle = view.ink;
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = view.ink;
  pen.lineWidth = 1.5;
  pen.setLineDash([5, 4]);
  pen.stroke();
  pen.setLineDash([]);
}
