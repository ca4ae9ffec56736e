// Unpacks the points: base64 or bytes, deflated; numbers have their first bytes together, then the second.
const ARRAYS = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f4: Float32Array,
  f8: Float64Array };

async function unpacked(text) {
  const letters = atob(text.trim()), packed = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
  return unpackedBytes(packed);
}

async function unpackedBytes(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const told = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + told)));
  const body = bytes.subarray(4 + told);
  const numbers = (part) => unshuffled(body, part);
  const words = (part) => part.count === 0 ? []
    : new TextDecoder().decode(body.subarray(part.at, part.at + part.bytes)).split("\n");
  const points = (told, kind) => told && {
    kind, n: told.count,
    coordinates: told.coordinates.map(numbers),
    columns: told.columns.map((column) => new Column(column, numbers, words)),
    width: told.width || 0,
    neighbors: told.neighbors ? numbers(told.neighbors) : null,
    distances: told.distances ? numbers(told.distances) : null,
  };
  return { ...header, rows: numbers(header.rows), training: points(header.training, "training"),
    placed: points(header.placed, "new") };
}

function unshuffled(body, { type, at, count }) {
  const Kind = ARRAYS[type], size = Kind.BYTES_PER_ELEMENT;
  const mixed = new Uint8Array(count * size);
  for (let rank = 0; rank < size; rank++) {
    for (let i = 0, from = at + rank * count, to = rank; i < count; i++, from++, to += size) {
      mixed[to] = body[from];
    }
  }
  return new Kind(mixed.buffer);
}

// A column: numbers; categories, which are codes of words; or text, words one by one.
class Column {
  constructor(told, numbers, words) {
    this.name = told.name;
    this.kind = told.kind;
    this.data = told.data ? numbers(told.data) : null;
    this.words = told.words ? words(told.words) : null;
  }

  number(i) { return this.kind === "number" ? this.data[i] : NaN; }

  // Words as they stand; numbers with the digits that float32 has.
  raw(i) {
    if (this.kind === "category") return this.words[this.data[i]];
    if (this.kind === "text") return this.words[i];
    const value = this.data[i];
    if (Number.isNaN(value)) return "";
    return String(this.data instanceof Float32Array ? Number(value.toPrecision(7)) : value);
  }

  shown(i) {
    if (this.kind !== "number") return this.raw(i) || "missing";
    return figure(this.data[i]);
  }
}

function figure(value, digits = 3) {
  if (value < 0) return "−" + figure(-value, digits);
  if (Number.isNaN(value)) return "missing";
  if (!Number.isFinite(value)) return "∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return grouped(value);
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e6) return String(Number(value.toPrecision(digits)));
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const raised = [...String(Number(power))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
  return Number(mantissa) + "·10" + raised.join("");
}

function grouped(whole) {
  return String(whole).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

const byId = (id) => document.getElementById(id);

function element(name, role, parent, words) {
  const made = document.createElement(name);
  if (role) made.className = role;
  if (words !== undefined) made.textContent = words;
  if (parent) parent.append(made);
  return made;
}
