// What the race comes to: the headline, the badges, banners, the final table, the facts about the machine.
// Sentences about the finished run come from Python's metrics; only live numbers are worked out here.
import { el, setText, table } from './dom.js';
import { ratioAt } from './state.js';
import { shortName, subtitle, title } from './names.js';
import { clock, millions, percent, plural, price, seconds, times } from './words.js';

export class Report {
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

  // measurable: whether the race that comes was run here, so that the page that holds the view can run it again.
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

  // A sentence that nobody should miss; level "error" or "info".
  notice(text, level) {
    this.banner.append(el('p', { class: level === 'error' ? 'error' : 'info' }, text));
    this.banner.hidden = false;
  }

  // The headline at the states shown. `scene` is {place, t, live}: place 'live', 'replay' or 'end', live whether more is
  // to come. The table and the badges are of the whole run: they stand as soon as it is over, wherever a replay is.
  show(trace, states, scene) {
    const { place, t, live } = scene;
    const verdict = place === 'end' && trace.summary ? finalWords(trace) : liveWords(trace, states, place);
    setText(this.lead, place === 'replay' ? replayWords(t, trace.end, live) : '');
    setText(this.big, verdict.big);
    this.big.classList.toggle('loss', /^0\./.test(verdict.big));
    setText(this.rest, verdict.rest);
    const key = live ? null : trace.summary;
    if (this.shown === key) return;
    this.shown = key;
    this.badges.replaceChildren(...(key ? badges(trace) : []));
    this.showTable(key ? trace : null);
  }

  // The headline as one sentence.
  get sentence() {
    return [this.lead, this.big, this.rest].map((part) => part.textContent).filter(Boolean).join(' ');
  }

  showTable(trace) {
    this.table.hidden = !trace;
    this.table.replaceChildren(...(trace ? [...finalTable(trace), ...(this.measurable ? [measureButton()] : [])] : []));
  }

  showFacts(trace) {
    setText(this.facts, machineFacts(trace).join(' · '));
  }
}

const measureButton = () => el('button', { type: 'button', 'data-act': 'measure' }, 'measure 5×');

// The speculative lane that is furthest ahead, as [lane, its state, its ratio to standard].
function leader(trace, states) {
  const standard = trace.lanes.findIndex((lane) => !lane.speculative);
  const ratios = trace.lanes.map((
    lane,
    i,
  ) => [lane, states[i], standard < 0 ? null : ratioAt(states[standard], states[i])])
    .filter(([lane, , ratio]) => lane.speculative && ratio !== null);
  return ratios.sort((a, b) => b[2] - a[2])[0] ?? null;
}

// "Replay, 1.2 s of 4.8 s:"
function replayWords(t, end, live) {
  return `Replay, ${clock(t)} of ${clock(end)}${live ? ' so far' : ''}:`;
}

// The headline in mid-race, live or replayed, and at the end of a trace that came without its numbers.
function liveWords(trace, states, place) {
  if (!trace.lanes.length) return { big: '', rest: 'Press Run, and two lanes race to write the same text.' };
  const first = leader(trace, states);
  if (!first) return { big: '', rest: place === 'live' ? beginning(states) : scores(trace, states) };
  const [lane, at, ratio] = first;
  const several = trace.lanes.filter((other) => other.speculative).length > 1;
  const who = several ? `${shortName(lane)}: ` : '';
  const soFar = place === 'end' ? '' : ' so far';
  const shown = times(ratio);
  if (shown === '1.00×') return { big: shown, rest: `${who}as fast as standard decoding${soFar}: ${price(at)}` };
  if (ratio < 1) return { big: shown, rest: `${who}slower${soFar}: ${price(at)}` };
  return { big: `${shown} faster${soFar}`, rest: who + price(at) };
}

const beginning = (states) => (states.some((at) => at.kept) ? 'Racing…' : 'Reading the prompt…');

// How many tokens each lane has, where their speeds cannot be compared.
const scores = (trace, states) =>
  trace.lanes
    .map((lane, i) => `${shortName(lane)} ${plural(states[i].kept, 'token')}`).join(', ');

// "1.8x faster, the same 128 tokens" as a large number and the rest of the sentence; the best lane first.
function finalWords(trace) {
  const named = trace.lanes.filter((lane) => lane.speculative && trace.summary[lane.name])
    .map((lane) => [lane, trace.summary[lane.name]]).sort(([, a], [, b]) => (b.speedup ?? 0) - (a.speedup ?? 0));
  if (!named.length) return { big: '', rest: '' };
  const [lane, summary] = named[0];
  const words = /^(\d+(?:\.\d+)?)[x×]( faster(?: per token)?| slower)?[,:;]?\s*(.*)$/s.exec(set(summary.verdict));
  const big = words ? `${words[1]}×${words[2] ?? ''}` : '';
  const others = named.slice(1).map(([other, one]) => `${shortName(other)} ${timed(one.speedup)}`);
  const who = others.length ? `${shortName(lane)}: ` : '';
  const rest = words ? words[3] : set(summary.verdict);
  return { big, rest: [who + rest, others.join(', ')].filter(Boolean).join('. ') };
}

const timed = (speedup) => (speedup === null || speedup === undefined ? 'not timed' : times(speedup));

// A sentence of Python's with its factors set as factors: 1.8x as 1.8×.
const set = (sentence) => (sentence ?? '').replace(/(\d)x\b/g, '$1×');

function badges(trace) {
  const found = trace.lanes.filter((lane) => lane.speculative && trace.summary[lane.name]).map((lane) => {
    const summary = trace.summary[lane.name];
    return [lane, ...sameness(summary, lane)];
  });
  const alike = found.every(([, text]) => text === found[0][1]);
  const shown = (alike ? found.slice(0, 1) : found).map(([lane, text, kind]) =>
    el('span', { class: `badge ${kind}` }, alike ? text : `${shortName(lane)}: ${text}`)
  );
  return [
    ...shown,
    el('span', { class: 'badge' }, `n = ${plural(trace.summary[trace.lanes[0]?.name]?.runs ?? 1, 'run')}`),
  ];
}

// Whether a lane wrote what standard decoding wrote, in words, and how well that bodes.
function sameness(summary, lane) {
  if (lane.settings.temperature > 0) return ['same law, different sample', ''];
  if (summary.identical_to_standard) return ['✓ identical output', 'good'];
  const at = summary.first_divergence;
  if (at === null || at === undefined) return ['not compared', ''];
  const margin = summary.divergence_margin;
  const why = margin === null || margin === undefined ? '' : `, the top two ${margin.toPrecision(2)} apart`;
  return [`first difference at token ${at + 1}${why}`, 'bad'];
}

const ROWS = [
  ['target passes', 'target_passes', String],
  ['draft passes', 'draft_passes', String],
  ['seconds', 'seconds', seconds],
  ['drafted in a round that drafts, mean', 'mean_drafted', (value) => value.toFixed(1)],
  ['depth of its tree, mean', 'mean_depth', (value) => value.toFixed(1)],
  ['positions computed', 'positions_computed', String],
  ['positions wasted', 'wasted_positions', String],
  ['tokens a target pass (τ)', 'tau', (value) => value.toFixed(2)],
  ['time to first token', 'first_token_seconds', seconds],
];

function finalTable(trace) {
  const lanes = trace.lanes.filter((lane) => trace.summary[lane.name]);
  const shown = ROWS.filter(([, field]) => field !== 'mean_depth' || lanes.some((lane) => lane.tree));
  const rows = shown.map(([name, field, format]) => [
    name,
    ...lanes.map((lane) => {
      const value = trace.summary[lane.name][field];
      return value === null || value === undefined ? '–' : format(value);
    }),
  ]);
  rows.push([
    'same output',
    ...lanes.map((lane) => (lane.speculative ? sameness(trace.summary[lane.name], lane)[0] : '–')),
  ]);
  const heads = lanes.map((lane) => (lane.speculative ? `${title(lane)}, ${subtitle(lane)}` : title(lane)));
  const numbers = el(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Final numbers' },
    table('Standard and speculative decoding', ['number', ...heads], rows),
  );
  return [el('h3', {}, 'The finished run'), ...reasons(trace, lanes), numbers, ...sourceTable(trace, lanes)];
}

// Which of a draft's sources guessed how much, and how much of that was kept; nothing where no draft has several.
function sourceTable(trace, lanes) {
  const drafting = lanes.filter((lane) => trace.summary[lane.name].sources?.length);
  if (!drafting.length) return [];
  const rows = drafting.flatMap((lane) => {
    const { sources, accepted } = trace.summary[lane.name];
    return sources.map((
      one,
    ) => [
      ...(drafting.length > 1 ? [shortName(lane)] : []),
      lane.source(one.source).label,
      one.drafted,
      one.accepted,
      percent(one.accepted / one.drafted),
      accepted ? percent(one.accepted / accepted) : '–',
    ]);
  });
  const head = [
    ...(drafting.length > 1 ? ['lane'] : []),
    'guessed by',
    'drafted',
    'accepted',
    'of these drafted',
    'of all accepted',
  ];
  return [
    el('h4', {}, 'Who guessed'),
    el(
      'div',
      { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Drafts by source' },
      table('Drafts by source', head, rows),
    ),
  ];
}

// Why each lane was faster or slower, and what would have made it faster: a paragraph a lane.
function reasons(trace, lanes) {
  const drafting = lanes.filter((lane) => lane.speculative && trace.summary[lane.name].verdict);
  return drafting.map((lane) => {
    const summary = trace.summary[lane.name];
    const said = (drafting.length > 1 ? `${shortName(lane)}: ` : '') + set(summary.verdict).replace(/\.$/, '');
    return el(
      'p',
      { class: 'why' },
      [`${said}.`, set(summary.holds_back), summary.policy_bias].filter(Boolean).join(' '),
    );
  });
}

function machineFacts(trace) {
  const { header } = trace;
  if (!header) return [];
  const model = (info) => `${info.name} (${millions(info.parameters)})`;
  const drafts = trace.lanes.filter((lane) => lane.speculative).map((lane) =>
    [
      `${title(lane)}: k = ${lane.settings.k}`,
      lane.info.draft_model && model(lane.info.draft_model),
      lane.info.note,
      lane.started?.prefill_seconds ? `own prefill ${seconds(lane.started.prefill_seconds)}` : null,
    ].filter(Boolean).join(', ')
  );
  const { settings } = trace.lanes[trace.lanes.length - 1] ?? { settings: {} };
  return [
    header.prompt ? `prompt “${header.prompt}”` : null,
    `target ${model(header.target)}, ${header.target.execution} passes`,
    ...drafts,
    `${header.device_name}, ${header.dtype}`,
    plural(header.threads, 'thread'),
    `temperature ${settings.temperature}`,
    `seed ${settings.seed}`,
    `prefill ${seconds(header.prefill_seconds)} (shared by all lanes)`,
    `load ${seconds(header.load_seconds)}`,
    `warm-up ${seconds(header.warmup_seconds)}`,
    header.curve ? null : 'verify curve pending',
    `recorded ${header.created}`,
    ...Object.entries(header.versions).map(([name, version]) => `${name} ${version}`),
  ].filter(Boolean);
}
