// The latest unusual arrivals with time and reason, and the rate of alarms next to the nominal rate.
const MAX_LISTED = 40, RATE_ARRIVALS = 1000, ANNOUNCE_MS = 5000;

function put(id, words) {
  const box = byId(id);
  if (box.textContent !== words) box.textContent = words;
}

class UnusualList {
  constructor(arrivals, visit) {
    Object.assign(this, { arrivals, announced: -ANNOUNCE_MS });
    this.list = byId("unusual");
    this.list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) visit(Number(button.dataset.id));
    });
    this.clear();
  }

  clear() {
    this.next = 0;  // smallest id that is not in the list yet
    this.list.replaceChildren();
    put("unusual-none", this.arrivals.judged ? "None so far." : "This model has no p-values: no arrival is reported as unusual.");
    byId("unusual-none").hidden = false;
    byId("alarms").hidden = !this.arrivals.judged;
  }

  // Adds the unusual arrivals before index `last`; announces the newest, at most every 5 seconds.
  upTo(last) {
    const { arrivals, list } = this, entries = [];
    for (let at = last - 1; at >= 0 && arrivals.ids[at] >= this.next && entries.length < MAX_LISTED; at--) {
      if (arrivals.isUnusual(at)) entries.push(this.entry(at));
    }
    if (last) this.next = Math.max(this.next, arrivals.ids[last - 1] + 1);
    if (!entries.length) return;
    list.prepend(...entries);
    byId("unusual-none").hidden = true;
    while (list.children.length > MAX_LISTED) list.lastChild.remove();
    if (performance.now() - this.announced < ANNOUNCE_MS) return;
    this.announced = performance.now();
    put("said", "Unusual: " + entries[0].textContent);
  }

  entry(at) {
    const { arrivals } = this, id = arrivals.ids[at], item = document.createElement("li");
    const button = element("button", "", item);
    button.type = "button";
    button.dataset.id = id;
    element("time", "", button, clock(arrivals.times[at]));
    element("b", "", button, " p " + figure(arrivals.values.get("p_value")[at], 2));
    element("span", "", button, " " + (textFor(REASONS, arrivals.reasons.get(id) || "") || "unusual"));
    return item;
  }

  // Ids of the unusual arrivals before index `last`, newest first, as in the list.
  ids(last) {
    const ids = [], { arrivals } = this;
    for (let at = last - 1; at >= 0; at--) if (arrivals.isUnusual(at)) ids.push(arrivals.ids[at]);
    return ids;
  }

  rate() {
    const { arrivals } = this, { alpha } = arrivals, n = Math.min(RATE_ARRIVALS, arrivals.n);
    if (!n || !arrivals.judged) return;
    let unusual = 0;
    for (let at = arrivals.n - n; at < arrivals.n; at++) unusual += arrivals.isUnusual(at);
    const rate = unusual / n, percent = (share) => figure(100 * share, 2) + " %";
    const scale = Math.max(5 * alpha, rate * 1.2);
    put("rate", percent(rate));
    put("rate-words", `of the last ${grouped(n)} arrivals; ${percent(alpha)} is nominal`);
    byId("gauge").style.width = 100 * rate / scale + "%";
    byId("nominal").style.left = 100 * alpha / scale + "%";
  }
}
