// The row under the lanes: the controls of the replay, and a menu of view options and files.
import { el, setText, targetOf } from './dom.js';

/**
 * What a visitor asks for: play, again, live, round-, token+, seek (seconds), speed (a factor), jsonl, html, file (a
 * File), options (ViewOptions), measure.
 * @typedef {(name: string, value?: any) => void} Act
 */

/** @typedef {'fold' | 'untested' | 'glyphs' | 'projector'} Switch */

/** @typedef {{palette: string} & Record<Switch, boolean>} ViewOptions */

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10];
const PALETTES = [['default', 'colour-blind safe'], ['classic', 'green, red, blue'], ['mono', 'for print']];
/** @type {[name: Switch, text: string][]} */
const SWITCHES = [
  ['fold', 'fold rejected drafts'],
  ['untested', 'show untested drafts'],
  ['glyphs', 'show white space'],
  ['projector', 'projector'],
];
const STORE = 'specviz.view';

/**
 * @param {string} name what a press asks for
 * @param {string} text
 * @param {string} [label] what the text, a sign, stands for
 */
const button = (name, text, label) =>
  el('button', { type: 'button', 'data-act': name, 'aria-label': label, title: label }, text);

export class Controls {
  playButton = button('play', '▶\ufe0e', 'Play');
  slider = el('input', { type: 'range', min: 0, max: 1, step: 'any', value: 1, 'aria-label': 'Time in the race' });
  time = el('output', {});
  speed = el(
    'select',
    { 'aria-label': 'Replay speed' },
    ...SPEEDS.map((speed) => el('option', { value: speed, selected: speed === 1 }, `×${speed}`)),
  );
  live = el('button', { type: 'button', class: 'live', 'data-act': 'live', hidden: true });
  file = el('input', { type: 'file', accept: '.jsonl,.json,.txt', hidden: true, 'aria-label': 'A trace file' });
  refusal = el('p', { class: 'refusal', role: 'alert', hidden: true });
  options = remembered();
  palette = el(
    'select',
    { 'data-option': 'palette' },
    ...PALETTES.map(([name, text]) => el('option', { value: name, selected: this.options.palette === name }, text)),
  );

  /**
   * @param {Act} act
   * @param {boolean} opens whether a trace can be opened
   */
  constructor(act, opens) {
    this.act = act;
    this.root = el('div', { class: 'controls' }, this.transport(), this.menu(opens));
    this.listen();
  }

  transport() {
    return el(
      'div',
      { class: 'transport', role: 'group', 'aria-label': 'Replay' },
      this.live,
      button('again', '↺', 'Replay from the start'),
      button('round-', '◂', 'Previous round'),
      this.playButton,
      button('round+', '▸', 'Next round'),
      button('token-', '‹', 'Previous token'),
      button('token+', '›', 'Next token'),
      this.speed,
      this.slider,
      this.time,
    );
  }

  /** @param {boolean} opens */
  menu(opens) {
    /** @param {[name: Switch, text: string]} option */
    const box = ([name, text]) =>
      el('label', {}, el('input', { type: 'checkbox', 'data-option': name, checked: this.options[name] }), text);
    return el(
      'details',
      { class: 'menu' },
      el('summary', {}, 'View and files'),
      el(
        'div',
        {},
        el('label', {}, 'colours', this.palette),
        ...SWITCHES.map(box),
        button('jsonl', 'Download trace (JSONL)'),
        button('html', 'Save as HTML'),
        opens ? button('load', 'Open a trace…') : null,
        opens ? this.file : null,
        this.refusal,
      ),
    );
  }

  listen() {
    this.slider.addEventListener('input', () => this.act('seek', Number(this.slider.value)));
    this.speed.addEventListener('change', () => this.act('speed', Number(this.speed.value)));
    this.file.addEventListener('change', () => {
      if (this.file.files?.[0]) this.act('file', this.file.files[0]);
      this.file.value = '';
    });
    this.root.addEventListener('change', (event) => {
      const control = targetOf(event);
      const name = control.dataset.option;
      if (!name) return;
      const value = control instanceof HTMLInputElement ? control.checked : this.palette.value;
      this.options = { ...this.options, [name]: value };
      remember(this.options);
      this.act('options', this.options);
    });
    this.root.addEventListener('click', (event) => {
      const name = targetOf(event).closest('button')?.dataset.act;
      if (name === 'load') this.file.click();
      else if (name) this.act(name);
    });
  }

  /**
   * Why the chosen file cannot be opened, where it was chosen; '' once that is past.
   * @param {string} sentence
   */
  refuse(sentence) {
    setText(this.refusal, sentence);
    this.refusal.hidden = !sentence;
  }

  /**
   * Shows time t of `end`; `live` is the measured speed of a run still coming in, null otherwise.
   * @param {{t: number, end: number, playing: boolean, following: boolean, live: number | null}} scene
   */
  show({ t, end, playing, following, live }) {
    const max = Math.max(end, 1e-3);
    if (Number(this.slider.max) !== max) this.slider.max = String(max);
    this.slider.value = String(t);
    this.slider.style.setProperty('--done', `${(Math.min(1, t / max) * 100).toFixed(1)}%`);
    const shown = `${t.toFixed(t < 10 ? 2 : 1)} s`;
    setText(this.time, shown);
    if (this.slider.getAttribute('aria-valuetext') !== shown) this.slider.setAttribute('aria-valuetext', shown);
    setText(this.playButton, playing ? '❚❚' : '▶\ufe0e');
    this.playButton.setAttribute('aria-label', playing ? 'Pause' : 'Play');
    this.live.hidden = live === null;
    setText(this.live, following ? `live at ${live ? live.toFixed(live < 1 ? 2 : 1) : '–'}×` : 'back to live');
    this.live.classList.toggle('on', following);
  }
}

/** @returns {ViewOptions} */
function remembered() {
  const options = { palette: 'default', fold: false, untested: false, glyphs: false, projector: false };
  try {
    return { ...options, ...JSON.parse(localStorage.getItem(STORE) ?? '{}') };
  } catch {
    return options; // some browsers and saved files refuse storage
  }
}

/** @param {ViewOptions} options */
function remember(options) {
  try {
    localStorage.setItem(STORE, JSON.stringify(options));
  } catch {
    // The choice then lasts as long as the page.
  }
}
