// Details of one arrival from the service: p-values of its reasons, neighbours, values.
class Details {
  constructor(view, onLoad) {
    Object.assign(this, { view, onLoad, id: null });  // onLoad is called when the answer is there
  }

  close() {
    this.id = null;
    byId("about").hidden = true;
  }

  async at(id) {
    if (this.id === id) return;
    this.id = id;
    let details;
    try {
      details = await (await request("/point/" + id)).json();
    } catch (error) {
      details = { reason: error.message };
    }
    if (this.id === id) this.show(id, details);
  }

  show(id, details) {
    const { view } = this, { data } = view, box = byId("details");
    byId("about").hidden = false;
    box.replaceChildren();
    if (!details.id) {
      element("p", "", box, "No details: " + details.reason);
      return;
    }
    element("p", "", box, `Arrival ${id}, ${clock(details.time)}, ${details.kind}.`);
    if (details.reasons) {
      this.table("Why", Object.entries(details.reasons).map(([name, reason]) =>
        [textFor(REASONS, name), `p ${figure(reason.p_value, 2)}`]));
    }
    const near = details.neighbors.filter(({ row }) => view.rowOf.has(row))
      .map(({ row, distance }) => ({ row: view.rowOf.get(row), far: distance }));
    view.setNeighbors(id, near);
    this.table("Nearest training points", near.map(({ row, far }) =>
      [nameOf(data, data.training, row), figure(far)]));
    this.table("Values", Object.entries(details.values).map(([name, value]) => [name, figure(value, 4)]));
    this.onLoad();
  }

  table(caption, rows) {
    const made = element("table", "", byId("details"));
    element("caption", "", made, caption);
    for (const [name, value] of rows) {
      const line = element("tr", "", made), head = element("th", "", line);
      head.scope = "row";
      element("bdi", "", head, name);
      element("td", "", line, value);
    }
  }
}
