// Traces as files, made and read in the browser from what has arrived there, so that a run outlives its server.
import { KINDS, SCHEMA, VERDICTS } from './records.js';

export const MAX_BYTES = 64 * 1024 * 1024;
const EVENTS = ['RaceStarted', 'LaneStarted', 'RoundDone', 'LaneFinished', 'Calibrated', 'RaceFinished'];

// A trace file's text: one event a line.
export function toJsonl(trace) {
  return trace.events.map((event) => JSON.stringify(event)).join('\n') + '\n';
}

// The events of a trace file; throws an Error whose message says what is wrong and where.
export function fromJsonl(text) {
  const events = [];
  text.split('\n').forEach((line, i) => {
    if (line.trim()) events.push(parseLine(line, i + 1));
  });
  if (events[0]?.event !== 'RaceStarted') {
    throw new Error('This file does not begin with a RaceStarted event, so it is no trace.');
  }
  return events;
}

function parseLine(line, number) {
  let event;
  try {
    event = JSON.parse(line);
  } catch {
    throw new Error(`Line ${number} is not JSON.`);
  }
  const wrong = faultOf(event);
  if (wrong) throw new Error(`Line ${number}: ${wrong}`);
  return event;
}

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const isText = (value) => typeof value === 'string';
const isAbsent = (value) => value === undefined || value === null;
const isNumber = (value) => isAbsent(value) || Number.isFinite(value);

// What keeps an event from being shown, or ''.
function faultOf(event) {
  if (!isObject(event) || !EVENTS.includes(event.event)) return 'it is not an event of a specviz trace.';
  if (event.event === 'RaceStarted') return headerFault(event.header);
  if (event.event === 'RoundDone') return isText(event.lane) ? roundFault(event.round) : 'the lane has no name.';
  if (event.event === 'LaneFinished' && !(isText(event.lane) && isText(event.reason))) return 'the lane has no reason.';
  return '';
}

function headerFault(header) {
  if (!isObject(header)) return 'the header is missing.';
  if ((header.schema ?? SCHEMA) !== SCHEMA) {
    return `it has schema ${header.schema}; this version reads schema ${SCHEMA}.`;
  }
  if (!Array.isArray(header.lanes) || header.lanes.length < 1 || header.lanes.length > 16) {
    return 'it has no lanes, or too many.';
  }
  if (
    !header.lanes.every((lane) => isObject(lane) && isText(lane.name) && isText(lane.draft) && isObject(lane.settings))
  ) {
    return 'a lane is not described.';
  }
  const models = [header.target, ...header.lanes.map((lane) => lane.draft_model ?? header.target)];
  if (!models.every((model) => isObject(model) && isText(model.name) && Number.isFinite(model.parameters))) {
    return 'a model is not described.';
  }
  return isObject(header.versions) ? '' : 'the versions are missing.';
}

function roundFault(round) {
  if (!isObject(round) || !Array.isArray(round.drafts)) return 'the round has no drafts.';
  const seconds = ['start_seconds', 'draft_seconds', 'verify_seconds', 'other_seconds', 'telemetry_seconds'];
  if (!Number.isInteger(round.index) || !seconds.every((name) => isNumber(round[name]))) {
    return 'a time or number of the round is none.';
  }
  if (!round.drafts.every(isDraft)) return 'a drafted token is broken.';
  const { target } = round;
  return !target || (isObject(target) && isToken(target.token) && KINDS.includes(target.kind) && areTops(target))
    ? ''
    : 'the target’s token is broken.';
}

function isDraft(draft, slot) {
  if (!isObject(draft) || !isToken(draft.token) || !VERDICTS.includes(draft.verdict) || !areTops(draft)) return false;
  const { parent, source } = draft;
  return (isAbsent(parent) || (Number.isInteger(parent) && parent >= -1 && parent < slot)) &&
    (isAbsent(source) || isText(source));
}

function isToken(token) {
  return Array.isArray(token) && token.length >= 1 && token.length <= 3 &&
    (token[0] === null || Number.isInteger(token[0])) && token.slice(1).every((text) => text === null || isText(text));
}

function areTops(record) {
  const numbers = ['draft_prob', 'target_prob', 'draw', 'overlap', 'draw_prob', 'margin'];
  const tops = [record.draft_top, record.target_top, record.residual_top].filter((top) =>
    top !== undefined && top !== null
  );
  return numbers.every((name) => isNumber(record[name])) &&
    tops.every((top) =>
      Array.isArray(top) && top.every((pair) => Array.isArray(pair) && isToken(pair[0]) && Number.isFinite(pair[1]))
    );
}

// The run as one HTML file with the whole view: what saved_page.py writes.
export function toHtml(trace, script) {
  const data = JSON.stringify({ saved: trace.events, summary: trace.summary }).replaceAll('<', '\\u003c');
  const close = (name) => `</${name}>`;
  return [
    '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>specviz: a recorded race${close('title')}${close('head')}\n<body class="specviz-saved"><main id="race">${
      close('main')
    }\n`,
    `<script type="application/json" id="trace">${data}${close('script')}\n<script>\n${script}\n`,
    "specvizRaceView(document.getElementById('race'), JSON.parse(document.getElementById('trace').textContent));\n",
    `${close('script')}${close('body')}${close('html')}\n`,
  ].join('');
}

// Hands a text to the visitor as a file.
export function download(name, type, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
