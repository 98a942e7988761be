// The browser's half of wire.py: numbered batches in a ring, and compact messages back to trace events.
import { FIELDS, KINDS, VERDICTS } from './records.js';

/** @import { Event, Report, Round } from './records.js' */

/** @typedef {{t?: any[], e: any[][]}} Batch */

/** @typedef {{event: Event, report?: undefined} | {event?: undefined, report: Report}} Message */

/**
 * What the component shows: a run, or why a file was refused.
 * @typedef {{run: string, ring: string[], live?: boolean, refused?: string}} Value
 */

/** @typedef {(request: {run: string, after: number}) => Promise<{batches?: string[], gone?: boolean} | null>} Resync */

// Decodes the batches of one run into the objects of a trace file.
export class Decoder {
  /** @type {Map<number, string>} */
  pieces = new Map();
  /** @type {string[]} */
  lanes = [];

  /**
   * @param {Batch} batch
   * @returns {Message[]}
   */
  messages(batch) {
    const texts = batch.t || [];
    for (let i = 0; i < texts.length; i += 2) this.pieces.set(texts[i], texts[i + 1]);
    return batch.e.map((message) => this.message(message));
  }

  /**
   * @param {any[]} message
   * @returns {Message}
   */
  message([kind, first, ...rest]) {
    if (kind === 'r') {
      return {
        event: {
          event: 'RoundDone',
          lane: this.lanes[first],
          round: /** @type {Round} */ (this.record('Round', rest)),
        },
      };
    }
    if (kind === 's') return { report: first };
    if (first.event === 'RaceStarted') {
      this.lanes = first.header.lanes.map((/** @type {{name: string}} */ lane) => lane.name);
    }
    return { event: first };
  }

  /**
   * @param {keyof typeof FIELDS} type
   * @param {any[]} values
   */
  record(type, values) {
    /** @type {Record<string, any>} */
    const record = {};
    FIELDS[type].forEach(([name, absent], i) => {
      if (i < values.length && values[i] !== absent) record[name] = this.field(name, values[i]);
    });
    return record;
  }

  /**
   * @param {string} name
   * @param {any} value
   */
  field(name, value) {
    if (value === null) return null;
    if (name.endsWith('_top')) return this.alternatives(value);
    if (name === 'token') return this.token(value, true);
    if (name === 'drafts') return value.map((/** @type {any[]} */ draft) => this.record('DraftToken', draft));
    if (name === 'target') return this.record('TargetToken', value);
    if (name === 'verdict') return VERDICTS[value];
    if (name === 'kind') return KINDS[value];
    return value;
  }

  /**
   * [id, text, piece] with what is null at the end cut, as in a trace file.
   * @param {number | any[]} code
   * @param {boolean} plain
   */
  token(code, plain) {
    /** @type {any[]} */
    let parts;
    if (typeof code === 'number') parts = [code, plain ? this.pieces.get(code) : null, this.pieces.get(code)];
    else parts = code.length === 3 ? [...code] : [...code, this.pieces.get(code[0])];
    while (parts.length > 1 && parts[parts.length - 1] === null) parts.pop();
    return parts;
  }

  /** @param {any[]} flat */
  alternatives(flat) {
    const pairs = [];
    for (let i = 0; i < flat.length; i += 2) pairs.push([this.token(flat[i], false), flat[i + 1] / 1000]);
    return pairs;
  }
}

// Takes the component's values in, hands each batch on once and in order, and fetches what it missed.
export class Receiver {
  /** @type {string | null} */
  run = null;
  seen = 0;
  fetching = false;
  lost = false;
  decoder = new Decoder();

  /**
   * onRun(live) at a new run; onMessages(messages) for each batch; resync(request) -> {batches} or {gone}.
   * @param {{onRun: (live: boolean) => void, onMessages: (messages: Message[]) => void, resync: Resync}} handlers
   */
  constructor({ onRun, onMessages, resync }) {
    this.onRun = onRun;
    this.onMessages = onMessages;
    this.resync = resync;
  }

  /** @param {Value | null} value */
  accept(value) {
    if (!value || typeof value.run !== 'string') return;
    if (value.run !== this.run) this.start(value);
    const batches = value.ring.filter(Boolean).map(numbered)
      .filter(([number]) => number > this.seen).sort(([a], [b]) => a - b);
    for (const [number, text] of batches) {
      if (number !== this.seen + 1) {
        this.fetchMissing(number);
        return;
      }
      this.take(text);
    }
  }

  /** @param {Value} value */
  start(value) {
    Object.assign(this, { run: value.run, seen: 0, lost: false, decoder: new Decoder() });
    this.onRun(value.live !== false);
  }

  /** @param {string} text */
  take(text) {
    this.seen += 1;
    this.onMessages(this.decoder.messages(JSON.parse(text)));
  }

  /** @param {number} number */
  async fetchMissing(number) {
    if (this.fetching || this.lost) return;
    this.fetching = true;
    const { run } = this;
    try {
      while (run !== null && this.run === run && this.seen < number && !this.lost) await this.fetchOnce(run);
    } catch {
      // The server is gone: what arrived stays, and the next value that comes asks again.
    } finally {
      this.fetching = false;
    }
  }

  /** @param {string} run */
  async fetchOnce(run) {
    const after = this.seen;
    const reply = await this.resync({ run, after });
    if (this.run !== run || this.seen !== after) return;
    if (!reply?.batches?.length) this.lost = true;
    else reply.batches.forEach((text) => this.take(text));
  }
}

/**
 * @param {string} slot
 * @returns {[number: number, text: string]}
 */
function numbered(slot) {
  const bar = slot.indexOf('|');
  return [Number(slot.slice(0, bar)), slot.slice(bar + 1)];
}
