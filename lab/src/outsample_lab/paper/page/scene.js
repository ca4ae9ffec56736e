// Puts a rotatable picture over each static 3-D picture of a page. The pictures are described in the
// element with the id "scenes", keyed by the alternative text of the image they replace. Nothing
// is loaded; without this script, and on paper, the static image stays.
(function () {
  "use strict";
  const HINT = matchMedia("(pointer: coarse)").matches
    ? "Drag sideways to turn; two fingers tilt and zoom; double tap to reset."
    : "Drag to turn, double-click to reset; after a click also wheel, arrow keys, + and −.";
  const INK = "#1f2933", FAINT = "#5b6672", FRAME = "#d5dae0", REACH = 14;
  const FONT = "12px system-ui, sans-serif";
  const scenes = JSON.parse(document.getElementById("scenes").textContent);
  const groups = new Map();  // pictures of one group turn together

  for (const image of document.querySelectorAll("figure img")) {
    const scene = Object.hasOwn(scenes, image.alt) ? scenes[image.alt] : null;
    if (scene) show(image, scene);
  }

  function element(name, role, parent) {
    const made = document.createElement(name);
    made.className = role;
    parent.append(made);
    return made;
  }

  function mark(pen, layer, x, y, r) {
    const wide = 1.2 * r, shape = layer.shape;
    pen.beginPath();
    if (shape === "circle") pen.arc(x, y, r, 0, 7);
    else if (shape === "square") pen.rect(x - r, y - r, 2 * r, 2 * r);
    else {
      const foot = shape === "diamond" ? y : y + r;  // else a triangle
      pen.moveTo(x, y - 1.3 * r);
      pen.lineTo(x + wide, foot);
      if (shape === "diamond") pen.lineTo(x, y + 1.3 * r);
      pen.lineTo(x - wide, foot);
      pen.closePath();
    }
    pen.fillStyle = layer.colour;
    pen.fill();
    if (!layer.rim) return;
    pen.strokeStyle = layer.rim;
    pen.lineWidth = 1;
    pen.stroke();
  }

  function show(image, scene) {
    const box = document.createElement("div");
    box.className = "scene";
    image.classList.add("still");
    image.after(box);
    element("p", "scene-title", box).textContent = scene.title;
    const canvas = element("canvas", "", box);
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", image.alt + ". " + HINT);
    const start = { turn: scene.turn, tilt: scene.tilt, zoom: 1 };
    const key = scene.group || image.alt;
    if (!groups.has(key)) groups.set(key, { view: { ...start }, draws: [] });
    const { view, draws } = groups.get(key);
    const half = scene.half;
    const fit = (p) => p.map((v, a) => (v - scene.middle[a]) * scene.scale[a]);
    const hidden = new Set();
    const pen = canvas.getContext("2d");
    let factor = scene.magnify, wide = 0, high = 0, spots = [], under = null, waiting = false;
    let taken = [];  // boxes of words already written: left, top, width, height

    function project(p) {
      const [x, y, z] = p, ct = Math.cos(view.turn), st = Math.sin(view.turn);
      const cp = Math.cos(view.tilt), sp = Math.sin(view.tilt);
      const near = x * ct + y * st, unit = view.zoom * high * 0.36;
      return [wide / 2 + unit * (y * ct - x * st), high / 2 - unit * (z * cp - near * sp),
        near * cp + z * sp];
    }

    function placed(layer, at) {
      const p = fit(layer.points[at]);
      if (!layer.origins) return [p, null];
      const from = fit(layer.origins[at]);
      return [p.map((v, a) => from[a] + factor * (v - from[a])), from];
    }

    function line(from, to, colour, width) {
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.beginPath();
      pen.moveTo(from[0], from[1]);
      pen.lineTo(to[0], to[1]);
      pen.stroke();
    }

    function frame() {
      const corner = (at) => project(half.map((h, a) => (at & (1 << a) ? h : -h)));
      for (let at = 0; at < 8; at++) for (let a = 0; a < 3; a++) {
        if (!(at & (1 << a))) line(corner(at), corner(at | (1 << a)), FRAME, 1);
      }
    }

    // Name each axis a little outside its lowest or leftmost edge, where there is room.
    function nameAxes() {
      pen.font = FONT;
      pen.fillStyle = FAINT;
      scene.axes.forEach((word, a) => {
        const long = pen.measureText(word).width;
        const places = [0, 0.6, -0.6].map((along) => {
          const ends = [0, 1, 2, 3].map((bits) => half.map((h, b) =>
            h * (b === a ? along : (bits >> (b > a ? b - 1 : b)) & 1 ? 1.16 : -1.16)));
          const spot = ends.map(project).reduce((m, p) =>
            (a === 2 ? p[0] < m[0] : p[1] > m[1]) ? p : m);
          return inside(spot[0] - long / 2, spot[1] - 8, long);
        });
        const [left, top] = places.find(free) || places[0];
        pen.fillText(word, left, top + 12);
      });
    }

    function inside(left, top, long) {
      return [Math.max(2, Math.min(wide - long - 2, left)), Math.max(2, Math.min(high - 18, top)),
        long, 15];
    }
    function free([left, top, long, tall]) {
      return !taken.some(([l, t, w, h]) =>
        left < l + w && l < left + long && top < t + h && t < top + tall);
    }

    function collect() {
      spots = [];
      scene.layers.forEach((layer, which) => {
        if (hidden.has(which)) return;
        for (let at = 0; at < layer.points.length; at++) {
          const [p, from] = placed(layer, at);
          const [x, y, depth] = project(p);
          spots.push({ layer, at, x, y, depth, from });
        }
      });
      spots.sort((a, b) => a.depth - b.depth);
    }

    function words(layer, at) {
      return layer.labels[at] || "";
    }

    // Write a label next to a point, if there is room or it is required.
    function note(text, x, y, must) {
      pen.font = FONT;
      const long = pen.measureText(text).width + 4;
      const tries = [x + 7, x - long - 5].flatMap((left) =>
        [y - 20, y + 4].map((top) => inside(left, top, long)));
      const place = tries.find(free) || (must ? tries[0] : null);
      if (!place) return;
      taken.push(place);
      const [left, top] = place;
      pen.lineJoin = "round";
      pen.lineWidth = must ? 7 : 3;
      pen.strokeStyle = "rgba(255, 255, 255, 0.9)";
      pen.strokeText(text, left + 2, top + 12);
      pen.fillStyle = INK;
      pen.fillText(text, left + 2, top + 12);
    }

    function draw() {
      waiting = false;
      const ratio = window.devicePixelRatio || 1;
      wide = canvas.clientWidth;
      high = canvas.clientHeight;
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(high * ratio);
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, wide, high);
      taken = [];
      frame();
      collect();
      for (const { layer, x, y, depth, from } of spots) {
        pen.globalAlpha = Math.max(0.25, Math.min(1, 0.78 + 0.3 * depth));
        if (from) line(project(from), [x, y], layer.colour, 1.2);
        mark(pen, layer, x, y, layer.size * Math.sqrt(view.zoom) * (wide < 420 ? 0.8 : 1));
      }
      pen.globalAlpha = 1;
      const named = spots.filter(({ layer, at }) => layer.named.includes(at));
      for (const { x, y } of named) taken.push([x - 5, y - 4, 10, 8]);  // no words over these marks
      for (const layer of [...scene.layers].reverse()) {
        const own = named.filter((spot) => spot.layer === layer);
        own.sort((a, b) => layer.named.indexOf(a.at) - layer.named.indexOf(b.at));
        for (const { at, x, y } of own) note(words(layer, at), x, y, false);
      }
      nameAxes();
      if (under) {
        const { layer, at, x, y } = under;
        const where = layer.points[at].map((v) => Number(v.toPrecision(3))).join(", ");
        const parts = [layer.name, words(layer, at), "(" + where + ")"];
        note(parts.filter(Boolean).join(", "), x, y, true);
      }
    }

    function later() {
      if (!waiting) { waiting = true; requestAnimationFrame(draw); }
    }
    function all() { draws.forEach((redraw) => redraw()); }
    draws.push(later);

    function move(turn, tilt, zoom) {
      view.turn -= turn;
      view.tilt = Math.max(-1.57, Math.min(1.57, view.tilt + tilt));
      view.zoom = Math.max(0.5, Math.min(20, view.zoom * zoom));
      under = null;
      all();
    }
    function reset() { Object.assign(view, start); all(); }

    const fingers = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, event);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
    }
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return hover(event);
      const dx = event.offsetX - before.offsetX, dy = event.offsetY - before.offsetY;
      let zoom = 1;
      for (const [id, other] of fingers) if (id !== event.pointerId) {
        const far = (e) => Math.hypot(e.offsetX - other.offsetX, e.offsetY - other.offsetY);
        zoom = far(event) / Math.max(far(before), 1);
      }
      fingers.set(event.pointerId, event);
      const still = event.pointerType === "touch" && fingers.size === 1;
      move(dx * 0.008, still ? 0 : dy * 0.008 / fingers.size, zoom);
    });
    canvas.addEventListener("pointerleave", () => { under = null; later(); });
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;  // leave the page its wheel
      event.preventDefault();
      move(0, 0, Math.exp(-event.deltaY * 0.0015));
    }, { passive: false });
    canvas.addEventListener("dblclick", reset);
    const keys = { ArrowLeft: [-0.1, 0, 1], ArrowRight: [0.1, 0, 1], ArrowUp: [0, 0.1, 1],
      ArrowDown: [0, -0.1, 1], "+": [0, 0, 1.2], "=": [0, 0, 1.2], "-": [0, 0, 1 / 1.2] };
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "0") reset();
      else if (Object.hasOwn(keys, event.key)) move(...keys[event.key]);
      else return;
      event.preventDefault();
    });

    function hover(event) {
      const far = (s) => Math.hypot(s.x - event.offsetX, s.y - event.offsetY);
      const close = spots.filter((s) => far(s) < REACH);
      under = close.reduce((m, s) => (!m || far(s) <= far(m) ? s : m), null);
      later();
    }

    function button(parent, text, pressed, action) {
      const made = element("button", "", parent);
      made.type = "button";
      made.textContent = text;
      made.setAttribute("aria-pressed", pressed);
      made.addEventListener("click", () => {
        made.setAttribute("aria-pressed", action());
        under = null;
        later();
      });
      return made;
    }

    const legend = element("div", "scene-legend", box);
    scene.layers.forEach((layer, which) => {
      const made = button(legend, layer.name, true, () => {
        if (!hidden.delete(which)) hidden.add(which);
        return !hidden.has(which);
      });
      const swatch = document.createElement("canvas");
      swatch.width = swatch.height = 24;
      made.prepend(swatch);
      mark(swatch.getContext("2d"), layer, 12, 12, 8.5);
    });
    if (scene.magnify !== 1) {
      button(legend, "errors drawn × " + scene.magnify, true, () => {
        factor = factor === 1 ? scene.magnify : 1;
        return factor !== 1;
      });
    }
    element("p", "scene-hint", box).textContent = HINT;
    new ResizeObserver(later).observe(canvas);
    later();
  }
})();
