// The race view: one time t, one trace, and everything on the page a function of the two. Live, t is the race clock;
// in a replay it runs, or goes where it is put.
import { el, reducedMotion, setText, table } from './dom.js';
import { Receiver } from './wire.js';
import { Trace, countUpTo, laneAt, raceClock, roundItems } from './state.js';
import { LaneView, copyClean, title } from './lanes.js';
import { refOf } from './tokens.js';
import { Card } from './card.js';
import { Timeline, niceSpan } from './timeline.js';
import { Curves } from './curves.js';
import { Report } from './report.js';
import { MAX_BYTES, download, fromJsonl, toHtml, toJsonl } from './files.js';
import { Controls } from './controls.js';
import { plural } from './words.js';

const CURVES_EVERY = 160;
const TABLES_EVERY = 1000;
const SPEAK_EVERY = 3000;
const HOVER_DELAY = 90;

class RaceView {
  constructor(root, host) {
    Object.assign(this, { root, host, trace: new Trace(), lanes: [], t: 0, following: true, playing: false, speed: 1 });
    Object.assign(this, { live: false, pulses: [], tables: new Map(), curvesAt: 0, tablesAt: 0, spokenAt: 0, chosen: -1 });
    this.timeline = new Timeline((...hit) => this.onPass(...hit));
    this.curves = new Curves();
    this.report = new Report(!!host.measurable);
    this.controls = new Controls((name, value) => this.act(name, value));
    this.card = new Card(root);
    this.laneRow = el('div', { class: 'lanes' });
    this.status = el('p', { class: 'sr-only', role: 'status' });
    root.replaceChildren(this.report.banner, this.report.headline, this.timeline.root, this.laneRow, this.controls.root,
      this.curves.root, this.report.table, this.report.details, this.card.root, this.status);
    this.addTableButtons();
    this.applyLook(this.controls.look);
    this.listen();
  }

  // ---- what comes in

  start(live) {
    Object.assign(this, { trace: new Trace(), lanes: [], t: 0, following: true, playing: false, live, pulses: [], chosen: -1 });
    this.laneRow.replaceChildren();
    this.card.close();
    this.report.reset();
    this.curves.reset();
    this.timeline.reset(null);
    this.refresh();
  }

  receive(messages) {
    for (const message of messages) {
      if (message.event) this.append(message.event);
      else if (message.summary) this.trace.summary = message.summary;
      else this.report.notice(message.notice, message.level);
    }
    if (this.live) this.pulse();
    this.refresh();
  }

  append(event) {
    this.trace.append(event);
    if (event.event === 'RaceStarted') this.openLanes();
    if (event.event === 'LaneFinished' && event.reason === 'error') {
      this.report.notice(`${event.lane} failed: ${event.message ?? 'no reason was given.'}`, 'error');
    }
    if (event.event === 'RaceFinished') this.live = false;
    if (event.event === 'Calibrated') this.report.showFacts(this.trace);
  }

  openLanes() {
    this.lanes = this.trace.lanes.map((lane) => new LaneView(lane, this.controls.look));
    this.laneRow.replaceChildren(...this.lanes.map((lane) => lane.root));
    this.laneRow.dataset.count = this.lanes.length;
    this.chosen = this.trace.lanes.findIndex((lane) => lane.speculative);
    this.timeline.reset(this.trace);
    this.curves.reset();
    this.report.showFacts(this.trace);
  }

  // Shows a finished trace: from a file, or from the page that holds this view.
  load(events, summary) {
    this.start(false);
    events.forEach((event) => this.append(event));
    this.trace.summary = summary ?? null;
    this.live = false;
    this.refresh();
  }

  // ---- the time

  // One lane after the other has no common clock while it runs: all that came is shown.
  get now() {
    if (!this.following) return this.t;
    return this.trace.sequential ? this.trace.end : raceClock(this.trace);
  }

  get atEnd() { return !this.live && this.now >= this.trace.end - 1e-6; }

  // The race clock's speed against the wall over the last seconds.
  pulse() {
    const now = performance.now() / 1000;
    this.pulses.push([now, raceClock(this.trace)]);
    while (this.pulses.length > 2 && now - this.pulses[0][0] > 4) this.pulses.shift();
  }

  get liveSpeed() {
    if (!this.live) return null;
    const [[wall, clock], [wallNow, clockNow]] = [this.pulses[0] ?? [0, 0], this.pulses[this.pulses.length - 1] ?? [0, 0]];
    return wallNow - wall > 0.5 ? (clockNow - clock) / (wallNow - wall) : 0;
  }

  seek(t) {
    this.following = false;
    this.t = Math.max(0, Math.min(t, this.trace.end));
    this.refresh();
  }

  play() {
    if (this.playing) return void this.pause();
    if (this.following || this.t >= this.trace.end - 1e-6) this.t = 0;
    Object.assign(this, { playing: true, following: false, lastFrame: performance.now() });
    this.refresh();
  }

  pause() {
    this.playing = false;
    this.refresh();
  }

  advance(now) {
    this.t += ((now - this.lastFrame) / 1000) * this.speed;
    this.lastFrame = now;
    if (this.t >= this.trace.end) Object.assign(this, { t: this.trace.end, playing: false });
  }

  // To the next or the last end of a round in any lane.
  stepRound(direction) {
    this.playing = false;
    const t = this.now;
    const candidates = this.trace.lanes.map((lane) => {
      const index = direction > 0 ? countUpTo(lane.ends, t + 5e-6) : countUpTo(lane.ends, t - 5e-6) - 1;
      return index < 0 ? 0 : lane.ends[index];
    }).filter((end) => end !== undefined);
    if (candidates.length) this.seek(direction > 0 ? Math.min(...candidates) : Math.max(...candidates));
  }

  // To the next or the last token of the lane in focus, with its card; time follows to where the lane has it.
  stepToken(direction) {
    this.playing = false;
    const view = this.lanes[this.focusLane ?? this.chosen] ?? this.lanes[0];
    if (!view) return;
    if (this.following && !view.nodes.includes(this.focusNode)) {
      this.seek(0);
      this.renderNow();
    }
    let next = this.neighbour(view, direction);
    if (!next && direction > 0 && view.starts.length < view.lane.rounds.length) {
      this.seek(view.lane.ends[view.starts.length]);
      this.renderNow();
      next = this.neighbour(view, direction);
    }
    if (next) this.show(next, true);
  }

  neighbour(view, direction) {
    const at = view.nodes.indexOf(this.focusNode);
    return at < 0 ? view.nodes[direction > 0 ? 0 : view.nodes.length - 1] : view.nodes[at + direction];
  }

  // ---- what is asked for

  act(name, value) {
    const acts = {
      play: () => this.play(),
      again: () => { this.t = 0; Object.assign(this, { playing: false, following: false }); this.play(); },
      'round+': () => this.stepRound(1),
      'round-': () => this.stepRound(-1),
      'token+': () => this.stepToken(1),
      'token-': () => this.stepToken(-1),
      seek: () => { this.playing = false; this.seek(value); },
      speed: () => { this.speed = value; },
      live: () => { Object.assign(this, { following: true, playing: false }); this.refresh(); },
      look: () => this.applyLook(value, true),
      jsonl: () => download('race.jsonl', 'application/jsonl', toJsonl(this.trace)),
      html: () => download('race.html', 'text/html', toHtml(this.trace, specvizRaceView.toString())),
      file: () => this.openFile(value),
      measure: () => this.host.trigger?.('measure', {}),
    };
    acts[name]?.();
  }

  async openFile(file) {
    try {
      if (file.size > MAX_BYTES) throw new Error(`It is larger than ${MAX_BYTES / 2 ** 20} MB, the limit for a trace.`);
      this.load(fromJsonl(await file.text()), null);
    } catch (error) {
      this.report.notice(`${file.name} cannot be opened. ${error.message}`, 'error');
    }
  }

  applyLook(look, again = false) {
    this.root.dataset.palette = look.palette;
    for (const name of ['fold', 'glyphs', 'projector']) this.root.classList.toggle(name, !!look[name]);
    // Only untested drafts change what stands in the text.
    if (again && this.untested !== !!look.untested) this.rebuild();
    this.untested = !!look.untested;
    if (again) this.restyle();
  }

  rebuild() {
    this.card.close();
    this.lanes = this.trace.lanes.map((lane) => new LaneView(lane, this.controls.look));
    this.laneRow.replaceChildren(...this.lanes.map((lane) => lane.root));
  }

  restyle() {
    this.timeline.refresh();
    this.refresh();
  }

  // ---- drawing

  refresh() {
    if (this.frame) return;
    // A hidden page gets no frames: there the state is drawn when it is seen again.
    this.frame = requestAnimationFrame((now) => {
      this.frame = null;
      if (this.playing) this.advance(now);
      this.renderNow();
      if (this.playing) this.refresh();
    });
  }

  renderNow() {
    const t = this.now;
    const { trace } = this;
    const whole = !this.live;
    const states = trace.lanes.map((lane) => laneAt(lane, t));
    this.root.classList.toggle('empty', !trace.lanes.length);
    this.states = states;
    this.lanes.forEach((lane, i) => lane.show(states[i]));
    this.timeline.show(t, states.map((at) => at.rounds), whole);
    this.report.show(trace, states, this.atEnd && trace.lanes.length > 0);
    this.controls.show({ t, end: trace.end, playing: this.playing, following: this.following, live: this.liveSpeed });
    this.renderCurves({ trace, t, states, end: whole ? trace.end || 1 : niceSpan(t), chosen: this.chosen });
    this.speak(states);
    this.keepCard();
    this.lanes.forEach((lane) => lane.follow());
  }

  // Curves change less often than text; the last state is always drawn.
  renderCurves(scene) {
    const now = performance.now();
    clearTimeout(this.curvesLater);
    if (now - this.curvesAt < CURVES_EVERY) {
      this.curvesLater = setTimeout(() => this.renderCurves(scene), CURVES_EVERY);
      return;
    }
    this.curvesAt = now;
    if (scene.trace !== this.trace || !scene.trace.lanes.length) return;
    this.curves.show(scene);
    if (this.tables.size && now - this.tablesAt > TABLES_EVERY) this.renderTables();
  }

  // One sentence every few seconds for those who listen.
  speak(states) {
    const now = performance.now();
    if (!states.length || (now - this.spokenAt < SPEAK_EVERY && !this.atEnd)) return;
    this.spokenAt = now;
    const words = states.map((at, i) => `${title(this.trace.lanes[i])}: ${plural(at.kept, 'token')}`);
    setText(this.status, this.atEnd ? `${this.report.big.textContent} ${this.report.rest.textContent}` : words.join(', '));
  }

  // ---- charts as tables

  addTableButtons() {
    [this.timeline, ...this.curves.charts].forEach((chart) => {
      const button = el('button', { type: 'button', class: 'numbers', 'aria-expanded': 'false' }, 'numbers');
      button.addEventListener('click', () => this.toggleTable(chart, button));
      chart.root.querySelector('figcaption').append(button);
    });
  }

  toggleTable(chart, button) {
    const open = !this.tables.has(chart);
    button.setAttribute('aria-expanded', String(open));
    if (!open) {
      this.tables.get(chart).remove();
      this.tables.delete(chart);
      return;
    }
    const place = el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Numbers' });
    chart.root.append(place);
    this.tables.set(chart, place);
    this.renderTables();
  }

  renderTables() {
    this.tablesAt = performance.now();
    if (!this.states?.length) return;
    this.tables.forEach((place, chart) => {
      const { head, rows } = chart.rows();
      place.replaceChildren(table(chart.root.querySelector('h3').textContent, head, rows));
    });
  }

  // ---- tokens, passes and the card

  listen() {
    const { root } = this;
    root.addEventListener('pointerover', (event) => this.onHover(event));
    root.addEventListener('pointermove', (event) => { this.pointer = [event.clientX, event.clientY]; }, { passive: true });
    root.addEventListener('pointerout', () => this.leave());
    root.addEventListener('focusin', (event) => this.onFocus(event));
    root.addEventListener('click', (event) => this.onClick(event));
    root.addEventListener('keydown', (event) => this.onKey(event));
    root.addEventListener('copy', copyClean);
    new ResizeObserver(() => this.timeline.refresh()).observe(this.timeline.plot);
    new MutationObserver(() => this.restyle()).observe(document.body, { attributes: true, attributeFilter: ['class'] });
    document.addEventListener('visibilitychange', () => this.refresh());
  }

  tokenOf(event) {
    const node = event.target.closest?.('.log .tok');
    return node && refOf(node) ? node : null;
  }

  onHover(event) {
    clearTimeout(this.closing);
    if (this.card.root.contains(event.target)) return;
    const node = this.tokenOf(event);
    clearTimeout(this.opening);
    // Text that scrolls or grows under a pointer at rest is not pointed at.
    const rests = this.pointer?.[0] === event.clientX && this.pointer?.[1] === event.clientY;
    if (node && !rests && event.pointerType !== 'touch') {
      this.opening = setTimeout(() => this.card.pinned || this.show(node, false), HOVER_DELAY);
    } else this.leave();
  }

  leave() {
    clearTimeout(this.opening);
    clearTimeout(this.closing);
    this.closing = setTimeout(() => { if (!this.card.pinned && !this.root.contains(document.activeElement?.closest('.tok'))) this.hide(); }, 180);
  }

  onFocus(event) {
    const node = this.tokenOf(event);
    if (node && node !== this.card.node) this.show(node, this.card.pinned);
    else if (!node && !this.card.root.contains(event.target)) this.hide();
  }

  onClick(event) {
    if (event.target.closest('[data-act="measure"]')) this.act('measure');
    const node = this.tokenOf(event);
    if (node) this.show(node, true, true);
    else if (!this.card.root.contains(event.target) && !event.target.closest('.controls, .plot')) this.hide();
  }

  onKey(event) {
    if (event.key === 'Escape' && !this.card.root.hidden) {
      event.preventDefault();
      return void this.hide();
    }
    const node = this.tokenOf(event);
    if (!node) return;
    if (event.key === 'Enter' || event.key === ' ') this.show(node, true);
    else {
      const next = this.lanes[refOf(node).lane].step(node, event.key);
      if (!next) return;
      this.show(next, this.card.pinned, true);
    }
    event.preventDefault();
  }

  // Opens the card of a token, marks its round and its peers, and takes the focus there where asked.
  show(node, pinned, focus = false) {
    const ref = refOf(node);
    const view = this.lanes[ref.lane];
    if (!view) return;
    this.focusNode = node;
    this.focusLane = ref.lane;
    if (this.trace.lanes[ref.lane].speculative) this.chosen = ref.lane;
    view.rove(node);
    node.scrollIntoView({ block: 'nearest', behavior: reducedMotion() ? 'instant' : 'auto' });
    const round = view.lane.rounds[ref.round];
    const item = roundItems(round).find((one) => one.slot === ref.slot);
    this.card.open(node, item, round, view.lane, pinned);
    this.mark(ref, node);
    if (focus) node.focus({ preventScroll: true });
  }

  hide() {
    this.card.close();
    this.mark(null);
  }

  mark(ref, node) {
    this.marked?.forEach((marked) => marked.classList.remove('peer', 'here', 'in-round'));
    this.marked = [];
    this.timeline.highlight(ref?.lane ?? null, ref?.round ?? -1);
    if (!ref) return;
    const add = (one, name) => { one?.classList.add(name); if (one) this.marked.push(one); };
    if (node) add(node, 'here');
    this.lanes[ref.lane].roundNodes(ref.round).forEach((one) => add(one, 'in-round'));
    const peers = ref.position === null || ref.position === undefined ? [] : this.lanes.filter((_, i) => i !== ref.lane);
    peers.forEach((lane) => add(lane.positions[ref.position], 'peer'));
  }

  // A pass was pointed at (its tokens light up) or clicked (its card opens).
  onPass(lane, round, pinned) {
    if (this.card.pinned && !pinned) return;
    if (lane === null || round < 0) return void this.mark(null);
    const nodes = this.lanes[lane].roundNodes(round);
    if (pinned && nodes.length) this.show(nodes[nodes.length - 1], true, true);
    else this.mark({ lane, round, position: null });
  }

  // A card whose token is no longer there goes with it.
  keepCard() {
    if (!this.card.root.hidden && !this.card.node?.isConnected) this.hide();
  }
}

// Puts a race view into `root`. host: {value, watch, resync, trigger} of a live component, or {saved, summary} of a file.
export function mount(root, host, style) {
  if (!document.getElementById('specviz-style')) document.head.append(el('style', { id: 'specviz-style' }, style));
  root.classList.add('specviz-race');
  const view = new RaceView(root, host);
  if (host.saved) {
    if (matchMedia('(prefers-color-scheme: dark)').matches) document.body.classList.add('dark');
    view.load(host.saved, host.summary);
    return view;
  }
  const receiver = new Receiver({
    onRun: (live) => view.start(live),
    onMessages: (messages) => view.receive(messages),
    resync: (request) => host.resync(request),
  });
  host.watch(() => receiver.accept(host.value()));
  receiver.accept(host.value());
  view.refresh();
  return view;
}
