// Legend of a layer's colours; with a `choice`, category names are buttons that select points.
function legend(box, view, layer, choice) {
  const { paint } = layer;
  box.replaceChildren();
  if (paint.kind === "plain") return;
  const theme = view.theme;
  if (paint.kind === "scale") drawScale(box, paint, theme);
  else {
    const list = element("ul", "names", box);
    for (const { word, at, code, count } of paint.items) {
      const button = element(choice ? "button" : "div", "", element("li", "", list));
      button.append(swatch(css(rgb(NAMED[theme][code % NAMED[theme].length])), shapeOf("names", code)));
      element("bdi", "", button, word.length > 28 ? word.slice(0, 27) + "…" : word);
      element("span", "", button, grouped(count));
      if (!choice) continue;
      button.type = "button";
      button.title = "Select " + word;
      button.addEventListener("click", () => choice.choose(`${titled(paint.column.name)}: ${word}`,
        (other, i) => other === layer && paint.column.data[i] === at));
    }
    const others = paint.column.words.filter((word) => word).length - paint.items.length;
    if (others) grey(box, MISSING[theme], grouped(others) + " rarer values");
  }
  if (paint.absent) {
    const untried = paint.column.name === "left_out_error";
    grey(box, untried ? PLAIN[theme] : MISSING[theme],
      `${untried ? "not tried" : "missing"}: ${grouped(paint.absent)}`);
  }
}

function grey(box, colour, words) {
  const line = element("p", "absent", box);
  line.append(swatch(colour, 0));
  element("span", "", line, words);
}

function swatch(colour, shape) {
  const canvas = document.createElement("canvas"), raster = new Raster(canvas, false), size = 24;
  canvas.className = "swatch";
  raster.resize(size, size, 4);
  raster.pixels.fill(0);
  const { core, edge } = sprite(8, shape, 0, raster.stride);
  const [r, g, b] = colour[0] === "#" ? rgb(colour) : colour.match(/\d+/g).map(Number);
  const at = (size / 2 + 4) * raster.stride + size / 2 + 4, own = packedColour([r, g, b]);
  for (const offset of core) raster.pixels[at + offset] = own;
  for (let e = 0; e < edge.length; e += 3) {
    const share = Math.min(255, edge[e + 1]);
    raster.pixels[at + edge[e]] = ((own & 0xffffff) | (share << 24)) >>> 0;
  }
  raster.show(true);
  return canvas;
}

function drawScale(box, { scale, column }, theme) {
  const bar = element("div", "scale", box), p = column.name === "p_value";
  const stops = [...Array(13).keys()].map((k) => css(onScale(theme, k / 12)));
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const line = element("div", "ticks", box);
  let values = p ? [1, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6].filter((v) => v >= scale.high * 0.99)
    : [scale.low, scale.value(0.5), scale.high];
  if (p && scale.share(values[values.length - 1]) < 0.76) values = [...values, scale.high];
  values.forEach((value) => {
    let share = Math.min(1, Math.max(0, scale.share(value)));
    if (share < 0.04 || share > 0.96) share = Math.round(share);
    const sign = share === 0 && scale.ends[0] ? "≤ " : share === 1 && scale.ends[1] ? "≥ " : "";
    const tick = element("span", share === 0 ? "first" : share === 1 ? "last" : "", line,
      sign + figure(value));
    tick.style.left = 100 * share + "%";
  });
  if (p) {
    const ends = element("div", "ends", box);
    element("span", "", ends, "typical");
    element("span", "", ends, "unusual");
  }
}
