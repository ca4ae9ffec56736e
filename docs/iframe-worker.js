// Pages opened from a folder may not start workers, so the search runs in a hidden frame there.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      frame.onload = () => {
        const inner = frame.contentWindow;
        inner.importScripts = () => Promise.resolve();
        inner.__index = window.__index;
        inner.postMessage = (data) => this.tell(data);
        const script = inner.document.createElement("script");
        script.src = url;
        script.onload = () => {
          this.inner = inner;
          this.waiting.splice(0).forEach((data) => this.postMessage(data));
        };
        inner.document.body.append(script);
      };
      document.body.append(frame);
    }

    tell(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      if (!this.inner) this.waiting.push(data);
      else this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
    }

    terminate() {}
  };
}
