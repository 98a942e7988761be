// The live curves, in SVG: tokens against the clock, acceptance, forward passes, where the time goes. Each is a pure
// function of the running sums at the states shown, sampled, so that it costs the same at any length of the run.
import { el, setText } from './dom.js';
import { alphaAt, laneAt, passesPerToken } from './state.js';
import { shortName, title } from './names.js';
import { clip, percent, seconds } from './words.js';

/** @import { Lane, LaneState, Trace } from './state.js' */

/**
 * What is to be seen: the states at time t, the end of the scale, and the lane of the bar charts.
 * @typedef {{trace: Trace, t: number, states: LaneState[], end: number, chosen: number}} Scene
 */

/** @typedef {{head: string[], rows: (string | number)[][]}} Rows */

/**
 * A number of the rounds `from` up to `to`.
 * @typedef {(from: number, to: number) => number} OfRounds
 */

const WIDTH = 260;
const HEIGHT = 132;
const TOP = 16;
const BOTTOM = 20;
const PLOT = HEIGHT - TOP - BOTTOM;
const SAMPLES = 96;
// Characters of a lane's name that a chart has room for.
const NAME = 20;
const BARS = 64;
const DASHES = ['━', '━', '╍', '┅'];

/** All charts. */
export class Curves {
  constructor() {
    this.charts = [new TokensChart(), new AcceptanceChart(), new PassesChart(), new TimeChart()];
    this.root = el('div', { class: 'curves' }, ...this.charts.map((chart) => chart.root));
  }

  reset() {
    this.charts.forEach((chart) => chart.reset());
  }

  /** @param {Scene} scene */
  show(scene) {
    this.charts.forEach((chart) => chart.show(scene));
  }
}

class Chart {
  /** @type {Scene | null} */
  scene = null;
  /** @type {Map<string, SVGElement>} */
  parts = new Map();

  /**
   * @param {string} name
   * @param {string} heading
   */
  constructor(name, heading) {
    this.heading = el('h3', {}, heading);
    this.svg = el('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': heading });
    this.root = el(
      'figure',
      { class: `panel chart ${name}`, 'data-chart': name },
      el('figcaption', {}, this.heading),
      this.svg,
    );
  }

  /** @param {Scene} _scene */
  draw(_scene) {}

  /**
   * @param {Scene} _scene
   * @returns {Rows}
   */
  rowsOf(_scene) {
    return { head: [], rows: [] };
  }

  // The numbers as a table.
  rows() {
    return this.scene ? this.rowsOf(this.scene) : { head: [], rows: [] };
  }

  reset() {
    this.svg.replaceChildren();
  }

  /** @param {Scene} scene */
  show(scene) {
    this.scene = scene;
    if (!this.svg.firstChild) this.parts.clear();
    this.draw(scene);
  }

  /**
   * A part of the drawing by its key, made once and then only changed.
   * @param {string} key
   * @param {'path' | 'rect' | 'text'} tag
   * @param {Record<string, string | number>} attributes
   * @param {string} [text]
   */
  part(key, tag, attributes, text) {
    const node = this.parts.get(key) ?? el(tag);
    if (!node.parentNode) {
      this.parts.set(key, node);
      this.svg.append(node);
    }
    for (const [name, value] of Object.entries(attributes)) {
      if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
    }
    if (text !== undefined) setText(node, text);
  }

  /**
   * @param {string} left
   * @param {string} right
   * @param {string} top
   */
  axis(left, right, top) {
    this.part('grid', 'path', { class: 'grid', d: gridLines() });
    this.part('left', 'text', { x: 0, y: HEIGHT - 4 }, left);
    this.part('right', 'text', { x: WIDTH, y: HEIGHT - 4, 'text-anchor': 'end' }, right);
    this.part('top', 'text', { x: 0, y: 10 }, top);
  }
}

function gridLines() {
  return [0, 1, 2, 3].map((i) => `M0 ${(TOP + (PLOT * i) / 3).toFixed(1)}H${WIDTH}`).join('');
}

/** @param {number} share */
const y = (share) => TOP + PLOT * (1 - Math.max(0, Math.min(1, share)));

class TokensChart extends Chart {
  constructor() {
    super('tokens', 'Tokens over time');
  }

  /**
   * @param {Scene} scene
   * @override
   */
  draw({ trace, states, end }) {
    const most = niceCount(Math.max(...states.map((at) => at.kept)));
    this.axis('0 s', seconds(end), String(most));
    trace.lanes.forEach((lane, i) => {
      this.part(`line${i}`, 'path', { class: `line lane-${i}`, d: growth(lane, states[i], end, most) });
      // The corner under the curves is free: names never hide a line there.
      const place = HEIGHT - BOTTOM - 6 - 14 * (trace.lanes.length - 1 - i);
      this.part(
        `label${i}`,
        'text',
        { class: `label lane-${i}`, x: WIDTH, y: place, 'text-anchor': 'end' },
        `${clip(shortName(lane), NAME)} ${DASHES[i % DASHES.length]}`,
      );
    });
  }

  /**
   * @param {Scene} scene
   * @returns {Rows}
   * @override
   */
  rowsOf({ trace, t }) {
    const times = Array.from({ length: 11 }, (_, i) => (t * i) / 10);
    /** @param {number} time */
    const cells = (time) => trace.lanes.map((lane) => laneAt(lane, time).kept);
    return {
      head: ['clock', ...trace.lanes.map(shortName)],
      rows: times.map((time) => [seconds(time), ...cells(time)]),
    };
  }
}

/**
 * @param {Lane} lane
 * @param {LaneState} at
 * @param {number} end
 * @param {number} most
 */
function growth(lane, at, end, most) {
  const step = Math.max(1, Math.ceil(at.rounds / SAMPLES));
  const points = ['M0', y(0)];
  for (let i = step; i < at.rounds + step; i += step) {
    const rounds = Math.min(i, at.rounds);
    points.push('L', ((lane.ends[rounds - 1] / end) * WIDTH).toFixed(1), y(lane.sums.kept[rounds] / most).toFixed(1));
  }
  return points.join(' ');
}

class AcceptanceChart extends Chart {
  constructor() {
    super('acceptance', 'Acceptance');
    this.legend = el('p', { class: 'legend' });
    this.root.append(this.legend);
  }

  /** @override */
  reset() {
    super.reset();
    this.legend.replaceChildren();
  }

  /**
   * @param {Scene} scene
   * @override
   */
  draw({ trace, states, chosen }) {
    const lane = trace.lanes[chosen];
    if (!lane) return this.part('none', 'text', { x: 0, y: y(0.5) }, 'No lane drafts.');
    const { rounds } = states[chosen];
    const step = Math.max(1, Math.ceil(rounds / BARS));
    this.axis('1', rounds > 1 ? `round ${rounds}` : '', '100%');
    this.part('bars', 'path', { class: 'bars', d: bars(rounds, step, (from, to) => share(lane, from, to)) });
    this.part('used', 'path', { class: 'used', d: usesAllOfK(lane, rounds) ? '' : usedLine(lane, rounds, step) });
    const drafting = trace.lanes.filter((other) => other.speculative);
    drafting.forEach((other) => {
      const d = alphaLine(other, states[other.index].rounds);
      this.part(`alpha${other.index}`, 'path', {
        class: `line ${drafting.length > 1 ? `lane-${other.index}` : 'only'}`,
        d,
      });
    });
    this.drawLegend(drafting, states, lane, rounds);
  }

  /**
   * What the bars are of, how much of k was drafted where that was not all, and each line's last value.
   * @param {Lane[]} drafting
   * @param {LaneState[]} states
   * @param {Lane} chosen
   * @param {number} rounds
   */
  drawLegend(drafting, states, chosen, rounds) {
    const several = drafting.length > 1;
    const what = chosen.tree ? 'nodes' : 'drafted';
    const keys = [['draft', `accepted / ${what}${several ? `, ${shortName(chosen)}` : ''}`]];
    if (!usesAllOfK(chosen, rounds)) {
      keys.push([
        'used',
        `${what}, mean ${(chosen.sums.drafted[rounds] / rounds).toFixed(1)} of k = ${chosen.settings.k}`,
      ]);
    }
    drafting.forEach((lane) => {
      const { rounds } = states[lane.index];
      const value = alphaAt(lane, rounds)?.toFixed(2) ?? '–';
      keys.push(
        several ? [`line lane-${lane.index}`, `${shortName(lane)}: α ${value}`] : ['line', `α so far ${value}`],
      );
    });
    while (this.legend.children.length < keys.length) this.legend.append(el('span'));
    keys.forEach(([kind, text], i) => {
      this.legend.children[i].className = `key ${kind}`;
      setText(this.legend.children[i], text);
    });
  }

  /**
   * @param {Scene} scene
   * @returns {Rows}
   * @override
   */
  rowsOf({ trace, states }) {
    /** @type {(string | number)[][]} */
    const rows = [];
    trace.lanes.filter((lane) => lane.speculative).forEach((lane) => {
      for (let i = 0; i < states[lane.index].rounds; i += 1) {
        /** @param {'drafted' | 'depth' | 'accepted'} name */
        const round = (name) => lane.sums[name][i + 1] - lane.sums[name][i];
        rows.push([
          shortName(lane),
          i + 1,
          round('drafted'),
          round('depth'),
          round('accepted'),
          alphaAt(lane, i + 1)?.toFixed(3) ?? '–',
        ]);
      }
    });
    return { head: ['lane', 'round', 'drafted', 'depth', 'accepted', 'α so far (accepted / tested)'], rows };
  }
}

/**
 * Whether every round drafted k tokens, so that there is nothing to say of how many.
 * @param {Lane} lane
 * @param {number} rounds
 */
const usesAllOfK = (lane, rounds) => lane.sums.drafted[rounds] === rounds * lane.settings.k;

/**
 * How much of k the rounds drafted, as a stair over the bars of the same rounds.
 * @param {Lane} lane
 * @param {number} rounds
 * @param {number} step
 */
function usedLine(lane, rounds, step) {
  const count = Math.ceil(rounds / step);
  const pitch = Math.min(12, WIDTH / Math.max(1, count));
  const parts = [];
  for (let i = 0; i < count; i += 1) {
    const [from, to] = [i * step, Math.min((i + 1) * step, rounds)];
    const used = (lane.sums.drafted[to] - lane.sums.drafted[from]) / ((to - from) * lane.settings.k);
    parts.push(`${i ? 'V' : `M0 `}${y(used).toFixed(1)}h${pitch.toFixed(1)}`);
  }
  return parts.join('');
}

/**
 * @param {Lane} lane
 * @param {number} from
 * @param {number} to
 */
function share(lane, from, to) {
  const drafted = lane.sums.drafted[to] - lane.sums.drafted[from];
  return drafted ? (lane.sums.accepted[to] - lane.sums.accepted[from]) / drafted : 0;
}

/**
 * Bars of `step` rounds each from the bottom up to value(from, to), `base` lower where they are stacked.
 * @param {number} rounds
 * @param {number} step
 * @param {OfRounds} value
 * @param {OfRounds} base
 */
function bars(rounds, step, value, base = () => 0) {
  const count = Math.ceil(rounds / step);
  const pitch = Math.min(12, WIDTH / Math.max(1, count));
  const parts = [];
  for (let i = 0; i < count; i += 1) {
    const [from, to] = [i * step, Math.min((i + 1) * step, rounds)];
    const low = base(from, to);
    const [bottom, top] = [y(low), y(low + value(from, to))];
    if (bottom - top > 0.05) {
      parts.push(
        `M${(i * pitch).toFixed(1)} ${bottom.toFixed(1)}V${top.toFixed(1)}h${(pitch * 0.8).toFixed(1)}V${
          bottom.toFixed(1)
        }z`,
      );
    }
  }
  return parts.join('');
}

/**
 * @param {Lane} lane
 * @param {number} rounds
 */
function alphaLine(lane, rounds) {
  const step = Math.max(1, Math.ceil(rounds / SAMPLES));
  const scale = Math.min(12 * rounds, WIDTH) / Math.max(1, rounds);
  const points = [];
  for (let i = step; i < rounds + step; i += step) {
    const at = Math.min(i, rounds);
    const alpha = alphaAt(lane, at);
    if (alpha === null) continue;
    points.push(points.length ? 'L' : 'M', ((at - 0.5) * scale).toFixed(1), y(alpha).toFixed(1));
  }
  return points.join(' ');
}

class PassesChart extends Chart {
  constructor() {
    super('passes', 'Forward passes');
  }

  /**
   * @param {Scene} scene
   * @override
   */
  draw({ trace, states }) {
    const lines = passLines(trace, states);
    const most = Math.max(1, ...lines.map((line) => line.count));
    const pitch = 33;
    this.svg.setAttribute('viewBox', `0 0 ${WIDTH} ${Math.max(HEIGHT, pitch * lines.length)}`);
    lines.forEach((line, i) => {
      const top = i * pitch;
      this.part(`name${i}`, 'text', { x: 0, y: top + 10 }, `${clip(line.name, NAME + 8)} · ${line.each} per token`);
      const width = Math.max(1, (line.count / most) * (WIDTH - 46));
      this.part(`bar${i}`, 'rect', { class: line.kind, x: 0, y: top + 14, width: width.toFixed(1), height: 12, rx: 2 });
      this.part(`count${i}`, 'text', { class: 'count', x: (width + 5).toFixed(1), y: top + 24 }, String(line.count));
    });
  }

  /**
   * @param {Scene} scene
   * @returns {Rows}
   * @override
   */
  rowsOf({ trace, states }) {
    return {
      head: ['passes', 'count', 'per kept token'],
      rows: passLines(trace, states).map((line) => [line.name, line.count, line.each]),
    };
  }
}

/**
 * @param {Trace} trace
 * @param {LaneState[]} states
 */
function passLines(trace, states) {
  /**
   * @param {number} count
   * @param {LaneState} at
   */
  const each = (count, at) => passesPerToken(at, count)?.toFixed(2) ?? '–';
  return trace.lanes.flatMap((lane, i) => {
    const at = states[i];
    const name = lane.speculative ? `target, ${shortName(lane)}` : title(lane);
    const target = {
      name,
      count: at.targetPasses,
      each: each(at.targetPasses, at),
      kind: lane.speculative ? 'verify' : 'standard',
    };
    const size = lane.tree ? `${lane.settings.k} nodes` : `k=${lane.settings.k}`;
    const draft = { name: `draft, ${size}`, count: at.draftPasses, each: each(at.draftPasses, at), kind: 'draft' };
    return lane.speculative ? [target, draft] : [target];
  });
}

class TimeChart extends Chart {
  constructor() {
    super('time', 'Time per round');
    this.keys = ['draft', 'verify', 'other'].map((kind) => el('span', { class: `key ${kind}` }));
    this.root.append(el('p', { class: 'legend' }, ...this.keys));
  }

  /**
   * @param {Scene} scene
   * @override
   */
  draw({ trace, states, chosen }) {
    const index = trace.lanes[chosen] ? chosen : 0;
    const lane = trace.lanes[index];
    const { rounds } = states[index];
    const step = Math.max(1, Math.ceil(rounds / BARS));
    /**
     * @param {'draft' | 'verify' | 'other'} kind
     * @returns {OfRounds}
     */
    const mean = (kind) => (from, to) => (lane.sums[kind][to] - lane.sums[kind][from]) / (to - from);
    const [draft, verify, other] = [mean('draft'), mean('verify'), mean('other')];
    let most = 1e-9;
    for (let i = 0; i < rounds; i += step) {
      const to = Math.min(i + step, rounds);
      most = Math.max(most, draft(i, to) + verify(i, to) + other(i, to));
    }
    /**
     * @param {OfRounds} part
     * @returns {OfRounds}
     */
    const scaled = (part) => (from, to) => part(from, to) / most;
    /**
     * @param {...OfRounds} parts
     * @returns {OfRounds}
     */
    const sum = (...parts) => (from, to) => parts.reduce((total, part) => total + part(from, to), 0) / most;
    this.axis('1', rounds > 1 ? `round ${rounds}` : '', rounds ? seconds(Number(most.toPrecision(2))) : '');
    this.part('draft', 'path', { class: 'draft', d: bars(rounds, step, scaled(draft)) });
    this.part('verify', 'path', { class: 'verify', d: bars(rounds, step, scaled(verify), sum(draft)) });
    this.part('other', 'path', { class: 'other', d: bars(rounds, step, scaled(other), sum(draft, verify)) });
    shares(states[index]).forEach((text, i) => {
      setText(this.keys[i], text);
      this.keys[i].hidden = !text;
    });
  }

  /**
   * @param {Scene} scene
   * @returns {Rows}
   * @override
   */
  rowsOf({ trace, states }) {
    const rows = trace.lanes.flatMap((lane, index) =>
      lane.rounds.slice(0, states[index].rounds).map((round, i) => [
        shortName(lane),
        i + 1,
        seconds(round.draft_seconds),
        seconds(round.verify_seconds),
        seconds(round.other_seconds),
      ])
    );
    return { head: ['lane', 'round', 'draft', 'target', 'other'], rows };
  }
}

/**
 * What each part took of the time so far; '' where it took next to nothing.
 * @param {LaneState} at
 */
function shares(at) {
  const total = at.draft + at.verify + at.other;
  /**
   * @param {string} name
   * @param {number} part
   */
  const text = (name, part) => (total && part / total >= 0.005 ? `${name} ${percent(part / total)}` : '');
  return [text('draft', at.draft), text('target', at.verify), text('other', at.other)];
}

/**
 * The smallest of 1, 1.5, 2, 3, 5, 7.5 times a power of ten that is no less than a count.
 * @param {number} count
 */
export function niceCount(count) {
  const power = 10 ** Math.floor(Math.log10(Math.max(count, 10)));
  return Math.round(power * ([1, 1.5, 2, 3, 5, 7.5].find((step) => step * power >= count) ?? 10));
}
