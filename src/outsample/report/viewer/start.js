// Entry point: decodes the points and connects map, panel, card and tables.
const FIRST_ROWS = document.querySelectorAll("tr[data-row]:not([hidden])").length;

async function start() {
  const data = await unpacked(byId("points").textContent);
  const { training, placed } = data;
  for (const layer of [training, placed].filter(Boolean)) {
    layer.named = naming(layer);
    layer.label = colourable(layer).find((column) => column.kind === "category"
      && column.name !== "main_reason" && column.words.length > 1 && column.words.length <= 25) || null;
  }
  const card = new Card(byId("stage"), byId("said"), data);
  const view = new MapView(byId("stage"), data, (under) => card.show(view, under));
  const choice = new Choice(view, () => update());
  const drawLater = view.drawLines.bind(view);
  view.drawLines = () => { drawLater(); if (view.under) card.put(view, view.under); };

  let bars = () => {};
  const p = placed && choice.column(placed, "p_value");
  if (p) bars = histogram(byId("bars"), p, choice);
  else byId("by-p")?.remove();

  function legends() {
    for (const layer of view.layers) legend(byId("legend-" + layer.kind), view, layer, choice);
  }
  function update() {
    bars();
    if (p) {
      byId("p-most").value = figure(choice.range[1]);
      byId("p-slide").value = Math.log10(Math.max(choice.range[1], 1e-4));
      let shown = 0;
      for (let i = 0; i < placed.n; i++) if (placed.states[i]) shown++;
      byId("p-shown").textContent = choice.filtered
        ? `${grouped(shown)} of ${grouped(placed.n)} new points shown` : "All new points shown";
      byId("p-all").hidden = !choice.filtered;
    }
    byId("chosen").textContent = choice.chosen ? `Selected ${choice.words}: ${summary(view, choice)}.`
      : "Nothing is selected: the export contains all visible points.";
    byId("drop").hidden = !choice.chosen;
  }

  function colour(layer, select, first, preferred) {
    options(select, colourable(layer), first);
    select.value = preferred ? preferred.name : "";
    const paint = () => {
      view.paint(layer, layer.columns.find((column) => column.name === select.value));
      view.labels = training.label && labelPlaces(view, labelled());
      legends();
    };
    select.addEventListener("change", paint);
    return paint;
  }
  // Labels come from the column that colours the training points, if it has at most 25 categories.
  function labelled() {
    const own = training.paint && training.paint.kind === "names" && training.paint.column;
    return own && own.words.length <= 25 ? own : training.label;
  }
  for (const layer of view.layers) layer.paint = painted(layer, null);
  const error = choice.column(training, "left_out_error");
  const paints = [colour(training, byId("by-training"), "one colour",
    placed ? null : training.label || error)];
  if (placed) paints.push(colour(placed, byId("by-new"), "one colour", p || colourable(placed)[0]));
  paints.forEach((paint) => paint());

  if (data.axes.length > 2) {
    const selects = [byId("axis-a"), byId("axis-b")];
    selects.forEach((select, at) => {
      data.axes.forEach((name, axis) => { element("option", "", select, name).value = axis; });
      select.value = at;
      select.addEventListener("change", () => {
        const [a, b] = selects.map(({ value }) => Number(value));
        view.setAxes(a, b);
        view.labels = training.label && labelPlaces(view, labelled());
      });
    });
  } else byId("axes").remove();

  const click = (id, act) => byId(id).addEventListener("click", act);
  click("closer", () => view.zoomBy(1.5));
  click("farther", () => view.zoomBy(1 / 1.5));
  click("whole", () => view.fit());
  click("lasso", () => {
    view.selecting = !view.selecting;
    byId("lasso").setAttribute("aria-pressed", String(view.selecting));
    byId("stage").classList.toggle("selecting", view.selecting);
  });
  click("in-view", () => choice.inView());
  click("drop", () => choice.drop());
  click("export", () => saveFile(choice.csv(), "selection.csv"));
  for (const { kind } of view.layers) {
    byId("show-" + kind).addEventListener("change", (event) => {
      choice.kinds[kind] = event.target.checked;
      choice.apply();
    });
  }
  byId("show-labels").closest("label").hidden = !training.label;
  byId("show-labels").addEventListener("change", (event) => {
    view.labels = event.target.checked ? labelPlaces(view, labelled()) : null;
    view.later(false);
  });
  if (p) {
    const setLargest = (value) => {
      if (!(value > 0)) return;
      choice.range = [0, Math.min(1, value)];
      choice.apply();
    };
    byId("p-slide").addEventListener("input", (event) => setLargest(Number((10 ** event.target.value).toPrecision(2))));
    byId("p-most").addEventListener("change", (event) => setLargest(Number(event.target.value)));
    click("p-all", () => setLargest(1));
  }
  byId("panel").addEventListener("submit", (event) => event.preventDefault());
  search(view, choice, byId("found-count"));

  const unusual = [...document.querySelectorAll("tr[data-row]")];
  let at = -1;
  const go = (place) => {
    at = (place + unusual.length) % unusual.length;
    unusual.forEach((row, k) => row.classList.toggle("here", k === at));
    if (at >= FIRST_ROWS) byId("more-rows")?.click();
    view.visit(placed, Number(unusual[at].dataset.row));
  };
  unusual.forEach((row, place) => row.addEventListener("click", () => {
    go(place);
    byId("stage").scrollIntoView({ block: "nearest", behavior:
      matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }));
  byId("more-rows")?.addEventListener("click", (event) => {
    unusual.forEach((row) => { row.hidden = false; });
    event.target.hidden = true;
    if (event.isTrusted) unusual[FIRST_ROWS].querySelector("button").focus();
  });
  handle(view, choice, (step) => { if (unusual.length) go(at < 0 && step < 0 ? -1 : at + step); });

  const onPaper = (printing) => {
    view.printing = printing;
    view.stage.style.setProperty("--aspect", view.wide / view.high);
    view.restyle();
    legends();
    view.draw();
  };
  addEventListener("beforeprint", () => onPaper(true));
  addEventListener("afterprint", () => onPaper(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", legends);
  update();
  view.draw();
  const firstPicture = performance.now();
  globalThis.mapPage = { view, choice, data, firstPicture };  // for tests and scripts
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  byId("failed").hidden = false;
  byId("failed").textContent = "The map could not be drawn (" + error.message + "). It needs a browser "
    + "from 2023 or later. The tables below are complete.";
  console.error(error);
});
