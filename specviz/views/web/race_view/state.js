// Events to the state of every lane at a time t. Appending an event costs the same at any length of the run (running
// sums), and so does asking for a state (binary search). Knows nothing of the page.
import { SETTINGS } from './records.js';

/** @import { Event, Header, LaneFinished, LaneInfo, ModelInfo, SourceInfo } from './records.js' */
/** @import { Kind, Report, Round, Token, Verdict } from './records.js' */

const COUNTS = /** @type {const} */ ([
  'kept',
  'accepted',
  'tested',
  'drafted',
  'depth',
  'drafting',
  'draftPasses',
  'targetPasses',
  'draft',
  'verify',
  'other',
]);
// Times travel in microseconds: sums of rounded parts may miss a boundary by a few of them.
const SLACK = 5e-6;
// A rate means little before a lane has done this many rounds.
const FEWEST_ROUNDS = 3;

/**
 * What rounds add up to: kept, accepted, tested and drafted tokens, depths drafted, rounds that drafted, passes of both
 * models, and the seconds of each part.
 * @typedef {Record<typeof COUNTS[number], number>} Counts
 */

/**
 * A lane at time t: the rounds that have ended, where the next one is, and what the ended ones add up to.
 * @typedef {Counts & {t: number, rounds: number, phase: Phase, clock: number, finished: boolean}} LaneState
 */

/**
 * 'pending': drafted, and in the target's pass; 'idle': no round spans the time.
 * @typedef {'drafting' | 'pending' | 'idle'} Phase
 */

/**
 * A token of a round as it is read; `slot` is its index among the drafts, -1 for the target's own.
 * @typedef {{token: Token, status: Status, slot: number}} Item
 */

/** @typedef {Verdict | Kind} Status */

/** One lane's rounds with their clock and running sums; sums[name][i] is the total of the first i rounds. */
export class Lane {
  /** @type {Round[]} */
  rounds = [];
  /** @type {number[]} */
  starts = [];
  /** @type {number[]} */
  draftEnds = [];
  /** @type {number[]} */
  ends = [];
  /** @type {LaneFinished | null} */
  finish = null;
  /** Whether its drafts name their sources. */
  sourced = false;
  /** A name that tells it from the others in a few characters. */
  short = '';

  /**
   * @param {LaneInfo} info
   * @param {number} index
   * @param {ModelInfo} target
   */
  constructor(info, index, target) {
    this.info = info;
    this.index = index;
    this.target = target;
    this.name = info.name;
    this.settings = { ...SETTINGS, ...info.settings };
    // It drafts alternatives, by its header or by a round that did.
    this.tree = !!info.tree;
    const sums = Object.fromEntries(COUNTS.map((name) => [name, [0]]));
    this.sums = /** @type {Record<keyof Counts, number[]>} */ (sums);
  }

  get speculative() {
    return this.info.draft !== 'none';
  }

  /**
   * A source of its guesses as the header describes it; one that the header lacks goes by its own name.
   * @param {string} name
   * @returns {SourceInfo}
   */
  source(name) {
    return this.info.sources?.find((one) => one.name === name) ?? { name, label: name };
  }

  get end() {
    return this.ends[this.ends.length - 1] ?? 0;
  }

  /** @param {Round} round */
  append(round) {
    const start = round.start_seconds ?? this.end;
    const draft = round.draft_seconds ?? 0;
    this.rounds.push(round);
    this.tree ||= isTree(round);
    this.sourced ||= round.drafts.some((draft) => draft.source);
    this.starts.push(start);
    this.draftEnds.push(start + draft);
    this.ends.push(start + draft + (round.verify_seconds ?? 0) + (round.other_seconds ?? 0));
    const counts = countRound(round);
    for (const name of COUNTS) {
      const sums = this.sums[name];
      sums.push(sums[sums.length - 1] + counts[name]);
    }
  }
}

/** A whole race as it has arrived: the lanes, and the events as a trace file has them. */
export class Trace {
  /** @type {Header | null} */
  header = null;
  /** @type {Lane[]} */
  lanes = [];
  /** @type {Map<string, Lane>} */
  byName = new Map();
  /** @type {Event[]} */
  events = [];
  /** @type {Report | null} */
  report = null;

  /** @param {Event} event */
  append(event) {
    this.events.push(event);
    const lane = 'lane' in event ? this.byName.get(event.lane) : undefined;
    if (event.event === 'RaceStarted') this.start(event.header);
    else if (event.event === 'RoundDone') lane?.append(event.round);
    else if (lane && event.event === 'LaneFinished') lane.finish = event;
  }

  /** @param {Header} header */
  start(header) {
    this.header = header;
    this.lanes = header.lanes.map((info, index) => new Lane(info, index, header.target));
    this.byName = new Map(this.lanes.map((lane) => [lane.name, lane]));
  }

  get sequential() {
    return this.header?.mode === 'sequential';
  }

  /** The latest moment on any lane's clock. */
  get end() {
    return Math.max(0, ...this.lanes.map((lane) => lane.end));
  }
}

/**
 * The moment that every unfinished lane has reached; the end once all have finished.
 * @param {Trace} trace
 */
export function raceClock(trace) {
  const open = trace.lanes.filter((lane) => !lane.finish);
  return open.length ? Math.min(...open.map((lane) => lane.end)) : trace.end;
}

/**
 * What a lane had at a time: all rounds that had ended. Pure.
 * @param {Lane} lane
 * @param {number} t seconds on the lane's clock
 * @returns {LaneState}
 */
export function laneAt(lane, t) {
  const rounds = countUpTo(lane.ends, t + SLACK);
  const counts = Object.fromEntries(COUNTS.map((name) => [name, lane.sums[name][rounds]]));
  return {
    .../** @type {Counts} */ (counts),
    t,
    rounds,
    phase: phaseAt(lane, rounds, t),
    clock: Math.min(t, lane.end),
    finished: !!lane.finish && rounds === lane.rounds.length,
  };
}

/**
 * @param {Lane} lane
 * @param {number} rounds that have ended
 * @param {number} t
 * @returns {Phase}
 */
function phaseAt(lane, rounds, t) {
  if (rounds >= lane.rounds.length || lane.starts[rounds] > t + SLACK) return 'idle';
  return t + SLACK >= lane.draftEnds[rounds] ? 'pending' : 'drafting';
}

/**
 * How many of the ascending values are <= limit.
 * @param {number[]} values
 * @param {number} limit
 */
export function countUpTo(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * A round's share in the running sums. Tested counts corrections, not rejections: in a tree they differ.
 * @param {Round} round
 * @returns {Counts}
 */
function countRound(round) {
  const accepted = round.drafts.filter((draft) => draft.verdict === 'accepted').length;
  const correction = round.target?.kind === 'correction' ? 1 : 0;
  const drafted = round.drafted ?? round.drafts.length;
  return {
    kept: accepted + (round.target ? 1 : 0),
    accepted,
    tested: accepted + correction,
    drafted,
    depth: isTree(round) ? depthOf(round) : drafted,
    drafting: hasDraft(round) ? 1 : 0,
    draftPasses: round.draft_passes === undefined ? 0 : round.draft_passes ?? 0,
    targetPasses: round.target_passes === undefined ? 1 : round.target_passes ?? 0,
    draft: round.draft_seconds ?? 0,
    verify: round.verify_seconds ?? 0,
    other: round.other_seconds ?? 0,
  };
}

/**
 * Whether anything was drafted in a round; a served round may show it only by its own token.
 * @param {Round} round
 */
export function hasDraft(round) {
  if (round.drafted !== undefined && round.drafted !== null) return round.drafted > 0;
  return round.drafts.length > 0 || (!!round.target && round.target.kind !== 'standard');
}

/**
 * The index of the draft that a draft follows, -1 for the context.
 * @param {Round} round
 * @param {number} slot
 */
export function parentOf(round, slot) {
  const parent = round.drafts[slot].parent ?? slot - 1;
  return parent < slot ? parent : -1;
}

/**
 * How deep each drafted token stands: 1 after the context, 2 after one drafted token, and so on.
 * @param {Round} round
 */
export function depthsOf(round) {
  /** @type {number[]} */
  const depths = [];
  round.drafts.forEach((_, slot) => depths.push((depths[parentOf(round, slot)] ?? 0) + 1));
  return depths;
}

/**
 * How deep the deepest stands, 0 where nothing was drafted.
 * @param {Round} round
 */
export const depthOf = (round) => depthsOf(round).reduce((deepest, depth) => Math.max(deepest, depth), 0);

/**
 * Whether the draft branches; a tree of one branch is a chain.
 * @param {Round} round
 */
export const isTree = (round) => round.drafts.some((_, slot) => parentOf(round, slot) !== slot - 1);

/**
 * A round's tokens in the order of reading: accepted drafts (in a tree: down the path taken), rejected, untested, the
 * target's own.
 * @param {Round} round
 * @returns {Item[]}
 */
export function roundItems(round) {
  const drafts = round.drafts.map((draft, slot) => ({ token: draft.token, status: draft.verdict, slot }));
  /** @param {Verdict} status */
  const of = (status) => drafts.filter((item) => item.status === status);
  const own = round.target ? [{ token: round.target.token, status: round.target.kind, slot: -1 }] : [];
  return [...of('accepted'), ...of('rejected'), ...of('untested'), ...own];
}

/** @param {Status} status */
export const isKept = (status) => status !== 'rejected' && status !== 'untested';

/**
 * Tokens per second at a state, or null while too little has happened to mean anything.
 * @param {LaneState} at
 */
export function rateAt(at) {
  return at.rounds >= FEWEST_ROUNDS && at.clock > 0 ? at.kept / at.clock : null;
}

/**
 * A lane's tokens per second over the standard lane's; null while either has none.
 * @param {LaneState} standard
 * @param {LaneState} at
 */
export function ratioAt(standard, at) {
  const [base, rate] = [rateAt(standard), rateAt(at)];
  return base && rate ? rate / base : null;
}

/**
 * Accepted over tested tokens of a lane's first rounds; null where none was tested.
 * @param {Lane} lane
 * @param {number} rounds
 */
export function alphaAt(lane, rounds) {
  const tested = lane.sums.tested[rounds];
  return tested ? lane.sums.accepted[rounds] / tested : null;
}

/**
 * Passes of a model per kept token; null before there is one.
 * @param {LaneState} at
 * @param {number} passes
 */
export const passesPerToken = (at, passes) => (at.kept ? passes / at.kept : null);
