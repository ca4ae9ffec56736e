// Requests to the service, with the token, and its stream of events.
const TOKEN = "outsample-token";

// A link may contain the token after "#token=", which browsers do not send.
if (location.hash.startsWith("#token=")) {
  sessionStorage.setItem(TOKEN, decodeURIComponent(location.hash.slice(7)));
  history.replaceState(null, "", location.pathname);
}

class RejectedRequest extends Error {
  constructor(status, reason) { super(reason); this.status = status; }
}

function headers(others = {}) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...others, Authorization: "Bearer " + token } : others;
}

async function request(path, options = {}) {
  const answer = await fetch(path, { cache: "no-store", headers: headers(), ...options });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new RejectedRequest(answer.status, problem.reason || "the service answers " + answer.status);
  }
  return answer;
}

// The stream of events; it reconnects after the last event that was read while the page is open.
class Events {
  constructor(onEvent, onConnection) {
    Object.assign(this, { onEvent, onConnection, last: null, wait: 1000, started: null });
  }

  async run() {
    for (;;) {
      try {
        await this.listen();
      } catch (error) {
        if (error instanceof RejectedRequest && [401, 403].includes(error.status)) throw error;
      }
      this.onConnection(false);
      await new Promise((done) => setTimeout(done, this.wait));
      this.wait = Math.min(2 * this.wait, 5000);
    }
  }

  async listen() {
    const sent = headers({ Accept: "text/event-stream" });
    if (this.last !== null) sent["Last-Event-ID"] = String(this.last);
    const answer = await request(this.last === null ? "/events?after=0" : "/events", { headers: sent });
    this.onConnection(true);
    this.wait = 1000;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const parts = (buffer + value).split("\n\n");
        buffer = parts.pop();
        for (const part of parts) if (!this.handle(part)) return;
      }
    } finally {
      reader.cancel().catch(() => {});  // ends the request
    }
  }

  // Handle one message; return false if the service was restarted and must be read from the start.
  handle(message) {
    const fields = {};
    for (const line of message.split("\n")) {
      const at = line.indexOf(":");
      if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).trimStart();
    }
    if (!fields.data) return true;
    const payload = JSON.parse(fields.data);
    if (fields.event === "status") {
      const isRestarted = this.started !== null && payload.started !== this.started;
      this.started = payload.started;
      if (isRestarted) {
        this.last = null;
        this.wait = 50;
        this.onEvent("restart", payload);
        return false;
      }
    }
    if (fields.id) this.last = Number(fields.id);
    this.onEvent(fields.event, payload);
    return true;
  }
}
