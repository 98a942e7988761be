// What the race comes to: the headline, the badges, the final table, the facts about the machine. The report on a race
// is made by Python (specviz/views/report.py) and shown as it is; only the headline in mid-race is worked out here.
import { el, setText, table } from './dom.js';
import { ratioAt } from './state.js';
import { shortName, subtitle, title } from './names.js';
import { clock, plural, price, times } from './words.js';

/** @import { Place } from './playback.js' */
/** @import { Badge, Report as RaceReport } from './records.js' */
/** @import { Lane, LaneState, Trace } from './state.js' */

export class Report {
  measurable = false;
  /**
   * The report that the badges and the table show.
   * @type {RaceReport | null}
   */
  shown = null;

  constructor() {
    this.banner = el('div', { class: 'banner', role: 'alert', hidden: true });
    this.lead = el('span', { class: 'lead' });
    this.big = el('strong', {});
    this.rest = el('span', { class: 'rest' });
    this.badges = el('p', { class: 'badges' });
    this.headline = el(
      'header',
      { class: 'headline' },
      el('h2', {}, this.lead, ' ', this.big, ' ', this.rest),
      this.badges,
    );
    this.table = el('section', { class: 'panel final', 'aria-label': 'The finished run', hidden: true });
    this.facts = el('p', {});
    this.details = el('details', { class: 'facts' }, el('summary', {}, 'About this run'), this.facts);
  }

  /**
   * measurable: whether the race that comes was run here, so that the page that holds the view can run it again.
   * @param {boolean} measurable
   */
  reset(measurable) {
    this.measurable = measurable;
    this.banner.replaceChildren();
    this.banner.hidden = true;
    this.table.replaceChildren();
    this.table.hidden = true;
    this.badges.replaceChildren();
    this.shown = null;
    this.facts.textContent = '';
  }

  /**
   * A sentence that nobody should miss.
   * @param {string} text
   */
  notice(text) {
    this.banner.append(el('p', { class: 'error' }, text));
    this.banner.hidden = false;
  }

  /**
   * Shows the headline at the given states. The table and the badges are those of the whole run: they stay from its end
   * on, wherever a replay is. `live`: more is to come.
   * @param {Trace} trace
   * @param {LaneState[]} states
   * @param {{place: Place, t: number, live: boolean}} scene
   */
  show(trace, states, scene) {
    const { place, t, live } = scene;
    const over = !live && trace.report?.headline ? trace.report : null;
    const final = place === 'end' ? over?.headline : null;
    const { big, rest, loss } = final ? { ...final, loss: over?.loss } : liveWords(trace, states, place);
    setText(this.lead, place === 'replay' ? replayWords(t, trace.end, live) : '');
    setText(this.big, big);
    this.big.classList.toggle('loss', !!loss);
    setText(this.rest, rest);
    if (this.shown === over) return;
    this.shown = over;
    this.badges.replaceChildren(...(over?.badges ?? []).map(badge));
    this.showTable(trace, over);
  }

  // The headline as one sentence.
  get sentence() {
    return [this.lead, this.big, this.rest].map((part) => part.textContent).filter(Boolean).join(' ');
  }

  /**
   * @param {Trace} trace
   * @param {RaceReport | null} report
   */
  showTable(trace, report) {
    this.table.hidden = !report;
    const parts = report ? [...finalTable(trace, report), ...(this.measurable ? [measureButton()] : [])] : [];
    this.table.replaceChildren(...parts);
  }

  /** @param {RaceReport | null} report */
  showFacts(report) {
    setText(this.facts, report ? report.facts.join(' · ') : '');
  }
}

const measureButton = () => el('button', { type: 'button', 'data-act': 'measure' }, 'measure 5×');

/**
 * The speculative lane that is furthest ahead, with its state and its ratio to standard; null while none can be told.
 * @param {Trace} trace
 * @param {LaneState[]} states
 */
function leader(trace, states) {
  const standard = trace.lanes.findIndex((lane) => !lane.speculative);
  if (standard < 0) return null;
  const [first] = trace.lanes.filter((lane) => lane.speculative)
    .map((lane) => ({ lane, at: states[lane.index], ratio: ratioAt(states[standard], states[lane.index]) ?? 0 }))
    .sort((a, b) => b.ratio - a.ratio);
  return first?.ratio ? first : null;
}

/**
 * "Replay, 1.2 s of 4.8 s:"
 * @param {number} t
 * @param {number} end
 * @param {boolean} live
 */
function replayWords(t, end, live) {
  return `Replay, ${clock(t)} of ${clock(end)}${live ? ' so far' : ''}:`;
}

/**
 * The headline in mid-race, live or replayed, and at the end of a trace that came without its report.
 * @param {Trace} trace
 * @param {LaneState[]} states
 * @param {Place} place
 * @returns {{big: string, rest: string, loss?: boolean}}
 */
function liveWords(trace, states, place) {
  if (!trace.lanes.length) return { big: '', rest: 'Press Run, and two lanes race to write the same text.' };
  const first = leader(trace, states);
  if (!first) return { big: '', rest: place === 'live' ? beginning(states) : scores(trace, states) };
  const { lane, at, ratio } = first;
  const several = trace.lanes.filter((other) => other.speculative).length > 1;
  const who = several ? `${shortName(lane)}: ` : '';
  const soFar = place === 'end' ? '' : ' so far';
  const shown = times(ratio);
  if (shown === '1.00×') return { big: shown, rest: `${who}as fast as standard decoding${soFar}: ${price(at)}` };
  if (ratio < 1) return { big: shown, rest: `${who}slower${soFar}: ${price(at)}`, loss: true };
  return { big: `${shown} faster${soFar}`, rest: who + price(at) };
}

/** @param {LaneState[]} states */
const beginning = (states) => (states.some((at) => at.kept) ? 'Racing…' : 'Reading the prompt…');

/**
 * How many tokens each lane has, where their speeds cannot be compared.
 * @param {Trace} trace
 * @param {LaneState[]} states
 */
const scores = (trace, states) =>
  trace.lanes
    .map((lane, i) => `${shortName(lane)} ${plural(states[i].kept, 'token')}`).join(', ');

/** @param {Badge} badge */
const badge = ({ text, kind }) => el('span', { class: `badge ${kind}` }, text);

/**
 * @param {string} label
 * @param {HTMLElement} content
 */
const scrolling = (label, content) =>
  el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }, content);

/**
 * The reasons, the numbers lane by lane, and who guessed.
 * @param {Trace} trace
 * @param {RaceReport} report
 */
function finalTable(trace, report) {
  const heads = report.lanes.map((name) => head(trace.byName.get(name)));
  const rows = report.rows.map(({ title: name, meaning, cells }) => [el('span', { title: meaning }, name), ...cells]);
  const numbers = table('Standard and speculative decoding', ['number', ...heads], rows);
  const reasons = report.reasons.map((text) => el('p', { class: 'why' }, text));
  return [el('h3', {}, 'The finished run'), ...reasons, scrolling('Final numbers', numbers), ...sourceTable(report)];
}

/** @param {Lane | undefined} lane */
const head = (lane) => lane ? [title(lane), lane.speculative && subtitle(lane)].filter(Boolean).join(', ') : '';

/**
 * Which of a draft's sources guessed how much, and how much of that was kept; nothing where no draft has several.
 * @param {RaceReport} report
 */
function sourceTable({ sources, source_head: columns }) {
  if (!sources.length) return [];
  const named = sources.some(({ lane }) => lane);
  const rows = sources.map(({ lane, source, cells }) => [...(named ? [lane] : []), source, ...cells]);
  const heads = [...(named ? ['lane'] : []), 'guessed by', ...columns];
  return [el('h4', {}, 'Who guessed'), scrolling('Drafts by source', table('Drafts by source', heads, rows))];
}
