// The row under the lanes: the replay's controls, and the menu of how the view looks and what it keeps.
import { el, setText } from './dom.js';

export const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10];
const PALETTES = [['default', 'colour-blind safe'], ['classic', 'green, red, blue'], ['mono', 'for print']];
const SWITCHES = [['fold', 'fold rejected drafts'], ['untested', 'show untested drafts'], [
  'glyphs',
  'show white space',
], ['projector', 'projector']];
const STORE = 'specviz.view';

export class Controls {
  // act(name, value): what was asked for: play, again, round, token, seek, speed, live, jsonl, html, load, look.
  constructor(act, opens) {
    this.act = act;
    this.look = remembered();
    const button = (name, text, label) =>
      el('button', { type: 'button', 'data-act': name, 'aria-label': label, title: label }, text);
    this.playButton = button('play', '▶\ufe0e', 'Play');
    this.slider = el('input', {
      type: 'range',
      min: 0,
      max: 1,
      step: 'any',
      value: 1,
      'aria-label': 'Time in the race',
    });
    this.time = el('output', {});
    this.speed = el(
      'select',
      { 'aria-label': 'Replay speed' },
      ...SPEEDS.map((speed) => el('option', { value: speed, selected: speed === 1 }, `×${speed}`)),
    );
    this.live = el('button', { type: 'button', class: 'live', 'data-act': 'live', hidden: true });
    this.root = el(
      'div',
      { class: 'controls' },
      el(
        'div',
        { class: 'transport', role: 'group', 'aria-label': 'Replay' },
        this.live,
        button('again', '↺', 'Race again'),
        button('round-', '◂', 'One round back'),
        this.playButton,
        button('round+', '▸', 'One round on'),
        button('token-', '‹', 'One token back'),
        button('token+', '›', 'One token on'),
        this.speed,
        this.slider,
        this.time,
      ),
      this.menu(opens),
    );
    this.listen();
  }

  menu(opens) {
    this.file = el('input', { type: 'file', accept: '.jsonl,.json,.txt', hidden: true, 'aria-label': 'A trace file' });
    this.refusal = el('p', { class: 'refusal', role: 'alert', hidden: true });
    const save = (name, text) => el('button', { type: 'button', 'data-act': name }, text);
    const box = ([name, text]) =>
      el('label', {}, el('input', { type: 'checkbox', 'data-look': name, checked: this.look[name] }), text);
    const palette = el(
      'select',
      { 'data-look': 'palette' },
      ...PALETTES.map(([name, text]) => el('option', { value: name, selected: this.look.palette === name }, text)),
    );
    return el(
      'details',
      { class: 'menu' },
      el('summary', {}, 'View and files'),
      el(
        'div',
        {},
        el('label', {}, 'colours', palette),
        ...SWITCHES.map(box),
        save('jsonl', 'Download trace (JSONL)'),
        save('html', 'Save as HTML'),
        opens ? save('load', 'Open a trace…') : null,
        opens ? this.file : null,
        this.refusal,
      ),
    );
  }

  listen() {
    this.slider.addEventListener('input', () => this.act('seek', Number(this.slider.value)));
    this.speed.addEventListener('change', () => this.act('speed', Number(this.speed.value)));
    this.file.addEventListener('change', () => {
      if (this.file.files[0]) this.act('file', this.file.files[0]);
      this.file.value = '';
    });
    this.root.addEventListener('change', (event) => {
      const name = event.target.dataset.look;
      if (!name) return;
      this.look[name] = event.target.type === 'checkbox' ? event.target.checked : event.target.value;
      remember(this.look);
      this.act('look', this.look);
    });
    this.root.addEventListener('click', (event) => {
      const name = event.target.closest('button')?.dataset.act;
      if (name === 'load') this.file.click();
      else if (name) this.act(name);
    });
  }

  // Why the chosen file cannot be opened, where it was chosen; '' once that is past.
  refuse(sentence) {
    setText(this.refusal, sentence);
    this.refusal.hidden = !sentence;
  }

  // Shows time t of `end`; `live` is the measured speed of a run still coming in, null otherwise.
  show({ t, end, playing, following, live }) {
    const max = Math.max(end, 1e-3);
    if (Number(this.slider.max) !== max) this.slider.max = max;
    this.slider.value = t;
    this.slider.style.setProperty('--done', `${(Math.min(1, t / max) * 100).toFixed(1)}%`);
    const shown = `${t.toFixed(t < 10 ? 2 : 1)} s`;
    setText(this.time, shown);
    if (this.slider.getAttribute('aria-valuetext') !== shown) this.slider.setAttribute('aria-valuetext', shown);
    setText(this.playButton, playing ? '❚❚' : '▶\ufe0e');
    this.playButton.setAttribute('aria-label', playing ? 'Pause' : 'Play');
    this.live.hidden = live === null;
    setText(this.live, following ? `live at ${live > 0 ? live.toFixed(live < 1 ? 2 : 1) : '–'}×` : 'back to live');
    this.live.classList.toggle('on', following);
  }
}

function remembered() {
  const look = { palette: 'default', fold: false, untested: false, glyphs: false, projector: false };
  try {
    return { ...look, ...JSON.parse(localStorage.getItem(STORE) ?? '{}') };
  } catch {
    return look; // storage is closed to us in some browsers and saved files
  }
}

function remember(look) {
  try {
    localStorage.setItem(STORE, JSON.stringify(look));
  } catch {
    // The look then lasts as long as the page.
  }
}
