// Which time is shown: now, a part that was brushed, a moment held still, or the last hour again.
const REPLAY_SECONDS = 60;

class Playing {
  constructor(arrivals) {
    this.arrivals = arrivals;
    this.now();
  }

  now() { Object.assign(this, { paused: null, brush: null, held: null, replaying: null }); }

  get isNow() { return this.paused === null && !this.brush && !this.replaying; }

  // The time on the strip: the last hour, or as much of it as there is.
  span() {
    const { times, n } = this.arrivals, end = this.paused ?? this.latest();
    const begin = Math.max(n ? times[0] : end - 60, end - HOUR);
    return { begin, end: Math.max(end, begin + 1) };
  }

  latest() {
    const { times, n } = this.arrivals;
    return n ? times[n - 1] : Date.now() / 1000;
  }

  shown() {
    if (this.replaying) return this.replayed();
    const { begin, end } = this.held || this.span(), [low, high] = this.brush || [0, 1];
    return { begin, end, from: begin + low * (end - begin), until: begin + high * (end - begin) };
  }

  replayed() {
    const one = this.replaying, now = performance.now();
    if (this.paused === null) one.share += (now - one.seen) / 1000 / REPLAY_SECONDS;
    one.seen = now;
    if (one.share >= 1) this.replaying = null;
    const { begin, end } = one;
    return { begin, end, from: begin, until: begin + Math.min(1, one.share) * (end - begin) };
  }

  choose(from, until) {
    this.replaying = null;
    const all = from <= 0 && until >= 1;
    this.held = all ? null : this.held || this.span();  // time stands still under a brush
    this.brush = all ? null : [from, until];
  }

  pause() { this.paused = this.paused === null ? this.latest() : null; }

  replay() {
    const again = this.replaying ? null : { ...this.span(), share: 0, seen: performance.now() };
    this.now();
    this.replaying = again;
  }
}
