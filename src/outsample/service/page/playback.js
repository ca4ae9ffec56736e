// Which time span is shown: up to now, a brushed span, a paused moment, or a replay of the last hour.
const REPLAY_SECONDS = 60;

class Playback {
  constructor(arrivals) {
    this.arrivals = arrivals;
    this.now();
  }

  now() { Object.assign(this, { paused: null, brush: null, held: null, replaying: null }); }

  get isNow() { return this.paused === null && !this.brush && !this.replaying; }

  // The time span of the strip: at most the last hour.
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
    const replay = this.replaying, now = performance.now();
    if (this.paused === null) replay.share += (now - replay.seen) / 1000 / REPLAY_SECONDS;
    replay.seen = now;
    if (replay.share >= 1) this.replaying = null;
    const { begin, end } = replay;
    return { begin, end, from: begin, until: begin + Math.min(1, replay.share) * (end - begin) };
  }

  choose(from, until) {
    this.replaying = null;
    const all = from <= 0 && until >= 1;
    this.held = all ? null : this.held || this.span();  // the span does not move while it is brushed
    this.brush = all ? null : [from, until];
  }

  pause() { this.paused = this.paused === null ? this.latest() : null; }

  replay() {
    const again = this.replaying ? null : { ...this.span(), share: 0, seen: performance.now() };
    this.now();
    this.replaying = again;
  }
}
