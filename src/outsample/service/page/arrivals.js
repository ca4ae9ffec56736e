// Arrivals in their order, as columns of numbers; the oldest are dropped.
const HOUR = 3600, KEPT = 50 * HOUR, ROOM = 1.25 * KEPT;
const LEARNED = ["no", "yes", "placed only"];

class Arrivals {
  constructor(data, model) {
    this.data = data;  // of the map: axes, middle and half range of each
    this.learns = Boolean(model.learning);
    this.alpha = model.alpha;
    this.numbers = ["p_value", "abnormality", "error_bar"].filter((name) => model.numbers.includes(name));
    this.clear();
  }

  clear() {
    Object.assign(this, { n: 0, total: 0, missed: 0 });  // total: received by this page
    this.ids = new Float64Array(ROOM);
    this.times = new Float64Array(ROOM);
    this.accepted = new Uint8Array(ROOM);
    this.values = new Map(this.numbers.map((name) => [name, new Float64Array(ROOM)]));
    this.places = this.data.axes.map(() => new Float32Array(ROOM));
    this.reasons = new Map();
  }

  // Append the rows of one message; return their indices, [first, last).
  add(payload) {
    const rows = payload.n_rows, { middle, half } = this.data;
    if (this.n + rows > ROOM) this.forget();
    const first = this.n;
    for (let k = 0; k < rows; k++) {
      const at = this.n++;
      this.ids[at] = payload.first_id + k;
      this.times[at] = payload.time;
      this.accepted[at] = payload.accepted ? Number(payload.accepted[k]) : 2;
      for (const [name, values] of this.values) values[at] = payload[name]?.[k] ?? NaN;
      this.places.forEach((place, axis) => {
        place[at] = (payload.coordinates[k][axis] - middle[axis]) / (half[axis] || 1);
      });
    }
    for (const [id, reason] of Object.entries(payload.reasons || {})) this.reasons.set(Number(id), reason);
    this.total += rows;
    return [first, this.n];
  }

  // Drop the oldest arrivals.
  forget() {
    const from = Math.max(0, this.n - KEPT), all = [this.ids, this.times, this.accepted,
      ...this.values.values(), ...this.places];
    for (const column of all) column.copyWithin(0, from, this.n);
    this.n -= from;
    for (const id of this.reasons.keys()) if (id < this.ids[0]) this.reasons.delete(id);
  }

  // Index of the first arrival at or after a time or an id.
  since(time) { return lowest(this.times, time, this.n); }
  from(id) { return lowest(this.ids, id, this.n); }
  has(id) { const at = this.from(id); return at < this.n && this.ids[at] === id; }

  get judged() { return this.values.has("p_value"); }

  isUnusual(at) { return this.judged && this.values.get("p_value")[at] <= this.alpha; }

  // Arrivals [first, last) as a layer of the map; numbers are not copied.
  layer(first, last) {
    const part = (column) => column.subarray(first, last), ids = part(this.ids), times = part(this.times);
    const words = (name, word) => ({ name, kind: "text", raw: word, shown: word, number: () => NaN });
    const named = numbered("arrival", ids);
    named.raw = (i) => "arrival " + ids[i];
    const columns = [...this.values].map(([name, values]) => numbered(name, part(values)));
    columns.push(named, words("time", (i) => clock(times[i])));
    if (this.learns) {
      const learned = new Column({ name: "learned", kind: "category" });
      columns.push(Object.assign(learned, { data: part(this.accepted), words: LEARNED }));
    }
    if (this.reasons.size) columns.push(words("main_reason", (i) => this.reasons.get(ids[i]) || "–"));
    return { kind: "new", n: last - first, first, ids, columns, named, width: 0, neighbors: null,
      distances: null, coordinates: this.places.map(part), states: new Uint8Array(last - first).fill(1),
      get grid() { return (this.made ??= new Grid(this.x, this.y)); }, set grid(made) { this.made = made; } };
  }
}

function lowest(column, value, n = column.length) {
  let [low, high] = [0, n];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

function numbered(name, data) {
  const column = new Column({ name, kind: "number" });
  column.data = data;
  return column;
}

function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hourCycle: "h23" });
}
