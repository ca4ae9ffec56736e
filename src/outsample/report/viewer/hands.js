// Mouse, touch and keyboard input on the map.
function handle(view, choice, next) {
  const { top } = view, fingers = new Map();
  let moved = 0;
  const place = (event) => {
    const box = top.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  top.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    top.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    moved = 0;
    const starts = choice.inside && fingers.size === 1 && (view.selecting || event.shiftKey);
    view.lasso = starts ? [view.fromScreen(...place(event))] : null;
  });
  top.addEventListener("pointermove", (event) => {
    const here = place(event), before = fingers.get(event.pointerId);
    if (!before) {
      const hit = view.nearest(...here);
      if (hit) view.point(hit.layer, hit.i);
      else if (view.under && !view.under.kept) view.point(null);
      top.classList.toggle("over", Boolean(hit));
      return;
    }
    moved += Math.hypot(here[0] - before[0], here[1] - before[1]);
    if (view.lasso && fingers.size === 1) {
      view.lasso.push(view.fromScreen(...here));
      view.later(false);
    } else {
      const other = [...fingers].find(([id]) => id !== event.pointerId);
      if (other) {
        const span = (p) => Math.hypot(p[0] - other[1][0], p[1] - other[1][1]);
        const middle = [(here[0] + other[1][0]) / 2, (here[1] + other[1][1]) / 2];
        view.zoomBy(span(here) / Math.max(span(before), 1), ...middle);
      }
      view.move((here[0] - before[0]) / fingers.size, (here[1] - before[1]) / fingers.size);
    }
    fingers.set(event.pointerId, here);
  });
  const leave = (event) => {
    if (!fingers.delete(event.pointerId)) return;
    const lasso = view.lasso;
    view.lasso = null;
    if (lasso && event.type === "pointerup" && moved > 8) choice.inside(lasso);
    else if (event.type === "pointerup" && moved < 6) {  // a tap or click pins the point
      const hit = view.nearest(...place(event));
      if (hit) view.point(hit.layer, hit.i, true);
      else view.point(null);
    }
    view.later(false);
  };
  top.addEventListener("pointerup", leave);
  top.addEventListener("pointercancel", leave);
  top.addEventListener("pointerleave", () => {
    if (view.under && !view.under.kept) view.point(null);
  });
  top.addEventListener("wheel", (event) => {
    // The wheel scrolls the page until the map has the focus.
    if (document.activeElement !== top && !event.ctrlKey) return;
    event.preventDefault();
    view.zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), ...place(event));
  }, { passive: false });
  top.addEventListener("dblclick", (event) => view.zoomBy(2, ...place(event)));

  const step = 60, keys = {
    ArrowLeft: () => view.move(step, 0), ArrowRight: () => view.move(-step, 0),
    ArrowUp: () => view.move(0, step), ArrowDown: () => view.move(0, -step),
    "+": () => view.zoomBy(1.25), "=": () => view.zoomBy(1.25), "-": () => view.zoomBy(0.8),
    "0": () => view.fit(), n: () => next(1), p: () => next(-1), v: () => choice.inView(),
    Escape: () => (view.under ? view.point(null) : choice.drop()),
  };
  top.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!Object.hasOwn(keys, event.key)) return;
    keys[event.key]();
    event.preventDefault();
  });
}
