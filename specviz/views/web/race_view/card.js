// The why card: for one token, what the draft and the target gave it, the draw, the verdict in a sentence, the draft
// tree where there was one, both models' first five, the residual it was redrawn from, and the round's times.
import { el, targetOf } from './dom.js';
import { depthOf, depthsOf, hasDraft, isTree, parentOf } from './state.js';
import {
  explain,
  guessedBy,
  keepChance,
  MARKS,
  percent,
  pieceOf,
  question,
  seconds,
  STATUS,
  visible,
} from './words.js';

/** @import { Alternative, DraftToken, Round, TargetToken, Token } from './records.js' */
/** @import { Item, Lane, Status } from './state.js' */
/** @import { Sentence } from './words.js' */

const WIDTH = 372;
const GAP = 8;
// A window that is no wider shows the card as a sheet at its lower edge.
const NARROW = 640;
// A tree with more nodes is folded until it is asked for, and cut after so many.
const TREE_OPEN = 16;
const TREE_MOST = 128;

export class Card {
  pinned = false;
  /**
   * The token that the card is about.
   * @type {HTMLElement | null}
   */
  node = null;

  /**
   * @param {HTMLElement} host
   * @param {() => void} close called when the button that closes the card is pressed
   */
  constructor(host, close) {
    this.host = host;
    this.root = el('div', { class: 'card sv-skip', role: 'dialog', 'aria-label': 'Why this token', hidden: true });
    this.root.addEventListener('click', (event) => {
      if (targetOf(event).closest('.close')) close();
    });
  }

  /**
   * Opens beside `node`, the element of `item` in `round` of `lane`.
   * @param {HTMLElement} node
   * @param {Item} item
   * @param {Round} round
   * @param {Lane} lane
   * @param {boolean} pinned
   */
  open(node, item, round, lane, pinned) {
    this.node = node;
    this.pinned = pinned;
    this.root.replaceChildren(...content(item, round, lane, pinned));
    this.root.hidden = false;
    this.root.classList.toggle('pinned', pinned);
    this.root.scrollTop = 0;
    this.place(node);
  }

  close() {
    if (this.root.hidden) return;
    this.root.hidden = true;
    this.root.replaceChildren();
    this.raise(false);
    this.node = null;
    this.pinned = false;
  }

  /**
   * Beside the token; in a narrow window a sheet, with the token in sight above it.
   * @param {HTMLElement} node
   */
  place(node) {
    const sheet = innerWidth <= NARROW;
    this.root.classList.toggle('sheet', sheet);
    this.raise(sheet);
    if (!sheet) this.placeBeside(node);
    else if (this.pinned) {
      const covered = node.getBoundingClientRect().bottom + GAP - (innerHeight - this.root.offsetHeight);
      if (covered > 0) scrollBy(0, covered);
    }
  }

  /**
   * A sheet lies in the browser's top layer, where nothing that holds the view can cut it.
   * @param {boolean} up
   */
  raise(up) {
    if (up === this.root.hasAttribute('popover')) return;
    this.root.toggleAttribute('popover', up);
    if (!up) return;
    this.root.setAttribute('popover', 'manual');
    this.root.style.cssText = '';
    this.root.showPopover?.();
  }

  /**
   * Below the token where there is room in the window, else above; always inside the view.
   * @param {HTMLElement} node
   */
  placeBeside(node) {
    const outer = this.host.getBoundingClientRect();
    const token = node.getClientRects()[0] ?? node.getBoundingClientRect();
    const width = Math.min(WIDTH, outer.width - 2 * GAP);
    this.root.style.width = `${width}px`;
    const height = this.root.offsetHeight;
    const left = Math.max(GAP, Math.min(token.left - outer.left - 24, outer.width - width - GAP));
    const below = token.bottom + GAP + height < innerHeight || token.top - GAP - height < 0;
    const top = below ? token.bottom - outer.top + GAP : token.top - outer.top - GAP - height;
    this.root.style.left = `${left}px`;
    this.root.style.top = `${top}px`;
  }
}

/**
 * @param {Item} item
 * @param {Round} round
 * @param {Lane} lane
 * @param {boolean} pinned
 */
function content(item, round, lane, pinned) {
  const greedy = lane.settings.temperature === 0;
  const draft = item.slot >= 0 ? round.drafts[item.slot] : null;
  const tree = isTree(round);
  return [
    el(
      'header',
      {},
      el('h4', {}, ...sentence(question(item.status, item.token))),
      pinned ? el('button', { type: 'button', class: 'close', 'aria-label': 'Close' }, '✕') : null,
      el('span', { class: `where ${item.status}` }, whereabouts(item, draft, round).join(' · ')),
    ),
    el('p', {}, ...sentence(explain(item, { lane, round, greedy }))),
    draft?.source ? el('p', { class: 'source' }, guessedBy(lane.source(draft.source))) : null,
    draft && !greedy && (!tree || Number.isFinite(draft.draw)) ? facts(draft) : null,
    tree ? treeOf(round, item.slot) : null,
    bars(draft, round),
    times(round, lane),
    el('p', { class: 'keys' }, pinned ? 'Esc closes · ← → token · ↑ ↓ round' : 'Enter or click pins'),
  ].filter((part) => part !== null);
}

/**
 * Where a token stands in its round, and what became of it.
 * @param {Item} item
 * @param {DraftToken | null} draft
 * @param {Round} round
 */
function whereabouts(item, draft, round) {
  const place = isTree(round) ? `depth ${depthsOf(round)[item.slot]}` : `position ${item.slot + 1}`;
  return [
    draft ? `round ${round.index + 1}, ${place}` : `round ${round.index + 1}`,
    `${MARKS[item.status]} ${STATUS[item.status]}`.trim(),
  ];
}

/**
 * The drafted tree: each token under the one that it follows, the accepted path marked, the target's token at its end.
 * @param {Round} round
 * @param {number} slot
 */
function treeOf(round, slot) {
  const depths = depthsOf(round);
  const path = round.drafts.filter((draft) => draft.verdict === 'accepted').length;
  /** @param {number} i */
  const row = (i) => treeRow(round.drafts[i], depths[i], i === slot);
  const rows = preorder(round).slice(0, TREE_MOST)
    .map((i) => (i < 0 && round.target ? targetRow(round.target, path) : row(i)));
  const count = round.drafts.length;
  return el(
    'details',
    { class: 'tree', open: count <= TREE_OPEN },
    el('summary', {}, `Draft tree: ${path} of ${count} nodes on the path taken, depth ${depthOf(round)}`),
    el('ul', {}, ...rows),
  );
}

/**
 * @param {DraftToken} draft
 * @param {number} depth
 * @param {boolean} here
 */
function treeRow(draft, depth, here) {
  const facts = [
    draft.source,
    draft.target_prob && draft.target_prob < 1 ? `p ${percent(draft.target_prob)}` : null,
  ];
  return branch(depth, draft.token, draft.verdict, facts, here);
}

/**
 * @param {TargetToken} target
 * @param {number} path
 */
const targetRow = (target, path) => branch(path + 1, target.token, target.kind, [STATUS[target.kind]], false);

/**
 * @param {number} depth
 * @param {Token} token
 * @param {Status} status
 * @param {(string | null | undefined)[]} facts
 * @param {boolean} here
 */
function branch(depth, token, status, facts, here) {
  const row = el(
    'li',
    { class: here ? 'here' : null },
    el('span', { class: `chip ${status}` }, visible(pieceOf(token))),
    el('small', {}, [status !== 'untested' && MARKS[status], ...facts].filter(Boolean).join(' · ')),
  );
  row.style.setProperty('--depth', String(Math.min(depth, 24) - 1));
  return row;
}

/**
 * The slots of a tree's drafts, each before what follows it; -1 stands for the target's token, after the path's last.
 * @param {Round} round
 */
function preorder(round) {
  /** @type {Map<number, number[]>} */
  const children = new Map();
  /** @param {number} slot */
  const after = (slot) => children.get(slot) ?? [];
  round.drafts.forEach((_, slot) => {
    const parent = parentOf(round, slot);
    children.set(parent, [...after(parent), slot]);
  });
  const accepted = round.drafts.reduce((last, draft, slot) => (draft.verdict === 'accepted' ? slot : last), -1);
  const own = round.target ? [-1] : [];
  const order = accepted < 0 ? own : [];
  const stack = [...after(-1)].reverse();
  for (let slot = stack.pop(); slot !== undefined; slot = stack.pop()) {
    order.push(slot, ...(slot === accepted ? own : []));
    stack.push(...[...after(slot)].reverse());
  }
  return order;
}

/**
 * Strings as they are, tokens as code.
 * @param {Sentence} parts
 */
function sentence(parts) {
  return parts.filter(Boolean).map((
    part,
  ) => (typeof part === 'string' ? part : el('code', {}, visible(pieceOf(part.token)))));
}

/** @param {DraftToken} draft */
function facts(draft) {
  const chance = keepChance(draft);
  /** @param {number | null | undefined} p */
  const value = (p) => (p === undefined || p === null ? '–' : p.toPrecision(3));
  const pairs = [
    ['q', value(draft.draft_prob)],
    ['p', value(draft.target_prob)],
    ['min(1, p/q)', value(chance)],
    ['draw u', value(draft.draw)],
  ];
  return el('dl', {}, ...pairs.map(([name, text]) => el('div', {}, el('dt', {}, name), el('dd', {}, text))));
}

/**
 * The most probable tokens of the place, by the target, by the draft, and in what a correction was redrawn from.
 * @param {DraftToken | null} draft
 * @param {Round} round
 */
function bars(draft, round) {
  const { target } = round;
  const record = draft ?? target;
  if (!record) return null;
  // The draft's view of the place is on the rejected draft, not on the correction that replaced it.
  const rejected = target?.kind === 'correction' ? round.drafts.find((one) => one.verdict === 'rejected') : null;
  const lists = [
    topList('target p', record.target_top, 'target', record.token),
    topList('draft q', (draft ?? rejected)?.draft_top, 'draft', record.token),
    draft ? null : topList('redrawn from', target?.residual_top, 'residual', record.token),
  ].filter((list) => list !== null);
  return lists.length ? el('div', { class: 'tops' }, ...lists) : null;
}

/**
 * @param {string} name
 * @param {Alternative[] | null | undefined} top
 * @param {string} kind
 * @param {Token} token
 */
function topList(name, top, kind, token) {
  if (!top?.length) return null;
  const rows = top.slice(0, 5).map(([other, p]) => {
    const bar = el('i', {});
    bar.style.width = `${Math.max(1, p * 100)}%`;
    const here = other[0] !== null && other[0] === token[0];
    return el(
      'li',
      { class: here ? 'here' : null },
      el('code', {}, visible(pieceOf(other))),
      el('span', {}, bar),
      percent(p),
    );
  });
  return el('section', { class: kind }, el('h5', {}, name), el('ol', {}, ...rows));
}

/**
 * @param {Round} round
 * @param {Lane} lane
 */
function times(round, lane) {
  const parts = [
    lane.speculative && `draft ${seconds(round.draft_seconds)}${hasDraft(round) ? '' : ' (found nothing)'}`,
    `target ${seconds(round.verify_seconds)}`,
    `other ${seconds(round.other_seconds)}`,
    round.telemetry_seconds ? `explaining ${seconds(round.telemetry_seconds)} (off the clock)` : null,
    round.note,
  ];
  return el('p', { class: 'times' }, parts.filter(Boolean).join(' · '));
}
