// The race view: one trace, one time, and everything on the page a function of the two.
import { el, setText, table, targetOf } from './dom.js';
import { Receiver } from './wire.js';
import { laneAt, Trace } from './state.js';
import { nameLanes, title } from './names.js';
import { copyClean, LaneView } from './lanes.js';
import { Playback } from './playback.js';
import { Pointing } from './pointing.js';
import { niceSpan, Timeline } from './timeline.js';
import { Curves } from './curves.js';
import { Report } from './report.js';
import { download, toHtml, toJsonl } from './files.js';
import { Controls } from './controls.js';
import { legend } from './legend.js';
import { plural } from './words.js';

/** @import { ViewOptions } from './controls.js' */
/** @import { Scene } from './curves.js' */
/** @import { Event, Report as RaceReport } from './records.js' */
/** @import { Lane, LaneState } from './state.js' */
/** @import { Message, Resync, Value } from './wire.js' */

/**
 * The live component that holds a view. `watch` calls back whenever its value is new; where it is `measurable` it can
 * run the race again, and listens for the event `measure`.
 * @typedef {object} Live
 * @property {() => Value | null} value
 * @property {(callback: () => void) => void} watch
 * @property {Resync} resync
 * @property {(name: string, data: unknown) => void} trigger
 * @property {boolean} measurable
 * @property {number} maxTraceBytes the size of the largest file that can be opened; 0 where none can
 */

/**
 * A file that holds a finished race.
 * @typedef {{saved: Event[], report: RaceReport | null}} Saved
 */

/** @typedef {Live | Saved} Host */

/** @typedef {Timeline | Curves['charts'][number]} Chart */

// Milliseconds between two drawings of the curves, of open tables, and between two sentences for those who listen.
const CURVES_EVERY = 160;
const TABLES_EVERY = 1000;
const SPEAK_EVERY = 3000;
// A drawing that takes longer, in milliseconds, is followed by a pause.
const SLOW = 30;
// The options that only change styles: each is a class of the view.
const STYLE_OPTIONS = /** @type {const} */ (['fold', 'glyphs', 'projector']);

class RaceView {
  trace = new Trace();
  /** @type {LaneView[]} */
  lanes = [];
  /** @type {LaneState[]} */
  states = [];
  /**
   * The lanes known to draft trees.
   * @type {Set<Lane>}
   */
  trees = new Set();
  /** The index of the lane that the bar charts show; -1 where none drafts. */
  chosen = -1;
  /**
   * The open tables and the charts whose numbers they show.
   * @type {Map<Chart, HTMLElement>}
   */
  tables = new Map();
  curvesAt = 0;
  tablesAt = 0;
  spokenAt = 0;
  untested = false;
  /** Whether a drawing is wanted. */
  asked = false;
  /** @type {number | null} */
  frame = null;
  /** @type {number | null} */
  resting = null;
  /** @type {number | undefined} */
  curvesLater = undefined;

  /**
   * @param {HTMLElement} root
   * @param {Host} host
   * @param {() => string} script the text of the whole script, which a saved file holds
   */
  constructor(root, host, script) {
    this.root = root;
    this.host = host;
    this.script = script;
    this.playback = new Playback(() => this.refresh());
    this.timeline = new Timeline((...pass) => this.pointing.pass(...pass));
    this.pointing = new Pointing(root, this.timeline);
    this.curves = new Curves();
    this.report = new Report();
    this.controls = new Controls(
      (name, value) => this.act(name, value),
      'maxTraceBytes' in host && host.maxTraceBytes > 0,
    );
    this.laneRow = el('div', { class: 'lanes' });
    this.status = el('p', { class: 'sr-only', role: 'status' });
    root.replaceChildren(
      this.report.banner,
      this.report.headline,
      this.timeline.root,
      legend(),
      this.laneRow,
      this.controls.root,
      this.curves.root,
      this.report.table,
      this.report.details,
      this.pointing.card.root,
      this.status,
    );
    this.addTableButtons();
    this.applyOptions(this.controls.options);
    this.listen();
    this.start(false);
  }

  listen() {
    this.root.addEventListener('copy', copyClean);
    this.report.table.addEventListener('click', (event) => {
      const { act } = targetOf(event).dataset;
      if (act) this.act(act);
    });
    new ResizeObserver(() => this.timeline.refresh()).observe(this.timeline.plot);
    new MutationObserver(() => this.restyle()).observe(document.body, { attributes: true, attributeFilter: ['class'] });
    document.addEventListener('visibilitychange', () => this.refresh());
  }

  // ---- what comes in

  /**
   * A new trace: `live` where it is run now, on the page that holds this view.
   * @param {boolean} live
   */
  start(live) {
    this.trace = new Trace();
    this.root.classList.remove('trees', 'sources');
    this.playback.reset(this.trace, live);
    this.openLanes();
    this.report.reset(live && 'measurable' in this.host && this.host.measurable);
    this.controls.refuse('');
    this.refresh();
  }

  /** @param {Message[]} messages */
  receive(messages) {
    for (const message of messages) {
      if (message.event) this.append(message.event);
      else this.take(message.report);
    }
    this.playback.pulse();
    this.refresh();
  }

  /**
   * The report on the race: its facts when it starts, all of it when it is over.
   * @param {RaceReport | null | undefined} report
   */
  take(report) {
    this.trace.report = report ?? null;
    this.report.showFacts(this.trace.report);
  }

  /** @param {Event} event */
  append(event) {
    this.trace.append(event);
    if (event.event === 'RaceStarted') this.openLanes();
    if (event.event === 'RoundDone') this.learn(this.trace.byName.get(event.lane));
    if (event.event === 'LaneFinished' && event.reason === 'error') {
      this.report.notice(`${event.lane} failed: ${event.message ?? 'no reason was given.'}`);
    }
    if (event.event === 'RaceFinished') this.playback.live = false;
  }

  /**
   * What only a lane's rounds tell: that it drafts trees, that its drafts come from several sources.
   * @param {Lane | undefined} lane
   */
  learn(lane) {
    const { classList } = this.root;
    if (lane?.sourced) classList.add('sources');
    if (!lane?.tree || this.trees.has(lane)) return;
    this.trees.add(lane);
    classList.add('trees');
    nameLanes(this.trace.lanes);
    this.timeline.dirty = true;
  }

  openLanes() {
    this.trees = new Set();
    nameLanes(this.trace.lanes);
    this.buildLanes();
    this.chosen = this.trace.lanes.findIndex((lane) => lane.speculative);
    this.timeline.reset(this.trace);
    this.curves.reset();
  }

  buildLanes() {
    this.lanes = this.trace.lanes.map((lane) => new LaneView(lane, this.controls.options));
    this.laneRow.replaceChildren(...this.lanes.map((lane) => lane.root));
    this.laneRow.dataset.count = String(this.lanes.length);
    this.pointing.reset(this.lanes);
  }

  /**
   * Shows a finished trace with its report, from the file that holds this view.
   * @param {Event[]} events
   * @param {RaceReport | null} report
   */
  load(events, report) {
    this.start(false);
    events.forEach((event) => this.append(event));
    this.take(report);
    this.refresh();
  }

  // ---- what is asked for

  /**
   * @param {string} name
   * @param {any} [value]
   */
  act(name, value) {
    const { playback } = this;
    /** @type {Record<string, () => void>} */
    const acts = {
      play: () => playback.toggle(),
      again: () => playback.again(),
      'round+': () => playback.stepRound(1),
      'round-': () => playback.stepRound(-1),
      'token+': () => this.stepToken(1),
      'token-': () => this.stepToken(-1),
      seek: () => playback.seek(value),
      speed: () => {
        playback.speed = value;
      },
      live: () => playback.follow(),
      options: () => {
        this.applyOptions(value);
        this.restyle();
      },
      jsonl: () => download('race.jsonl', 'application/jsonl', toJsonl(this.trace)),
      html: () => download('race.html', 'text/html', toHtml(this.trace, this.script())),
      file: () => this.openFile(value),
      measure: () => 'trigger' in this.host && this.host.trigger('measure', {}),
    };
    acts[name]?.();
  }

  /**
   * To the next or the last token of the lane last pointed at, with its card; time follows to where the lane has it.
   * @param {1 | -1} direction
   */
  stepToken(direction) {
    const { playback, pointing } = this;
    const view = this.lanes[pointing.lane ?? this.chosen] ?? this.lanes[0];
    if (!view) return;
    const stands = pointing.node !== null && view.nodes.includes(pointing.node);
    if (playback.following && !stands) this.seekNow(0);
    let next = pointing.neighbour(view, direction);
    if (!next && direction > 0 && view.starts.length < view.lane.rounds.length) {
      this.seekNow(view.lane.ends[view.starts.length]);
      next = pointing.neighbour(view, direction);
    }
    if (next) pointing.goTo(next, true);
  }

  /** @param {number} t */
  seekNow(t) {
    this.playback.seek(t);
    this.draw();
  }

  /**
   * Hands a trace file to Python, which reads it and sends back the run with its report, or why it cannot.
   * @param {File} file
   */
  async openFile(file) {
    if (!('trigger' in this.host)) return;
    const { maxTraceBytes } = this.host;
    this.controls.refuse('');
    if (file.size <= maxTraceBytes) this.host.trigger('open_trace', { name: file.name, text: await file.text() });
    else this.controls.refuse(`${file.name} is larger than ${maxTraceBytes / 2 ** 20} MB, the limit for a trace.`);
  }

  /** @param {ViewOptions} options */
  applyOptions(options) {
    this.root.dataset.palette = options.palette;
    for (const name of STYLE_OPTIONS) this.root.classList.toggle(name, !!options[name]);
    // Only untested drafts change what stands in the text.
    if (this.trace && this.untested !== !!options.untested) this.buildLanes();
    this.untested = !!options.untested;
  }

  restyle() {
    this.timeline.refresh();
    this.refresh();
  }

  // ---- drawing

  // Draws at the next frame. A hidden page gets none: there the state is drawn when it is seen again.
  refresh() {
    this.asked = true;
    this.root.toggleAttribute('data-stale', true); // what is shown is not yet what was asked for
    if (this.frame || this.resting) return;
    this.frame = requestAnimationFrame((now) => {
      Object.assign(this, { frame: null, asked: false });
      this.playback.advance(now);
      const start = performance.now();
      this.draw();
      this.root.toggleAttribute('data-stale', !!this.asked);
      // A task after the frame has been painted: what drawing really took.
      setTimeout(() => this.rest(performance.now() - start));
      if (this.playback.playing) this.refresh();
    });
  }

  /**
   * On a slow machine, leaves as long for what comes in as the last drawing took.
   * @param {number} cost
   */
  rest(cost) {
    if (cost < SLOW || this.resting || this.frame) return;
    this.resting = setTimeout(() => {
      this.resting = null;
      if (this.asked) this.refresh();
    }, Math.min(cost, 500));
  }

  draw() {
    const { trace, playback } = this;
    const t = playback.now;
    const states = trace.lanes.map((lane) => laneAt(lane, t));
    this.states = states;
    this.root.classList.toggle('empty', !trace.lanes.length);
    this.lanes.forEach((lane, i) => lane.show(states[i]));
    this.timeline.show(t, states.map((at) => at.rounds), !playback.live);
    this.report.show(trace, states, { t, place: playback.place, live: playback.live });
    this.controls.show({
      t,
      end: trace.end,
      playing: playback.playing,
      following: playback.following,
      live: playback.liveSpeed,
    });
    this.drawCurves({ trace, t, states, end: playback.live ? niceSpan(t) : trace.end || 1 });
    this.speak(states);
    this.pointing.keep();
    this.lanes.forEach((lane) => lane.follow());
  }

  /**
   * Curves change less often than text; the last state is always drawn.
   * @param {Omit<Scene, 'chosen'>} scene
   */
  drawCurves(scene) {
    const now = performance.now();
    clearTimeout(this.curvesLater);
    if (now - this.curvesAt < CURVES_EVERY) {
      this.curvesLater = setTimeout(() => this.drawCurves(scene), CURVES_EVERY);
      return;
    }
    this.curvesAt = now;
    if (scene.trace !== this.trace || !scene.trace.lanes.length) return;
    const { lane } = this.pointing;
    if (lane !== null && this.trace.lanes[lane]?.speculative) this.chosen = lane;
    this.curves.show({ ...scene, chosen: this.chosen });
    if (this.tables.size && now - this.tablesAt > TABLES_EVERY) this.drawTables();
  }

  /**
   * One sentence every few seconds for those who listen.
   * @param {LaneState[]} states
   */
  speak(states) {
    const now = performance.now();
    const { atEnd } = this.playback;
    if (!states.length || (now - this.spokenAt < SPEAK_EVERY && !atEnd)) return;
    this.spokenAt = now;
    const words = states.map((at, i) => `${title(this.trace.lanes[i])}: ${plural(at.kept, 'token')}`);
    setText(this.status, atEnd ? this.report.sentence : words.join(', '));
  }

  // ---- charts as tables

  addTableButtons() {
    [this.timeline, ...this.curves.charts].forEach((chart) => {
      const button = el('button', { type: 'button', class: 'numbers', 'aria-expanded': 'false' }, 'numbers');
      button.addEventListener('click', () => this.toggleTable(chart, button));
      chart.root.querySelector('figcaption')?.append(button);
    });
  }

  /**
   * @param {Chart} chart
   * @param {HTMLElement} button
   */
  toggleTable(chart, button) {
    const open = !this.tables.has(chart);
    button.setAttribute('aria-expanded', String(open));
    if (!open) {
      this.tables.get(chart)?.remove();
      this.tables.delete(chart);
      return;
    }
    const place = el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Numbers' });
    chart.root.append(place);
    this.tables.set(chart, place);
    this.drawTables();
  }

  drawTables() {
    this.tablesAt = performance.now();
    if (!this.states.length) return;
    this.tables.forEach((place, chart) => {
      const { head, rows } = chart.rows();
      place.replaceChildren(table(chart.root.querySelector('h3')?.textContent ?? '', head, rows));
    });
  }
}

/**
 * Puts a race view into `root`.
 * @param {HTMLElement} root
 * @param {Host} host
 * @param {string} style
 * @param {() => string} script the text of the whole script
 */
export function mount(root, host, style, script) {
  if (!document.getElementById('specviz-style')) document.head.append(el('style', { id: 'specviz-style' }, style));
  root.classList.add('specviz-race');
  const view = new RaceView(root, host, script);
  if ('saved' in host) openSaved(view, host);
  else connect(view, host);
  return view;
}

/**
 * @param {RaceView} view
 * @param {Saved} host
 */
function openSaved(view, host) {
  if (matchMedia('(prefers-color-scheme: dark)').matches) document.body.classList.add('dark');
  view.load(host.saved, host.report);
}

/**
 * @param {RaceView} view
 * @param {Live} host
 */
function connect(view, host) {
  const receiver = new Receiver({
    onRun: (live) => view.start(live),
    onMessages: (messages) => view.receive(messages),
    resync: (request) => host.resync(request),
  });
  /** @param {Value | null} value */
  const accept = (value) => {
    if (value?.refused) view.controls.refuse(value.refused);
    else receiver.accept(value);
  };
  host.watch(() => accept(host.value()));
  accept(host.value());
}
