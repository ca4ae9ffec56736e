// Decodes the points: base64 or bytes, deflated, byte-shuffled (all first bytes, then all second bytes, ...).
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
  const headerSize = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + headerSize)));
  const body = bytes.subarray(4 + headerSize);
  const numbers = (part) => unshuffled(body, part);
  const words = (part) => part.count === 0 ? []
    : new TextDecoder().decode(body.subarray(part.at, part.at + part.bytes)).split("\n");
  const points = (layer, kind) => layer && {
    kind, n: layer.count,
    coordinates: layer.coordinates.map(numbers),
    columns: layer.columns.map((column) => new Column(column, numbers, words)),
    width: layer.width || 0,
    neighbors: layer.neighbors ? numbers(layer.neighbors) : null,
    distances: layer.distances ? numbers(layer.distances) : null,
  };
  return { ...header, rows: numbers(header.rows), training: points(header.training, "training"),
    placed: points(header.placed, "new") };
}

function unshuffled(body, { type, at, count }) {
  const Kind = ARRAYS[type], size = Kind.BYTES_PER_ELEMENT;
  const plain = new Uint8Array(count * size);
  for (let rank = 0; rank < size; rank++) {
    for (let i = 0, from = at + rank * count, to = rank; i < count; i++, from++, to += size) {
      plain[to] = body[from];
    }
  }
  return new Kind(plain.buffer);
}

// A column of numbers, of categories (codes and their words), or of text (one entry per point).
class Column {
  constructor(header, numbers, words) {
    this.name = header.name;
    this.kind = header.kind;
    this.data = header.data ? numbers(header.data) : null;
    this.words = header.words ? words(header.words) : null;
  }

  number(i) { return this.kind === "number" ? this.data[i] : NaN; }

  // Text unchanged; numbers with the digits of their type.
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
  const node = document.createElement(name);
  if (role) node.className = role;
  if (words !== undefined) node.textContent = words;
  if (parent) parent.append(node);
  return node;
}
