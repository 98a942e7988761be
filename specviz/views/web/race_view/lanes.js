// The lanes: a header with counters, the text as it grows, the row of the round in flight. A lane shows a state of
// state.js: rounds are appended, or taken off the end where time went back; what stands is never touched.
import { el, setText } from './dom.js';
import { depthOf, depthsOf, hasDraft, isKept, isTree, rateAt, roundItems } from './state.js';
import { subtitle, title } from './names.js';
import { cleanText, refOf, tokenNode } from './tokens.js';
import { clock, pieceOf, plural, rate, REASONS, STATUS, visible } from './words.js';

/** @import { DraftToken, LaneFinished, Round, SourceInfo, Token } from './records.js' */
/** @import { Item, Lane, LaneState, Phase } from './state.js' */

const COUNTERS = ['tokens', 'target passes', 'draft passes', 'tok/s', 'clock'];
const PASSES = COUNTERS.indexOf('draft passes');
// A line's worth of tokens; a text block is closed at a newline once it holds so many, so that laying out a new
// token never depends on the length of the run.
const BLOCK = 48;
const FLIGHT = 16;

export class LaneView {
  /**
   * The elements of the tokens that stand in the text.
   * @type {HTMLElement[]}
   */
  nodes = [];
  /**
   * Where each round begins among `nodes`.
   * @type {number[]}
   */
  starts = [];
  /**
   * The elements of the kept tokens.
   * @type {HTMLElement[]}
   */
  positions = [];
  /**
   * The one tab stop.
   * @type {HTMLElement | null}
   */
  current = null;
  shown = '';
  stuck = true;
  grown = false;
  blockSize = 0;

  /**
   * @param {Lane} lane
   * @param {{untested: boolean}} options whether drafts that were never tested stand in the text
   */
  constructor(lane, options) {
    this.lane = lane;
    this.options = options;
    this.log = el('div', { class: 'log', role: 'log', 'aria-live': 'off', 'aria-label': `Text of ${title(lane)}` });
    this.flight = el('div', { class: 'flight sv-skip' });
    this.end = el('p', { class: 'end' });
    this.counters = COUNTERS.map(() => el('b', {}, '–'));
    this.names = COUNTERS.map((name) => el('span', {}, name));
    this.small = el('small', {}, subtitle(lane));
    this.root = el(
      'section',
      {
        class: `lane ${lane.speculative ? 'speculative' : 'standard-lane'}`,
        'data-lane': lane.index,
        'aria-label': title(lane),
      },
      el(
        'header',
        {},
        el('h3', {}, title(lane), ' ', this.small),
        el('div', { class: 'counters' }, ...this.names.map((name, i) => el('p', {}, name, this.counters[i]))),
      ),
      this.log,
      this.flight,
      this.end,
    );
    this.log.addEventListener('scroll', () => {
      this.stuck = this.nearBottom();
    }, { passive: true });
    this.block = this.openBlock();
  }

  nearBottom() {
    return this.log.scrollTop + this.log.clientHeight >= this.log.scrollHeight - 24;
  }

  /**
   * Brings the lane to the state `at` of laneAt().
   * @param {LaneState} at
   */
  show(at) {
    if (at.rounds < this.starts.length) this.truncate(at.rounds);
    const grown = at.rounds > this.starts.length;
    while (this.starts.length < at.rounds) this.appendRound(this.starts.length);
    this.grown ||= grown;
    this.showCounters(at);
    this.showFlight(at);
    const finish = at.finished ? this.lane.finish : null;
    setText(this.end, finish ? ending(finish) : '');
    this.root.classList.toggle('failed', finish?.reason === 'error');
    this.root.classList.toggle('done', at.finished);
  }

  /** @param {number} index */
  appendRound(index) {
    const round = this.lane.rounds[index];
    const tree = isTree(round);
    const items = roundItems(round).filter((item) => this.stands(item, tree));
    const lastKept = items.reduce((last, item, i) => (isKept(item.status) ? i : last), -1);
    this.starts.push(this.nodes.length);
    items.forEach((item, i) => this.appendItem(item, index, i === lastKept ? this.seam(round) : ''));
    if (this.nodes.length && !this.current) this.rove(this.nodes[0]);
  }

  /**
   * Whether an item is part of the text. Of a tree, only the accepted path is: no text follows from the other branches.
   * @param {Item} item
   * @param {boolean} tree
   */
  stands(item, tree) {
    if (tree) return isKept(item.status);
    return this.options.untested || item.status !== 'untested';
  }

  /**
   * @param {Item} item
   * @param {number} round
   * @param {string} seam
   */
  appendItem(item, round, seam) {
    const kept = isKept(item.status);
    const position = kept ? this.positions.length : null;
    const node = tokenNode(
      item,
      { lane: this.lane.index, round, slot: item.slot, status: item.status, position },
      seam,
    );
    if (kept) this.positions.push(node);
    this.nodes.push(node);
    this.block.append(node);
    this.blockSize += 1;
    if (this.blockSize >= BLOCK && kept && node.textContent?.endsWith('\n')) this.block = this.openBlock();
  }

  openBlock() {
    const block = el('div', {});
    this.blockSize = 0;
    this.log.append(block);
    return block;
  }

  /**
   * "2": two drafts kept, then a correction. "+5": five kept, and a bonus. "2 ✕4": four more stood on other branches.
   * @param {Round} round
   */
  seam(round) {
    if (!this.lane.speculative || !hasDraft(round)) return '';
    const accepted = round.drafts.filter((draft) => draft.verdict === 'accepted').length;
    const count = round.target?.kind === 'bonus' ? `+${accepted}` : String(accepted);
    return isTree(round) ? `${count} ✕${round.drafts.length - accepted}` : count;
  }

  /**
   * Takes every round from `count` on off the end.
   * @param {number} count
   */
  truncate(count) {
    const from = this.starts[count];
    this.starts.length = count;
    for (const node of this.nodes.splice(from).reverse()) {
      if (refOf(node).position !== null) this.positions.pop();
      if (node === this.current) this.current = null;
      const block = node.parentElement;
      node.remove();
      if (block && !block.firstChild && block !== this.log.firstChild) block.remove();
    }
    this.block = /** @type {HTMLDivElement} */ (this.log.lastChild);
    this.blockSize = this.block.childNodes.length;
    if (this.nodes.length && !this.current) this.rove(this.nodes[0]);
  }

  // Scrolls to the end of the text. Not in show(), since it forces a layout: once for all lanes, after all is written.
  follow() {
    if (this.grown && this.stuck) this.log.scrollTop = 1e7;
    this.grown = false;
  }

  /** @param {LaneState} at */
  showCounters(at) {
    const drafts = this.lane.speculative ? String(at.draftPasses) : '–';
    const values = [String(at.kept), String(at.targetPasses), drafts, rate(rateAt(at)), clock(at.clock)];
    if (this.lane.tree) this.showShape(at, values);
    values.forEach((value, i) => setText(this.counters[i], value));
  }

  /**
   * A lane of trees says so, and how large they are: in the place of draft passes, where there are none.
   * @param {LaneState} at
   * @param {string[]} values
   */
  showShape(at, values) {
    setText(this.small, subtitle(this.lane));
    if (at.draftPasses) return;
    setText(this.names[PASSES], 'nodes, depth');
    /** @param {number} sum */
    const mean = (sum) => (sum / at.drafting).toFixed(1);
    values[PASSES] = at.drafting ? `${mean(at.drafted)}, ${mean(at.depth)}` : '–';
  }

  /**
   * The row of the round in flight: drafting, its drafts pending, then the verdicts until the next one has drafted.
   * @param {LaneState} at
   */
  showFlight(at) {
    const pending = at.phase === 'pending';
    const index = pending ? at.rounds : at.rounds - 1;
    const key = `${index}:${pending}:${at.phase}:${at.finished}`;
    if (key === this.shown) return;
    this.shown = key;
    this.flight.replaceChildren(...this.flightNodes(index, pending, at));
  }

  /**
   * @param {number} index
   * @param {boolean} pending
   * @param {LaneState} at
   */
  flightNodes(index, pending, at) {
    const round = this.lane.rounds[index];
    if (!round || at.finished) return [];
    const chips = isTree(round) ? levels(this.lane, round, pending) : chain(this.lane, round, pending);
    return [
      el('span', { class: 'round' }, `round ${index + 1}`),
      ...chips,
      el('em', {}, doing(this.lane, round, at.phase)),
    ];
  }

  /**
   * Makes a token the lane's one tab stop.
   * @param {HTMLElement} node
   */
  rove(node) {
    if (node === this.current) return; // an element whose tabindex goes loses the focus
    for (const name of ['tabindex', 'role', 'aria-label']) this.current?.removeAttribute(name);
    this.current = node;
    node.setAttribute('tabindex', '0');
    node.setAttribute('role', 'button');
    node.setAttribute(
      'aria-label',
      `${STATUS[refOf(node).status]}: ${visible(node.textContent || node.dataset.piece || '')}`,
    );
  }

  /**
   * The token that a key leads to from `node`: arrows to the sides within the text, up and down from round to round.
   * @param {HTMLElement} node
   * @param {string} key
   */
  step(node, key) {
    const at = this.nodes.indexOf(node);
    const round = refOf(node).round;
    /** @param {number} index */
    const first = (index) => this.nodes[this.starts[Math.max(0, Math.min(index, this.starts.length - 1))]];
    return {
      ArrowRight: this.nodes[at + 1],
      ArrowLeft: this.nodes[at - 1],
      ArrowDown: first(round + 1),
      ArrowUp: first(at === this.starts[round] ? round - 1 : round),
      Home: this.nodes[0],
      End: this.nodes[this.nodes.length - 1],
    }[key];
  }

  /**
   * The elements of a round that stand in the text.
   * @param {number} index
   */
  roundNodes(index) {
    if (index < 0 || index >= this.starts.length) return [];
    return this.nodes.slice(this.starts[index], this.starts[index + 1] ?? this.nodes.length);
  }

  /**
   * @param {number} round
   * @param {number} slot
   */
  node(round, slot) {
    return this.roundNodes(round).find((node) => refOf(node).slot === slot);
  }
}

/**
 * What a lane does at this moment, in words.
 * @param {Lane} lane
 * @param {Round} round
 * @param {Phase} phase
 */
function doing(lane, round, phase) {
  if (phase === 'idle' || (phase === 'drafting' && !lane.speculative)) return '';
  if (phase === 'drafting') return 'drafting…';
  if (isTree(round)) return `target is checking ${plural(round.drafts.length, 'node')}, depth ${depthOf(round)}`;
  const { k } = lane.settings;
  if (hasDraft(round)) {
    return round.drafted !== null && round.drafted < k
      ? `target is checking ${round.drafted} of k = ${k}`
      : 'target is checking';
  }
  return lane.speculative ? 'nothing drafted: one plain pass' : 'one plain pass';
}

/**
 * @param {Token} token
 * @param {string} status
 * @param {SourceInfo | null} [source] what guessed it; the first letter of its name stands beside the token
 */
function chip(token, status, source) {
  const named = source ? { 'data-source': source.name[0], title: `guessed by ${source.label}` } : {};
  return el('span', { class: `chip ${status}`, ...named }, visible(pieceOf(token)));
}

/**
 * @param {Lane} lane
 * @param {DraftToken | undefined} draft
 */
const sourceOf = (lane, draft) => draft?.source ? lane.source(draft.source) : null;

/** @param {number} count */
const overflow = (count) => (count > FLIGHT ? [`+${count - FLIGHT}`] : []);

/**
 * A round in flight as chips in a row.
 * @param {Lane} lane
 * @param {Round} round
 * @param {boolean} pending
 */
function chain(lane, round, pending) {
  const items = roundItems(round).filter((item) => !pending || item.slot >= 0);
  /** @param {Item} item */
  const source = (item) => sourceOf(lane, round.drafts[item.slot]);
  return [
    ...items.slice(0, FLIGHT).map((item) => chip(item.token, pending ? 'waiting' : item.status, source(item))),
    ...overflow(items.length),
  ];
}

/**
 * A round in flight that drafted a tree: the alternatives at each depth side by side, the depths one after the other.
 * @param {Lane} lane
 * @param {Round} round
 * @param {boolean} pending
 */
function levels(lane, round, pending) {
  const depths = depthsOf(round);
  /** @type {HTMLElement[]} */
  const groups = [];
  round.drafts.slice(0, FLIGHT).forEach((draft, slot) => {
    groups[depths[slot]] ??= el('span', { class: 'level' });
    groups[depths[slot]].append(chip(draft.token, pending ? 'waiting' : draft.verdict, sourceOf(lane, draft)));
  });
  const own = !pending && round.target ? [chip(round.target.token, round.target.kind)] : [];
  return [...groups.filter(Boolean), ...overflow(round.drafts.length), ...own];
}

/** @param {LaneFinished} finish */
function ending(finish) {
  const reason = REASONS[finish.reason] ?? finish.reason;
  return finish.message ? `${reason}: ${finish.message}` : reason;
}

/**
 * Puts the clean text of a selection that touches a lane on the clipboard.
 * @param {ClipboardEvent} event
 */
export function copyClean(event) {
  const selection = document.getSelection();
  if (!selection || selection.isCollapsed || !selection.rangeCount) return;
  const range = selection.getRangeAt(0);
  const touched = range.commonAncestorContainer;
  const element = touched instanceof Element ? touched : touched.parentElement;
  if (!element?.closest('.lane, .lanes')) return;
  event.clipboardData?.setData('text/plain', cleanText(range));
  event.preventDefault();
}
