// All about one arrival, from the service: why it is strange or not, its neighbours, its values.
class Looked {
  constructor(view, known) {
    Object.assign(this, { view, known, id: null });  // known is called when there is an answer
  }

  close() {
    this.id = null;
    byId("about").hidden = true;
  }

  async at(id) {
    if (this.id === id) return;
    this.id = id;
    let found;
    try {
      found = await (await asked("/point/" + id)).json();
    } catch (error) {
      found = { reason: error.message };
    }
    if (this.id === id) this.show(id, found);
  }

  show(id, found) {
    const { view } = this, { data } = view, box = byId("details");
    byId("about").hidden = false;
    box.replaceChildren();
    if (!found.id) {
      element("p", "", box, "Nothing more is known of it: " + found.reason);
      return;
    }
    element("p", "", box, `Arrival ${id}, ${clock(found.time)}, ${found.kind}.`);
    if (found.reasons) {
      this.table("Why", Object.entries(found.reasons).map(([name, one]) =>
        [textFor(REASONS, name), `p ${figure(one.p_value, 2)}`]));
    }
    const near = found.neighbors.filter(({ row }) => view.rowOf.has(row))
      .map(({ row, distance }) => ({ row: view.rowOf.get(row), far: distance }));
    view.know(id, near);
    this.table("Nearest training points", near.map(({ row, far }) =>
      [nameOf(data, data.training, row), figure(far)]));
    this.table("Values", Object.entries(found.values).map(([name, value]) => [name, figure(value, 4)]));
    this.known();
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
