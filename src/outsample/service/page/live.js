// The page: loads the model and its map, then shows arrivals.
const REFRESH_MS = 100;  // between refreshes while arrivals come; longer if a refresh takes long

async function start() {
  const model = await (await request("/model")).json();
  const packed = new Uint8Array(await (await request("/map")).arrayBuffer());
  const data = await unpackedBytes(packed);
  byId("all").hidden = false;
  put("name", model.name || "Arrivals");
  const arrivals = new Arrivals(data, model);
  data.placed = arrivals.layer(0, 0);
  data.training.named = naming(data.training);
  const live = new Live(model, data, arrivals);
  live.events = new Events((name, payload) => live.handle(name, payload), (on) => live.connected(on));
  globalThis.livePage = live;  // for scripts and tests
  document.documentElement.dataset.ready = "yes";
  await live.events.run();
}

class Live {
  constructor(model, data, arrivals) {
    Object.assign(this, { model, data, arrivals, on: true, waiting: false, cost: 0, drawing: 0 });
    this.playing = new Playback(arrivals);
    this.card = new Card(byId("stage"), byId("said"), data, 0);
    this.view = new LiveMap(byId("stage"), data, arrivals, (under) => this.pointed(under));
    this.details = new Details(this.view, () => this.card.show(this.view, this.view.under));
    const drawPoints = this.view.drawPoints.bind(this.view);
    this.view.drawPoints = () => {
      const begun = performance.now();
      drawPoints();
      if (this.view.under) this.card.put(this.view, this.view.under);
      this.drawing = performance.now() - begun;
    };
    this.strip = new Strip(byId("strip"), (from, until) => this.brushed(from, until));
    this.list = new UnusualList(arrivals, (id) => {
      this.visit(id);
      byId("stage").scrollIntoView({ block: "nearest" });
    });
    for (const layer of this.view.layers) layer.paint = painted(layer, null);
    this.view.restyle();
    this.controls();
    this.map();
    new ResizeObserver(() => this.later()).observe(byId("strip"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.later());
    this.refresh();
  }

  controls() {
    const { playing, arrivals } = this, names = [...arrivals.numbers, "arrival", ...(arrivals.learns ? ["learned"] : [])];
    for (const name of names) byId("by").append(new Option(name === "learned" ? "learned or not" : titled(name), name));
    byId("by").addEventListener("change", () => this.later());
    const press = (id, act) => byId(id).addEventListener("click", () => { act(); this.later(); });
    press("pause", () => playing.pause());
    press("replay", () => playing.replay());
    press("now", () => playing.now());
    const slide = () => this.brushed(byId("from").value / 1000, byId("until").value / 1000);
    for (const id of ["from", "until"]) byId(id).addEventListener("input", slide);
    byId("panel").addEventListener("submit", (event) => event.preventDefault());
    this.view.top.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === " ") playing.pause();
      else if (event.key === "r") playing.replay();
      else return;
      event.preventDefault();
      this.later();
    });
  }

  map() {
    const { view, data, playing } = this, press = (id, act) => byId(id).addEventListener("click", act);
    for (const [id, at] of [["axis-a", 0], ["axis-b", 1]]) {
      data.axes.forEach((name, axis) => byId(id).append(new Option(name, axis)));
      byId(id).value = Math.min(at, data.axes.length - 1);
      byId(id).addEventListener("change", () => {
        view.setAxes(Number(byId("axis-a").value), Number(byId("axis-b").value));
        this.refresh();
      });
    }
    byId("axes").hidden = data.axes.length < 3;
    byId("show-training").addEventListener("change", (event) => {
      data.training.states.fill(event.target.checked ? 1 : 0);
      data.training.laid = null;
      view.later(true);
    });
    press("closer", () => view.zoomBy(1.5));
    press("farther", () => view.zoomBy(1 / 1.5));
    press("whole", () => view.fit());
    const drop = () => { playing.now(); this.later(); };
    handle(view, { inView() {}, drop }, (step) => this.step(step));
  }

  handle(name, payload) {
    if (name === "arrivals") {
      const [first, last] = this.arrivals.add(payload);
      if (this.playing.isNow) this.view.pulse(Array.from(this.arrivals.ids.subarray(first, last)));
    } else if (name === "gap") this.arrivals.missed += payload.n_rows;
    else if (name === "restart") this.restart().catch(() => {});
    else if (name === "status") this.status(payload);
    this.later();
  }

  // The service was restarted: ids of arrivals begin again, and the model may be another one.
  async restart() {
    for (const part of [this.arrivals, this.list]) part.clear();
    this.playing.now();
    this.view.forget();
    const model = await (await request("/model")).json();
    if (model.digest !== this.model.digest || Boolean(model.learning) !== this.arrivals.learns) location.reload();
  }

  status(status) {
    const lamp = byId("drift"), state = !status.n_seen ? "off" : status.needs_refit ? "alarm" : "fine";
    if (state === "alarm" && lamp.dataset.state !== state) put("said", status.drift);
    lamp.dataset.state = state;
    const reason = status.learning ? "Nothing has been learned yet" : "The service does not learn";
    put("drift-words", status.n_seen ? status.drift : reason + ", so drift is not tested.");
  }

  connected(on) {
    if (this.on && !on) put("said", "Connection lost");
    this.on = on;
    this.later();
  }

  brushed(from, until) {
    this.playing.choose(Math.min(from, until), Math.max(from, until));
    this.later();
  }

  // Refresh soon, at most ten times per second and at most a fifth of the time.
  later() {
    if (this.waiting) return;
    this.waiting = true;
    setTimeout(() => { this.waiting = false; this.refresh(); }, Math.max(REFRESH_MS, 4 * (this.cost + this.drawing)));
  }

  refresh() {
    const begun = performance.now(), { arrivals, playing, view } = this, time = playing.shown();
    const first = arrivals.since(time.from), last = Math.max(first, arrivals.since(time.until + 1e-6));
    view.replace(arrivals.layer(first, last), byId("by").value);
    this.strip.draw(view, arrivals, time);
    this.list.upTo(this.latest());
    this.list.rate();
    this.legend();
    this.words(time, last - first);
    if (playing.replaying) this.later();
    this.cost = performance.now() - begun;
  }

  // Index after the last arrival to show; arrivals during a pause are not shown.
  latest() { return this.arrivals.since((this.playing.paused ?? Infinity) + 1e-6); }

  legend() {
    const { view } = this, { paint } = this.data.placed, { scale, items, absent } = paint;
    const now = JSON.stringify([paint.column?.name, view.theme, scale, items, absent]);
    if (now !== this.explained) legend(byId("legend"), view, this.data.placed, null);
    this.explained = now;
  }

  words(time, shown) {
    const { playing, arrivals } = this, span = time.end - time.begin, held = playing.paused !== null;
    put("lead", (this.on ? "" : "Connection lost, trying again. ")
      + `${grouped(arrivals.total)} arrivals, ${grouped(shown)} of them on the map`
      + (arrivals.missed ? `; ${grouped(arrivals.missed)} were dropped before the page could read them` : "")
      + (held ? `; paused, ${grouped(arrivals.n - this.latest())} arrived since.` : "."));
    const pressed = (id, on) => byId(id).setAttribute("aria-pressed", String(on));
    pressed("pause", held);
    pressed("replay", Boolean(playing.replaying));
    byId("now").hidden = playing.isNow;
    for (const [id, at] of [["from", time.from], ["until", time.until]]) {
      const slide = byId(id);
      if (!playing.brush || slide !== document.activeElement) slide.value = 1000 * (at - time.begin) / span;
      slide.setAttribute("aria-valuetext", clock(at));
    }
    put("range", `${clock(time.from)} – ${clock(time.until)}`);
  }

  step(by) {
    const ids = this.list.ids(this.latest()), { under } = this.view;
    if (!ids.length) return;
    const at = under && under.layer.kind === "new" ? ids.indexOf(under.layer.ids[under.i]) : -1;
    this.visit(ids[at < 0 ? (by > 0 ? 0 : ids.length - 1) : (at + by + ids.length) % ids.length]);
  }

  visit(id) {
    if (!this.arrivals.has(id)) return;
    if (placeOf(this.data.placed, id) < 0) {  // outside the time shown
      this.playing.now();
      this.refresh();
    }
    this.view.visit(this.data.placed, Math.max(0, placeOf(this.data.placed, id)));
  }

  pointed(under) {
    if (!this.card || !this.details) return;
    this.card.show(this.view, under);
    if (!under) this.details.close();
    else if (under.kept && under.layer.kind === "new") this.details.at(under.layer.ids[under.i]);
  }
}

function failed(error) {
  if (error instanceof RejectedRequest && [401, 403].includes(error.status)) {
    byId("ask").hidden = false;
    put("lead", sessionStorage.getItem(TOKEN) ? "The token is wrong." : "");
    byId("token").focus();
    return;
  }
  byId("failed").hidden = false;
  put("failed", "The live map cannot be shown: " + error.message);
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, byId("token").value);
  location.reload();
});
start().catch(failed);
