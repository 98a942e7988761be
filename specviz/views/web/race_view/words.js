// Numbers and verdicts in words: pure functions from records to text. A sentence is a list of strings and of tokens
// ({token}), so that a token can be set apart on the page without ever becoming markup.
import { hasDraft, isTree, parentOf } from './state.js';

/** @import { Alternative, DraftToken, Reason, Round, SourceInfo, TargetToken, Token } from './records.js' */
/** @import { Item, Lane, Status } from './state.js' */

/** @typedef {(string | {token: Token})[]} Sentence */

/** @typedef {{lane: Lane | null, round: Round, greedy: boolean}} Context */

// The numbers of a race in progress follow the rules of specviz/metrics/formats.py; a test compares the two.

/** @param {number | null | undefined} p */
export function percent(p) {
  if (p === null || p === undefined) return '–';
  if (p > 0 && p < 0.001) return '<0.1%';
  if (p > 0.999 && p < 1) return '>99.9%';
  const value = p * 100;
  return `${value.toFixed((value > 0 && value < 1) || (value > 99 && value < 100) ? 1 : 0)}%`;
}

/** @param {number | null | undefined} s */
export function seconds(s) {
  if (s === null || s === undefined) return '–';
  if (s < 0.001) return `${(s * 1e6).toFixed(0)} µs`;
  if (s < 1) return `${(s * 1000).toFixed(s < 0.01 ? 2 : s < 0.1 && (s * 1000) % 1 > 0.05 ? 1 : 0)} ms`;
  return `${s.toFixed(s < 10 ? 2 : 1)} s`;
}

/** @param {number} s */
export const clock = (s) => `${s.toFixed(s < 10 ? 2 : 1)} s`;

/** @param {number | null} value */
export const rate = (value) => (value === null || !Number.isFinite(value) ? '–' : value.toFixed(value < 100 ? 1 : 0));

/**
 * A speed-up: one decimal, two near 1 and near 0.
 * @param {number} ratio
 */
export function times(ratio) {
  return `${ratio.toFixed(ratio < 0.1 || ratio.toFixed(1) === '1.0' ? 2 : 1)}×`;
}

/**
 * @param {number} count
 * @param {string} one
 */
export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** @param {number | null | undefined} value */
const number = (value, digits = 2) => (value === null || value === undefined ? '–' : value.toFixed(digits));

/** @param {number} count */
export function millions(count) {
  return count >= 1e9 ? `${(count / 1e9).toFixed(2)} B` : `${Math.round(count / 1e6)} M`;
}

/**
 * A text of at most `limit` characters: a longer one loses its middle, since names that are alike differ at their end.
 * @param {string} text
 * @param {number} limit
 */
export function clip(text, limit) {
  const half = Math.floor(limit / 2);
  return text.length <= limit ? text : `${text.slice(0, half)}…${text.slice(text.length - limit + half + 1)}`;
}

/**
 * A text with its white space made visible.
 * @param {string} text
 */
export function visible(text) {
  return text.replaceAll('\n', '↵').replaceAll('\t', '⇥').replace(/^ +$/, (run) => '␣'.repeat(run.length));
}

/**
 * A token as one reads it: its piece, or what else is known of it.
 * @param {Token} token
 */
export function pieceOf(token) {
  const [id, text, piece] = token;
  return piece ?? text ?? (id === null ? '(not shown by the server)' : `#${id}`);
}

/** @type {Record<Status, string>} */
export const STATUS = {
  accepted: 'accepted',
  rejected: 'rejected',
  untested: 'never tested',
  correction: 'correction',
  bonus: 'bonus',
  standard: 'standard',
};

/** @type {Record<Status, string>} */
export const MARKS = { accepted: '✓', rejected: '✕', untested: '·', correction: '⇄', bonus: '+', standard: '' };

/** @type {Record<Reason, string>} */
export const REASONS = {
  eos: 'ended by itself',
  stop: 'ended at a stop string',
  length: 'reached the token limit',
  context: 'the context is full',
  cancelled: 'stopped',
  error: 'failed',
};

/**
 * "Guessed by the table: what most often followed ..." of a source of the lane's header.
 * @param {SourceInfo} source
 */
export function guessedBy({ label, meaning }) {
  return `Guessed by ${label}${meaning ? `: ${meaning}` : ''}.`;
}

/**
 * The card's heading for a token.
 * @param {Status} status
 * @param {Token} token
 * @returns {Sentence}
 */
export function question(status, token) {
  const named = { token };
  return {
    accepted: ['Why was ', named, ' kept?'],
    rejected: ['Why was ', named, ' thrown away?'],
    untested: ['Why was ', named, ' never tested?'],
    correction: ['Why ', named, ' instead?'],
    bonus: ['Why is ', named, ' a bonus?'],
    standard: ['Where does ', named, ' come from?'],
  }[status];
}

/**
 * Why a token was kept, thrown away or written, in plain words.
 * @param {Item} item
 * @param {Context} context
 * @returns {Sentence}
 */
export function explain(item, context) {
  const draft = item.slot >= 0 ? context.round.drafts[item.slot] : null;
  if (draft && isTree(context.round)) return treeDraft(item.slot, context);
  if (draft) return context.greedy ? greedyDraft(draft, context.round) : sampledDraft(draft, context.round);
  return context.round.target ? targetToken(context.round.target, context) : [];
}

/**
 * min(1, p / q), the chance that a drafted token is kept; null where p or q is not known.
 * @param {DraftToken} draft
 */
export function keepChance(draft) {
  if (draft.draft_prob === undefined || draft.target_prob === undefined) return null;
  if (draft.draft_prob === null || draft.target_prob === null || draft.draft_prob <= 0) return null;
  return Math.min(1, draft.target_prob / draft.draft_prob);
}

/**
 * @param {DraftToken} draft
 * @param {Round} round
 * @returns {Sentence}
 */
function sampledDraft(draft, round) {
  if (draft.verdict === 'untested') return untested(round);
  const chance = keepChance(draft);
  const kept = draft.verdict === 'accepted';
  const end = kept ? 'so it was kept.' : 'so it was thrown away.';
  if (chance === null) return [kept ? 'The target agreed, ' : 'The target did not agree, ', end];
  const [q, p] = [percent(draft.draft_prob), percent(draft.target_prob)];
  const certain = draft.draft_prob === 1
    ? `The draft named it outright (100%), the target gave it ${p}: `
    : `The draft gave it ${q}, the target ${chance < 1 ? 'only ' : ''}${p}: `;
  if (chance >= 1) return [certain, 'the target wants it at least as much, so it is always kept.'];
  const draw = draft.draw === undefined || draft.draw === null ? '' : `the draw was ${number(draft.draw)}, `;
  return [certain, `kept with chance ${percent(chance)}, ${draw}${end}`];
}

/**
 * @param {DraftToken} draft
 * @param {Round} round
 * @returns {Sentence}
 */
function greedyDraft(draft, round) {
  if (draft.verdict === 'untested') return untested(round);
  const q = probabilityIn(draft.draft_top, draft.token);
  const p = probabilityIn(draft.target_top, draft.token);
  const shares = q === null || p === null
    ? ''
    : `The draft gave it ${percent(q)}, the target ${p < q ? 'only ' : ''}${percent(p)}. `;
  if (draft.verdict === 'accepted') {
    return [shares, 'It is the target’s own first choice, so greedy decoding keeps it.'];
  }
  const choice = firstChoice(draft, round);
  if (!choice) return [shares, 'Greedy decoding keeps only the target’s first choice.'];
  const margin = round.target?.margin;
  const lead = margin === undefined || margin === null ? '.' : `, ahead by ${number(margin)} in logits.`;
  return [shares, 'Greedy decoding keeps only the target’s first choice, which is ', { token: choice }, lead];
}

/**
 * What the target would have written in place of a rejected draft.
 * @param {DraftToken} draft
 * @param {Round} round
 */
function firstChoice(draft, round) {
  if (draft.target_top?.length) return draft.target_top[0][0];
  return round.target?.kind === 'correction' ? round.target.token : null;
}

/** @param {Round} round */
function untested(round) {
  const rejected = round.drafts.some((draft) => draft.verdict === 'rejected');
  return [
    rejected
      ? 'A token before it was thrown away, and with it all that followed: the target never got to judge it.'
      : 'The run had already ended before it.',
  ];
}

/**
 * The drafts of a tree are alternatives: at each branching they are tried in turn until one is taken.
 * @param {number} slot
 * @param {Context} context
 * @returns {Sentence}
 */
function treeDraft(slot, { round, greedy }) {
  const draft = round.drafts[slot];
  const parent = parentOf(round, slot);
  if (draft.verdict === 'untested') {
    const open = parent < 0 || round.drafts[parent].verdict === 'accepted';
    return [
      open
        ? 'The run had already ended before it.'
        : 'It stands on a branch that was not taken: what it follows was thrown away.',
    ];
  }
  const siblings = round.drafts.filter((_, i) => parentOf(round, i) === parent);
  const taken = siblings.find((other) => other.verdict === 'accepted');
  const kept = draft.verdict === 'accepted';
  if (!greedy && has(draft.draw)) return triedBranch(draft, siblings[0] !== draft);
  if (kept) {
    return [
      `${greedy ? 'It is the target’s own first choice here' : 'The target agreed'}, so the path goes on through it.`,
    ];
  }
  if (taken && !greedy) return ['Another branch had already been taken here: ', { token: taken.token }, '.'];
  const wanted = taken ?? round.target;
  return wanted
    ? ['The target’s first choice here is ', { token: wanted.token }, ', so this branch was not taken.']
    : ['The target wanted another token here, so this branch was not taken.'];
}

/**
 * A drawn test of one branch; `later`: others were tried before it, and p is what they left of the target's.
 * @param {DraftToken} draft
 * @param {boolean} later
 */
function triedBranch(draft, later) {
  const chance = keepChance(draft);
  const end = draft.verdict === 'accepted' ? 'so the path goes on through it.' : 'so this branch was not taken.';
  const left = later ? ' of what the branches tried before it left' : '';
  const said = has(draft.target_prob) ? `The target gave it ${percent(draft.target_prob)}${left}: ` : '';
  return [
    said,
    chance === null ? '' : `kept with chance ${percent(chance)}, `,
    `the draw was ${number(draft.draw)}, ${end}`,
  ];
}

/**
 * @param {TargetToken} target
 * @param {Context} context
 * @returns {Sentence}
 */
function targetToken(target, context) {
  const { round, lane, greedy } = context;
  if (target.kind === 'standard') {
    const plain = lane?.speculative && !hasDraft(round)
      ? 'Nothing was drafted in this round: a plain pass, as in standard decoding'
      : 'One pass of the target, one token';
    return [plain, greedy ? marginOf(target) : chanceOf(target, greedy)];
  }
  if (isTree(round)) return treeTarget(target, greedy);
  if (target.kind === 'bonus') {
    const count = round.drafted ?? round.drafts.length;
    return [
      `All ${count === 1 ? 'that was' : count} drafted ${count === 1 ? '' : 'tokens '}` +
      'passed. The same target pass also says what comes next, so this token is free',
      chanceOf(target, greedy),
    ];
  }
  return greedy
    ? ['The target’s own first choice at the place where the draft went wrong', marginOf(target)]
    : ['Drawn from what the target wants beyond the draft, max(0, p − q) scaled to one', residualChance(target)];
}

/**
 * @param {TargetToken} target
 * @param {boolean} greedy
 */
function treeTarget(target, greedy) {
  if (target.kind === 'bonus') {
    return [
      'The path reached the end of its branch. The same target pass also says what comes next, so this token is free',
      chanceOf(target, greedy),
    ];
  }
  return greedy
    ? ['The target’s own first choice at a place where no branch had it', marginOf(target)]
    : ['Drawn from what the target wants beyond the branches tried here', residualChance(target)];
}

/**
 * @template T
 * @param {T | null | undefined} value
 * @returns {value is T}
 */
const has = (value) => value !== undefined && value !== null;

/**
 * @param {TargetToken} target
 * @param {boolean} greedy
 */
function chanceOf(target, greedy) {
  if (greedy) return marginOf(target);
  return has(target.target_prob) ? `; the target gave it ${percent(target.target_prob)}.` : '.';
}

/** @param {TargetToken} target */
function residualChance(target) {
  return has(target.draw_prob) ? `; there it had ${percent(target.draw_prob)}.` : '.';
}

/** @param {TargetToken} target */
function marginOf(target) {
  return has(target.margin) ? `, ahead of the second by ${number(target.margin)} in logits.` : '.';
}

/**
 * The probability of a token in a top list, null where it is not among them.
 * @param {Alternative[] | null | undefined} top
 * @param {Token} token
 */
function probabilityIn(top, token) {
  const found = top?.find(([other]) => (token[0] !== null ? other[0] === token[0] : pieceOf(other) === pieceOf(token)));
  return found ? found[1] : null;
}

/**
 * What a lane's speed is paid with: "33 target passes instead of 150, plus 160 draft passes".
 * @param {{targetPasses: number, draftPasses: number, kept: number}} at
 */
export function price(at) {
  const drafts = at.draftPasses ? `, plus ${plural(at.draftPasses, 'draft pass', 'draft passes')}` : '';
  return `${plural(at.targetPasses, 'target pass', 'target passes')} instead of ${at.kept}${drafts}`;
}
