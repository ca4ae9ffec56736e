// The latest strange arrivals, with time and reason; the rate of alarms against the nominal one.
const LISTED = 40, RATED = 1000, TOLD_EVERY = 5000;

function put(id, words) {
  const box = byId(id);
  if (box.textContent !== words) box.textContent = words;
}

class StrangeList {
  constructor(arrivals, visit) {
    Object.assign(this, { arrivals, told: -TOLD_EVERY });
    this.list = byId("strange");
    this.list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) visit(Number(button.dataset.id));
    });
    this.clear();
  }

  clear() {
    this.next = 0;  // id from which on they are new to the list
    this.list.replaceChildren();
    put("strange-none", this.arrivals.judged ? "None so far." : "This model has no p-values: nothing is called strange.");
    byId("strange-none").hidden = false;
    byId("alarms").hidden = !this.arrivals.judged;
  }

  // Adds what is strange of the arrivals up to a place; says so, though not all the time.
  upTo(last) {
    const { arrivals, list } = this, found = [];
    for (let at = last - 1; at >= 0 && arrivals.ids[at] >= this.next && found.length < LISTED; at--) {
      if (arrivals.isStrange(at)) found.push(this.entry(at));
    }
    if (last) this.next = Math.max(this.next, arrivals.ids[last - 1] + 1);
    if (!found.length) return;
    list.prepend(...found);
    byId("strange-none").hidden = true;
    while (list.children.length > LISTED) list.lastChild.remove();
    if (performance.now() - this.told < TOLD_EVERY) return;
    this.told = performance.now();
    put("said", "Strange: " + found[0].textContent);
  }

  entry(at) {
    const { arrivals } = this, id = arrivals.ids[at], item = document.createElement("li");
    const button = element("button", "", item);
    button.type = "button";
    button.dataset.id = id;
    element("time", "", button, clock(arrivals.times[at]));
    element("b", "", button, " p " + figure(arrivals.values.get("p_value")[at], 2));
    element("span", "", button, " " + (textFor(REASONS, arrivals.reasons.get(id) || "") || "strange"));
    return item;
  }

  // Strange arrivals up to a place, the latest first, as in the list.
  ids(last) {
    const found = [], { arrivals } = this;
    for (let at = last - 1; at >= 0; at--) if (arrivals.isStrange(at)) found.push(arrivals.ids[at]);
    return found;
  }

  rate() {
    const { arrivals } = this, { alpha } = arrivals, n = Math.min(RATED, arrivals.n);
    if (!n || !arrivals.judged) return;
    let strange = 0;
    for (let at = arrivals.n - n; at < arrivals.n; at++) strange += arrivals.isStrange(at);
    const rate = strange / n, percent = (share) => figure(100 * share, 2) + " %";
    const scale = Math.max(5 * alpha, rate * 1.2);
    put("rate", percent(rate));
    put("rate-words", `of the last ${grouped(n)} arrivals; ${percent(alpha)} is nominal`);
    byId("gauge").style.width = 100 * rate / scale + "%";
    byId("nominal").style.left = 100 * alpha / scale + "%";
  }
}
