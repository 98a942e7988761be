// The pass timeline: one block per pass on each lane's own clock, drawn on a canvas, since a run may have thousands.
// It draws what is new; all of it only when the scale, the window or the theme changes.
import { colour, el, targetOf } from './dom.js';
import { countUpTo, hasDraft } from './state.js';
import { shortName } from './names.js';

/** @import { Round } from './records.js' */
/** @import { Lane, Trace } from './state.js' */

/**
 * A pass was pointed at or clicked (`pinned`): the indices of its lane and round, null and -1 where there is none.
 * @typedef {(lane: number | null, round: number, pinned: boolean) => void} OnRound
 */

const ROW = 26;
const LABEL = 15;
const PITCH = ROW + LABEL + 8;
const STEPS = [1, 1.5, 2, 3, 4, 5, 7, 10];
const PAINTS = ['standard', 'draft', 'verify', 'other', 'on-verify', 'line', 'dim', 'font'];

export class Timeline {
  /** @type {Trace | null} */
  trace = null;
  /**
   * The rounds to show of each lane; null before the first state.
   * @type {number[] | null}
   */
  counts = null;
  /**
   * The rounds of each lane that stand on the canvas.
   * @type {number[]}
   */
  drawn = [];
  /**
   * The part of the run that is shown, in seconds; null where all of it is.
   * @type {[from: number, to: number] | null}
   */
  zoom = null;
  span = 0;
  t = 0;
  width = 1;
  dirty = true;
  dragged = false;
  /** Where the pointer holds the plot, in pixels of the window. */
  grip = 0;
  /** The size of the font that is set, in pixels; 0 where it is not known. */
  size = 0;
  /** @type {Record<string, string>} */
  paint = {};

  /**
   * @param {OnRound} onRound called when a pass is pointed at or clicked
   */
  constructor(onRound) {
    this.onRound = onRound;
    this.canvas = el('canvas', { role: 'img', 'aria-label': 'Passes of each lane on its own clock' });
    this.hand = el('i', { class: 'hand' });
    this.mark = el('i', { class: 'mark', hidden: true });
    this.plot = el('div', { class: 'plot' }, this.canvas, this.hand, this.mark);
    this.scale = el('span', { class: 'scale' });
    /**
     * @param {string} name
     * @param {string} label
     */
    const button = (name, label) => el('button', { type: 'button', 'data-zoom': name, 'aria-label': label }, name);
    this.root = el(
      'figure',
      { class: 'panel timeline', 'data-chart': 'passes' },
      el(
        'figcaption',
        {},
        el('h3', {}, 'Passes on each lane’s own clock'),
        el(
          'span',
          { class: 'legend' },
          el('span', { class: 'key standard' }, 'one pass, one token'),
          el('span', { class: 'key draft' }, 'draft'),
          el('span', { class: 'key verify' }, 'verify, n tokens kept'),
        ),
        el('span', { class: 'zoom' }, button('−', 'Zoom out'), button('+', 'Zoom in')),
      ),
      this.plot,
      this.scale,
    );
    this.pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d'));
    this.listen();
    this.reset(null);
  }

  /** @param {Trace | null} trace */
  reset(trace) {
    Object.assign(this, { trace, counts: null, drawn: [], span: 0, zoom: null, t: 0, dirty: true });
    this.canvas.style.height = `${this.height}px`;
    this.mark.hidden = true;
  }

  get height() {
    return (this.trace?.lanes.length || 2) * PITCH;
  }

  /**
   * The seconds shown, from and to.
   * @returns {[from: number, to: number]}
   */
  get window() {
    return this.zoom ?? [0, this.span || 1];
  }

  /** @param {number} seconds */
  x(seconds) {
    const [from, to] = this.window;
    return ((seconds - from) / (to - from)) * this.width;
  }

  /**
   * Shows the passes up to time t.
   * @param {number} t
   * @param {number[]} counts the rounds that have ended in each lane
   * @param {boolean} whole whether the run is over, so that all of it is the scale
   */
  show(t, counts, whole) {
    if (!this.trace) return;
    const span = whole ? this.trace.end || 1 : niceSpan(t);
    if (span !== this.span && (whole || span > this.span)) Object.assign(this, { span, dirty: true });
    this.t = t;
    this.counts = counts;
    const { lanes } = this.trace;
    if (this.dirty || counts.some((count, i) => count < this.drawn[i])) this.redraw(lanes, counts);
    else lanes.forEach((lane, i) => this.draw(lane, this.drawn[i], counts[i]));
    this.drawn = [...counts];
    const x = this.x(t);
    this.hand.style.transform = `translateX(${Math.max(0, Math.min(x, this.width))}px)`;
    this.hand.hidden = x < 0 || x > this.width + 1;
  }

  /**
   * Draws everything again, with the colours and the width of now.
   * @param {Lane[]} lanes
   * @param {number[]} counts
   */
  redraw(lanes, counts) {
    const { canvas } = this;
    const ratio = devicePixelRatio || 1;
    this.width = this.plot.clientWidth || 1;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    this.pen.scale(ratio, ratio);
    this.paint = Object.fromEntries(PAINTS.map((name) => [name, colour(this.root, name)]));
    lanes.forEach((lane, i) => {
      this.drawRow(lane);
      this.draw(lane, 0, counts[i]);
    });
    const [from, to] = this.window;
    this.scale.textContent = `${from.toFixed(1)} s to ${to.toFixed(1)} s`;
    this.dirty = false;
  }

  /** @param {Lane} lane */
  drawRow(lane) {
    const { pen } = this;
    const top = topOf(lane.index);
    pen.fillStyle = this.paint.dim;
    pen.font = `11px ${this.paint.font}`;
    this.size = 0;
    pen.fillText(shortName(lane), 0, top - 4);
    pen.strokeStyle = this.paint.line;
    pen.setLineDash([3, 3]);
    pen.strokeRect(0.5, top + 0.5, this.width - 1, ROW - 1);
    pen.setLineDash([]);
  }

  /**
   * Draws a lane's rounds `from` up to `to`, those that the window shows.
   * @param {Lane} lane
   * @param {number} from
   * @param {number} to
   */
  draw(lane, from, to) {
    const [left, right] = this.window;
    const first = Math.max(from, countUpTo(lane.ends, left));
    const last = Math.min(to, countUpTo(lane.starts, right));
    for (let i = first; i < last; i += 1) this.drawRound(lane, i);
  }

  /**
   * @param {Lane} lane
   * @param {number} i
   */
  drawRound(lane, i) {
    const { pen, paint } = this;
    const y = topOf(lane.index);
    const [a, b, c] = [lane.starts[i], lane.draftEnds[i], lane.ends[i]].map((seconds) => this.x(seconds));
    const gap = c - a > 4 ? 1 : 0;
    pen.fillStyle = paint.draft;
    if (b > a) pen.fillRect(a, y, b - a, ROW);
    const round = lane.rounds[i];
    const verifies = lane.speculative && hasDraft(round);
    pen.fillStyle = verifies ? paint.verify : paint.standard;
    pen.fillRect(b, y, c - b - gap, ROW);
    if (verifies) this.write(kept(round), (b + c - gap) / 2, y, this.blockWidth(lane));
  }

  /**
   * The mean width of a lane's verify blocks: all of a lane's counts are written, or none.
   * @param {Lane} lane
   */
  blockWidth(lane) {
    const [from, to] = this.window;
    return (lane.sums.verify[lane.rounds.length] / lane.rounds.length / (to - from)) * this.width;
  }

  /**
   * Writes a count in a block of some width, smaller in a narrow one, not at all where it would not fit.
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {number} width
   */
  write(text, x, y, width) {
    if (width < 5.5) return;
    const size = Math.round(Math.max(8, Math.min(11, width)));
    this.pen.fillStyle = this.paint['on-verify'];
    // Setting a font parses it, even the same one.
    if (size !== this.size) this.pen.font = `bold ${size}px ${this.paint.font}`;
    this.size = size;
    this.pen.textAlign = 'center';
    this.pen.fillText(text, x, y + ROW / 2 + 4);
    this.pen.textAlign = 'start';
  }

  /**
   * Outlines a round's passes; null takes the outline away.
   * @param {number | null} lane
   * @param {number} round
   */
  highlight(lane, round) {
    const found = lane !== null && round >= 0 ? this.trace?.lanes[lane] : null;
    this.mark.hidden = true;
    if (lane === null || !found || round >= found.rounds.length) return;
    const [a, b] = [this.x(found.starts[round]), this.x(found.ends[round])];
    this.mark.hidden = b < 0 || a > this.width;
    Object.assign(this.mark.style, {
      left: `${a}px`,
      width: `${Math.max(2, b - a)}px`,
      top: `${topOf(lane)}px`,
    });
  }

  /**
   * The lane and round under the pointer, round -1 where there is none.
   * @param {MouseEvent} event
   * @returns {[lane: number | null, round: number]}
   */
  hit(event) {
    const box = this.canvas.getBoundingClientRect();
    const lane = Math.floor((event.clientY - box.top) / PITCH);
    const found = this.trace?.lanes[lane];
    if (!found) return [null, -1];
    const [from, to] = this.window;
    const seconds = from + ((event.clientX - box.left) / box.width) * (to - from);
    const round = countUpTo(found.ends, seconds);
    return [lane, round < (this.counts?.[lane] ?? 0) && found.starts[round] <= seconds ? round : -1];
  }

  listen() {
    this.plot.addEventListener('pointermove', (event) => this.onPointer(event));
    this.plot.addEventListener('pointerleave', () => this.onRound(null, -1, false));
    this.plot.addEventListener('click', (event) => {
      if (!this.dragged) this.onRound(...this.hit(event), true);
    });
    this.plot.addEventListener('pointerdown', (event) => {
      this.grip = event.clientX;
      this.dragged = false;
    });
    this.plot.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    this.plot.addEventListener('dblclick', () => this.setWindow(null));
    this.root.addEventListener('click', (event) => {
      const zoom = targetOf(event).dataset?.zoom;
      if (zoom) this.zoomAt(zoom === '+' ? 0.5 : 2, zoom === '+' ? this.t : null);
    });
  }

  /** @param {PointerEvent} event */
  onPointer(event) {
    if (event.buttons && this.zoom) {
      const [from, to] = this.window;
      const moved = ((this.grip - event.clientX) / this.width) * (to - from);
      this.dragged ||= Math.abs(this.grip - event.clientX) > 3;
      this.grip = event.clientX;
      this.setWindow([from + moved, to + moved]);
    } else this.onRound(...this.hit(event), false);
  }

  /**
   * Zooms with Ctrl held, as maps do, so that the page still scrolls.
   * @param {WheelEvent} event
   */
  onWheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.window;
    this.zoomAt(event.deltaY > 0 ? 1.25 : 0.8, from + ((event.clientX - box.left) / box.width) * (to - from));
  }

  /**
   * @param {number} factor
   * @param {number | null} centre
   */
  zoomAt(factor, centre) {
    const [from, to] = this.window;
    const middle = Math.min(to, Math.max(from, centre ?? (from + to) / 2));
    this.setWindow([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  /**
   * Keeps the window inside the run; the whole run is no zoom.
   * @param {[from: number, to: number] | null} window
   */
  setWindow(window) {
    if (!this.trace) return;
    const width = window ? window[1] - window[0] : Infinity;
    const from = window ? Math.max(0, Math.min(window[0], this.span - width)) : 0;
    this.zoom = width >= this.span ? null : [from, from + Math.max(width, this.span / 2000)];
    this.plot.classList.toggle('zoomed', !!this.zoom);
    this.refresh();
  }

  // Draws everything again, with the colours and the width of now.
  refresh() {
    this.dirty = true;
    if (this.counts && this.trace) this.show(this.t, this.counts, this.span === this.trace.end);
  }

  // The numbers as a table.
  rows() {
    /** @type {(string | number)[][]} */
    const rows = [];
    this.trace?.lanes.forEach((lane, index) => {
      for (let i = 0; i < (this.counts?.[index] ?? 0); i += 1) {
        const at = [lane.starts[i], lane.draftEnds[i], lane.ends[i]].map((seconds) => seconds.toFixed(3));
        rows.push([shortName(lane), lane.rounds[i].index + 1, ...at, kept(lane.rounds[i])]);
      }
    });
    return { head: ['lane', 'round', 'starts (s)', 'drafted (s)', 'ends (s)', 'tokens kept'], rows };
  }
}

/**
 * Where a lane's row of blocks begins, in pixels.
 * @param {number} lane
 */
const topOf = (lane) => lane * PITCH + LABEL;

/** @param {Round} round */
function kept(round) {
  return String(round.drafts.filter((draft) => draft.verdict === 'accepted').length + (round.target ? 1 : 0));
}

/**
 * The smallest round number of seconds that leaves some room after t.
 * @param {number} t
 */
export function niceSpan(t) {
  const want = Math.max(t * 1.1, 0.1);
  const power = 10 ** Math.floor(Math.log10(want));
  return power * (STEPS.find((step) => step * power >= want - 1e-12) ?? 10);
}
