// Colours of points. Lightness is monotonic along the scale, so that it can be read without
// distinguishing hues; on a dark background it is reversed. Categories use the palette of Okabe and
// Ito and two more colours that are distinguishable from it for every kind of colour vision (tested);
// further categories get another shape.
const COLD_TO_HOT = {
  light: ["#a3c4e0", "#8fa3d4", "#9379be", "#a3478f", "#a8174f", "#7a0218"],
  dark: ["#31507a", "#5a63a3", "#9a68b0", "#dd7f86", "#ffb35c", "#fff3a3"],
};
const NAMED = {
  light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#33202e", "#8420f0"],
  dark: ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#d6ffd6", "#8a4dff"],
};
const PLAIN = { light: "#b4bcc6", dark: "#56606c" };
const MISSING = { light: "#6e7681", dark: "#8b949e" };
const RAMP = 240, OTHER = 250, ABSENT = 251, PLAIN_CODE = 252;  // codes: 0 to 239 are the scale
const SHAPES = 3, MAX_CATEGORIES = 24, CROWD = 10000;

function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function packedColour([r, g, b]) {
  return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}

function mixed(from, to, share) {
  return from.map((value, at) => Math.round(value + (to[at] - value) * share));
}

function onScale(theme, share) {
  const stops = COLD_TO_HOT[theme], place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const at = Math.min(Math.floor(place), stops.length - 2);
  return mixed(rgb(stops[at]), rgb(stops[at + 1]), place - at);
}

function css(colour) { return `rgb(${colour.join(" ")})`; }

// Maps numbers to positions on the scale, from 0 to 1; p-values logarithmically, small ones hot.
function scaleOf(column) {
  const values = column.data, n = values.length, step = Math.max(1, Math.floor(n / 20000));
  const sample = [];
  let smallest = Infinity;
  for (let i = 0; i < n; i++) {
    if (values[i] < smallest) smallest = values[i];
    if (i % step === 0 && Number.isFinite(values[i])) sample.push(values[i]);
  }
  if (column.name === "p_value") {
    const low = Math.log10(Math.min(0.01, Math.max(smallest, 1e-6)));
    return { share: (v) => Math.log10(v) / low, value: (s) => 10 ** (s * low),
      low: 1, high: 10 ** low, ends: [false, false] };
  }
  const sorted = Float64Array.from(sample).sort();
  let low = sorted[Math.floor(0.01 * sorted.length)] ?? 0;
  let high = sorted[Math.ceil(0.99 * sorted.length) - 1] ?? 1;
  if (!(high > low)) high = low + (Math.abs(low) || 1);
  const ends = [sorted[0] < low, sorted[sorted.length - 1] > high];
  if (low > 0 && high / low > 100) {
    const a = Math.log10(low), b = Math.log10(high);
    return { share: (v) => (Math.log10(v) - a) / (b - a), value: (s) => 10 ** (a + s * (b - a)),
      low, high, ends };
  }
  return { share: (v) => (v - low) / (high - low), value: (s) => low + s * (high - low),
    low, high, ends };
}

// Returns the colour codes of all points, the drawing order (last on top), and the legend.
function painted(points, column, others = []) {
  const n = points.n, codes = new Uint8Array(n);
  if (!column) {
    codes.fill(PLAIN_CODE);
    return { codes, order: mixedOrder(n), column, kind: "plain" };
  }
  if (column.kind === "number") {
    const scale = scaleOf(column);
    const missing = column.name === "left_out_error" ? PLAIN_CODE : ABSENT;
    let absent = 0;
    for (let i = 0; i < n; i++) {
      const share = scale.share(column.data[i]);
      if (Number.isNaN(share)) { codes[i] = missing; absent++; }
      else codes[i] = share <= 0 ? 0 : share >= 1 ? RAMP - 1 : share * RAMP;
    }
    const hot = column.name === "p_value" ? Math.floor(scale.share(0.01) * RAMP) : RAMP - 1;
    return { codes, order: salientLast(codes, hot), column, kind: "scale", scale, absent };
  }
  const { place, items } = namedItems(column, n, others);
  let absent = 0;
  for (let i = 0; i < n; i++) {
    codes[i] = column.kind === "category" ? place[column.data[i]] : OTHER;
    if (codes[i] === ABSENT) absent++;
  }
  return { codes, order: mixedOrder(n), column, kind: "names", items, absent };
}

// The most frequent categories get a colour, in alphabetical order. A category of both kinds of points
// has the same colour in both; the others take the free colours.
function namedItems(column, n, others) {
  const counts = new Float64Array(column.words.length);
  for (let i = 0; i < n; i++) counts[column.kind === "category" ? column.data[i] : i]++;
  const common = [...counts.keys()].filter((at) => column.words[at] !== "")
    .sort((a, b) => counts[b] - counts[a]).slice(0, MAX_CATEGORIES)
    .sort((a, b) => column.words[a].localeCompare(column.words[b], "en", { numeric: true }));
  const place = new Uint8Array(column.words.length).fill(OTHER);
  column.words.forEach((word, at) => { if (word === "") place[at] = ABSENT; });
  if (column.kind === "text") return { place, items: [] };
  const taken = new Map(others.map(({ word, code }) => [word, code]));
  const free = [...Array(2 * MAX_CATEGORIES).keys()].filter((code) => ![...taken.values()].includes(code));
  const items = common.map((at) => {
    const word = column.words[at], code = taken.has(word) ? taken.get(word) : free.shift();
    place[at] = code;
    return { word, at, code, count: counts[at] };
  });
  return { place, items };
}

// Missing values are drawn first, hot points last. With many points only those from the code `hot` on
// are moved to the top: fully sorted, every dense region would look hot.
function salientLast(codes, hot) {
  const n = codes.length, starts = new Uint32Array(257), order = new Uint32Array(n);
  const rank = (code) => (code >= OTHER ? 0 : n > CROWD && code < hot ? 1 : code + 1);
  for (let i = 0; i < n; i++) starts[rank(codes[i]) + 1]++;
  for (let c = 1; c < 257; c++) starts[c] += starts[c - 1];
  for (const i of mixedOrder(n)) order[starts[rank(codes[i])]++] = i;
  return order;
}

// A deterministic order in which no group of points covers another.
function mixedOrder(n) {
  const order = new Uint32Array(n);
  let stride = Math.max(1, Math.round(n * 0.618));
  const common = (a, b) => (b ? common(b, a % b) : a);
  while (common(stride, n) > 1) stride++;
  for (let i = 0, at = 0; i < n; i++, at = (at + stride) % n) order[i] = at;
  return order;
}

// Colours of all codes, followed by the same colours faded into the background.
function colourTable(theme, ground) {
  const table = new Uint32Array(512);
  for (let code = 0; code < 256; code++) {
    let colour = rgb(PLAIN[theme]);
    if (code === ABSENT || code === OTHER) colour = rgb(MISSING[theme]);
    table[code] = packedColour(colour);
  }
  const scale = new Uint32Array(table), names = new Uint32Array(table);
  for (let code = 0; code < RAMP; code++) {
    scale[code] = packedColour(onScale(theme, code / (RAMP - 1)));
    names[code] = packedColour(rgb(NAMED[theme][code % NAMED[theme].length]));
  }
  for (const colours of [table, scale, names]) {
    for (let code = 0; code < 256; code++) {
      const v = colours[code], own = [v & 255, (v >> 8) & 255, (v >> 16) & 255];
      colours[256 + code] = packedColour(mixed(own, ground, 0.84));
    }
  }
  return { plain: table, scale, names };
}

function shapeOf(kind, code) {
  return kind === "names" && code < RAMP ? Math.floor(code / NAMED.light.length) % SHAPES : 0;
}
