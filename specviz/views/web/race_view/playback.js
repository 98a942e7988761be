// The time that is shown: it follows a live race's clock, runs in a replay, or stands where it was put.
import { countUpTo, raceClock, Trace } from './state.js';

/** @typedef {'live' | 'end' | 'replay'} Place */

const SLACK = 5e-6;
// Seconds over which the speed of a live race is measured.
const MEMORY = 4;

export class Playback {
  trace = new Trace();
  live = false;
  t = 0;
  following = true;
  playing = false;
  speed = 1;
  lastFrame = 0;
  /**
   * What has come of a live race: [seconds of the wall clock, of the race clock].
   * @type {[number, number][]}
   */
  pulses = [];

  /** @param {() => void} changed called whenever something else than before is to be shown */
  constructor(changed) {
    this.changed = changed;
  }

  /**
   * @param {Trace} trace
   * @param {boolean} live
   */
  reset(trace, live) {
    Object.assign(this, { trace, live, t: 0, following: true, playing: false, pulses: [] });
  }

  /**
   * All that came is shown where lanes have no common clock, one running after the other, and where nothing more comes:
   * a trace that was cut off has lanes that never finish.
   */
  get now() {
    if (!this.following) return this.t;
    return this.trace.sequential || !this.live ? this.trace.end : raceClock(this.trace);
  }

  get atEnd() {
    return !this.live && this.now >= this.trace.end - 1e-6;
  }

  /**
   * What the time shown is of its race: 'live', its moment; 'end', where it was left; 'replay', any other.
   * @returns {Place}
   */
  get place() {
    if (this.atEnd) return 'end';
    return this.live && this.following ? 'live' : 'replay';
  }

  // Notes how far the race clock has come; call it whenever something arrives.
  pulse() {
    const now = performance.now() / 1000;
    this.pulses.push([now, raceClock(this.trace)]);
    while (this.pulses.length > 2 && now - this.pulses[0][0] > MEMORY) this.pulses.shift();
  }

  /**
   * The race clock's speed against the wall; 0 before it can be told, null where nothing is live.
   * @returns {number | null}
   */
  get liveSpeed() {
    if (!this.live) return null;
    const [wall, clock] = this.pulses[0] ?? [0, 0];
    const [wallNow, clockNow] = this.pulses[this.pulses.length - 1] ?? [0, 0];
    return wallNow - wall > 0.5 ? (clockNow - clock) / (wallNow - wall) : 0;
  }

  /** @param {number} t */
  seek(t) {
    Object.assign(this, { following: false, playing: false, t: Math.max(0, Math.min(t, this.trace.end)) });
    this.changed();
  }

  follow() {
    Object.assign(this, { following: true, playing: false });
    this.changed();
  }

  again() {
    Object.assign(this, { t: 0, following: false, playing: false });
    this.toggle();
  }

  // Plays or pauses; at the end, plays from the start.
  toggle() {
    if (!this.playing && (this.following || this.t >= this.trace.end - 1e-6)) this.t = 0;
    Object.assign(this, { playing: !this.playing, following: false, lastFrame: performance.now() });
    this.changed();
  }

  /**
   * Moves a running replay on to the frame at `now` milliseconds.
   * @param {number} now
   */
  advance(now) {
    if (!this.playing) return;
    this.t += (Math.max(0, now - this.lastFrame) / 1000) * this.speed;
    this.lastFrame = now;
    if (this.t >= this.trace.end) Object.assign(this, { t: this.trace.end, playing: false });
  }

  /**
   * To the next (1) or the last (-1) end of a round in any lane.
   * @param {1 | -1} direction
   */
  stepRound(direction) {
    const t = this.now;
    const ends = this.trace.lanes.map((lane) => {
      const index = direction > 0 ? countUpTo(lane.ends, t + SLACK) : countUpTo(lane.ends, t - SLACK) - 1;
      return index < 0 ? 0 : lane.ends[index];
    }).filter((end) => end !== undefined);
    if (ends.length) this.seek(direction > 0 ? Math.min(...ends) : Math.max(...ends));
  }
}
