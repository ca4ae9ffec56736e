// What is asked of the service: a token where one is needed, events from where they stopped.
const TOKEN = "outsample-token";

// A link may carry the token behind "#token=", which browsers do not send.
if (location.hash.startsWith("#token=")) {
  sessionStorage.setItem(TOKEN, decodeURIComponent(location.hash.slice(7)));
  history.replaceState(null, "", location.pathname);
}

class Refused extends Error {
  constructor(status, reason) { super(reason); this.status = status; }
}

function headers(more = {}) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, Authorization: "Bearer " + token } : more;
}

async function asked(path, more = {}) {
  const answer = await fetch(path, { cache: "no-store", headers: headers(), ...more });
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, told.reason || "the service answers " + answer.status);
  }
  return answer;
}

// Events by name; connects again after the last one that was read, as long as the page is open.
class Events {
  constructor(hear, tell) {
    Object.assign(this, { hear, tell, last: null, wait: 1000, started: null });
  }

  async run() {
    for (;;) {
      try {
        await this.listen();
      } catch (error) {
        if (error instanceof Refused && [401, 403].includes(error.status)) throw error;
      }
      this.tell(false);
      await new Promise((done) => setTimeout(done, this.wait));
      this.wait = Math.min(2 * this.wait, 5000);
    }
  }

  async listen() {
    const more = headers({ Accept: "text/event-stream" });
    if (this.last !== null) more["Last-Event-ID"] = String(this.last);
    const answer = await asked(this.last === null ? "/events?after=0" : "/events", { headers: more });
    this.tell(true);
    this.wait = 1000;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) if (!this.heard(part)) return;
      }
    } finally {
      reader.cancel().catch(() => {});  // the service is not to go on telling
    }
  }

  // One message; false if the service has begun anew, and is to be asked for all it has.
  heard(message) {
    const fields = {};
    for (const line of message.split("\n")) {
      const at = line.indexOf(":");
      if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).trimStart();
    }
    if (!fields.data) return true;
    const told = JSON.parse(fields.data);
    if (fields.event === "status") {
      const again = this.started !== null && told.started !== this.started;
      this.started = told.started;
      if (again) {
        this.last = null;
        this.wait = 50;
        this.hear("again", told);
        return false;
      }
    }
    if (fields.id) this.last = Number(fields.id);
    this.hear(fields.event, told);
    return true;
  }
}
