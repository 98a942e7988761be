// Events to the state of every lane at a time t. Appending an event costs the same at any length of the run (running
// sums), and so does asking for a state (binary search). Knows nothing of the page.
import { SETTINGS } from './records.js';

const COUNTS = [
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
];
// Times travel in microseconds: sums of rounded parts may miss a boundary by a few of them.
const SLACK = 5e-6;

// One lane's rounds with their clock and running sums; sums[name][i] is the total of the first i rounds.
export class Lane {
  constructor(info, index) {
    Object.assign(this, { info, index, name: info.name, settings: { ...SETTINGS, ...info.settings } });
    Object.assign(this, { rounds: [], starts: [], draftEnds: [], ends: [], started: null, finish: null });
    // `tree`: it drafts alternatives, by its option or by a round that did; `sourced`: its drafts name their sources.
    Object.assign(this, { tree: info.options?.shape === 'tree', sourced: false });
    this.sums = Object.fromEntries(COUNTS.map((name) => [name, [0]]));
  }

  get speculative() {
    return this.info.draft !== 'none';
  }

  get end() {
    return this.ends.length ? this.ends[this.ends.length - 1] : 0;
  }

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

// A whole race as it has arrived: the lanes, and the events as a trace file has them.
export class Trace {
  constructor() {
    Object.assign(this, { header: null, lanes: [], events: [], summary: null, finished: false, cancelled: false });
    this.byName = new Map();
  }

  append(event) {
    this.events.push(event);
    const lane = this.byName.get(event.lane);
    if (event.event === 'RaceStarted') this.start(event.header);
    else if (event.event === 'RaceFinished') Object.assign(this, { finished: true, cancelled: !!event.cancelled });
    else if (event.event === 'RoundDone' && lane) lane.append(event.round);
    else if (event.event === 'LaneStarted' && lane) lane.started = event;
    else if (event.event === 'LaneFinished' && lane) lane.finish = event;
    else if (event.event === 'Calibrated' && this.header) this.header.curve = event.curve;
  }

  start(header) {
    this.header = { ...header };
    this.lanes = header.lanes.map((info, index) => new Lane(info, index));
    this.lanes.forEach((lane) => {
      lane.target = header.target;
      this.byName.set(lane.name, lane);
    });
  }

  get sequential() {
    return this.header?.mode === 'sequential';
  }

  // The latest moment on any lane's clock.
  get end() {
    return Math.max(0, ...this.lanes.map((lane) => lane.end));
  }
}

// The moment that every unfinished lane has reached; the end once all have finished.
export function raceClock(trace) {
  const open = trace.lanes.filter((lane) => !lane.finish);
  return open.length ? Math.min(...open.map((lane) => lane.end)) : trace.end;
}

// What a lane had at time t: `rounds` have ended; `phase` says where the next one is. Pure.
export function laneAt(lane, t) {
  const rounds = countUpTo(lane.ends, t + SLACK);
  const at = { t, rounds, phase: phaseAt(lane, rounds, t), clock: Math.min(t, lane.end) };
  for (const name of COUNTS) at[name] = lane.sums[name][rounds];
  at.finished = !!lane.finish && rounds === lane.rounds.length;
  return at;
}

// 'drafting', 'pending' (drafted, in the target's pass), or 'idle' where no round spans t.
function phaseAt(lane, rounds, t) {
  if (rounds >= lane.rounds.length || lane.starts[rounds] > t + SLACK) return 'idle';
  return t + SLACK >= lane.draftEnds[rounds] ? 'pending' : 'drafting';
}

// How many of the ascending values are <= limit.
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

// A round's share in the running sums. Tested counts corrections, not rejections: in a tree they differ.
export function countRound(round) {
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

// Whether anything was drafted in a round; a served round may say only by its own token.
export function hasDraft(round) {
  if (round.drafted !== undefined && round.drafted !== null) return round.drafted > 0;
  return round.drafts.length > 0 || (!!round.target && round.target.kind !== 'standard');
}

// The index of the draft that a draft follows, -1 for the context.
export function parentOf(round, slot) {
  const parent = round.drafts[slot].parent ?? slot - 1;
  return parent < slot ? parent : -1;
}

// How deep each drafted token stands: 1 after the context, 2 after one drafted token, and so on.
export function depthsOf(round) {
  const depths = [];
  round.drafts.forEach((_, slot) => depths.push((depths[parentOf(round, slot)] ?? 0) + 1));
  return depths;
}

// How deep the deepest stands, 0 where nothing was drafted.
export const depthOf = (round) => depthsOf(round).reduce((deepest, depth) => Math.max(deepest, depth), 0);

// Whether the draft branches; a tree of one branch is a chain.
export const isTree = (round) => round.drafts.some((_, slot) => parentOf(round, slot) !== slot - 1);

// A round's tokens in the order of reading: accepted drafts (in a tree: down the path taken), rejected, untested, the
// target's own. `slot` is the index among the drafts, -1 for the target's.
export function roundItems(round) {
  const drafts = round.drafts.map((draft, slot) => ({ token: draft.token, status: draft.verdict, slot }));
  const of = (status) => drafts.filter((item) => item.status === status);
  const items = [...of('accepted'), ...of('rejected'), ...of('untested')];
  if (round.target) items.push({ token: round.target.token, status: round.target.kind, slot: -1 });
  return items;
}

export const isKept = (status) => status !== 'rejected' && status !== 'untested';

// Tokens a second at a state, or null while too little has happened to mean anything.
export function rateAt(at) {
  return at.rounds >= 3 && at.clock > 0 ? at.kept / at.clock : null;
}

// Kept tokens a second of a lane over the standard lane's; null while either has none.
export function ratioAt(standard, at) {
  const [base, rate] = [rateAt(standard), rateAt(at)];
  return base && rate ? rate / base : null;
}
