// The why card: for one token, what the draft and the target gave it, the draw, the verdict in a sentence, both
// models' first five, the residual it was redrawn from, and the round's times.
import { el } from './dom.js';
import { MARKS, STATUS, explain, keepChance, percent, pieceOf, question, seconds, visible } from './words.js';

const WIDTH = 372;
const GAP = 8;

export class Card {
  constructor(host) {
    this.host = host;
    this.pinned = false;
    this.node = null;
    this.root = el('div', { class: 'card sv-skip', role: 'dialog', 'aria-label': 'Why this token', hidden: true });
  }

  // Opens beside `node`, the element of `item` in `round` of `lane`.
  open(node, item, round, lane, pinned) {
    this.node = node;
    this.pinned = pinned;
    this.root.replaceChildren(...content(item, round, lane, pinned));
    this.root.hidden = false;
    this.root.classList.toggle('pinned', pinned);
    this.place(node);
  }

  close() {
    if (this.root.hidden) return;
    this.root.hidden = true;
    this.root.replaceChildren();
    this.node = null;
    this.pinned = false;
  }

  // Below the token where there is room in the window, else above; always inside the view.
  place(node) {
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

function content(item, round, lane, pinned) {
  const greedy = lane.settings.temperature === 0;
  const draft = item.slot >= 0 ? round.drafts[item.slot] : null;
  const place = draft ? `round ${round.index + 1}, position ${item.slot + 1}` : `round ${round.index + 1}`;
  return [
    el('header', {}, el('h4', {}, ...sentence(question(item.status, item.token))),
      el('span', { class: `where ${item.status}` }, [place, `${MARKS[item.status]} ${STATUS[item.status]}`.trim()].join(' · '))),
    el('p', {}, ...sentence(explain(item, { lane, round, greedy }))),
    draft && !greedy ? facts(draft) : null,
    bars(draft ?? round.target, round),
    times(round, lane),
    el('p', { class: 'keys' }, pinned ? 'Esc closes · ← → token · ↑ ↓ round' : 'Enter or click pins'),
  ].filter(Boolean);
}

// Strings as they are, tokens as code.
function sentence(parts) {
  return parts.filter(Boolean).map((part) => (typeof part === 'string' ? part : el('code', {}, visible(pieceOf(part.token)))));
}

function facts(draft) {
  const chance = keepChance(draft);
  const value = (p) => (p === undefined || p === null ? '–' : p.toPrecision(3));
  const pairs = [['q', value(draft.draft_prob)], ['p', value(draft.target_prob)],
    ['min(1, p/q)', value(chance)], ['draw u', value(draft.draw)]];
  return el('dl', {}, ...pairs.map(([name, text]) => el('div', {}, el('dt', {}, name), el('dd', {}, text))));
}

function bars(record, round) {
  if (!record) return null;
  const lists = [['target p', record.target_top, 'target'], ['draft q', record.draft_top, 'draft'],
    ['redrawn from', record.residual_top, 'residual']];
  // The draft's view of the place is on the rejected draft, not on the correction that replaced it.
  if (!record.draft_top && record.kind === 'correction') {
    lists[1][1] = round.drafts.find((draft) => draft.verdict === 'rejected')?.draft_top;
  }
  const known = lists.filter(([, top]) => top?.length);
  if (!known.length) return null;
  return el('div', { class: 'tops' }, ...known.map(([name, top, kind]) => topList(name, top, kind, record.token)));
}

function topList(name, top, kind, token) {
  const rows = top.slice(0, 5).map(([other, p]) => {
    const bar = el('i', {});
    bar.style.width = `${Math.max(1, p * 100)}%`;
    const here = other[0] !== null && other[0] === token[0];
    return el('li', { class: here ? 'here' : null }, el('code', {}, visible(pieceOf(other))), el('span', {}, bar), percent(p));
  });
  return el('section', { class: kind }, el('h5', {}, name), el('ol', {}, ...rows));
}

function times(round, lane) {
  const parts = [
    lane.speculative && `draft ${seconds(round.draft_seconds)}`,
    `target ${seconds(round.verify_seconds)}`,
    `other ${seconds(round.other_seconds)}`,
    round.telemetry_seconds ? `explaining ${seconds(round.telemetry_seconds)} (off the clock)` : null,
    round.note,
  ];
  return el('p', { class: 'times' }, parts.filter(Boolean).join(' · '));
}
