// Traces as files, made in the browser from what has arrived there, so that a run outlives its server.

/** @import { Trace } from './state.js' */

/**
 * A trace file's text: one event a line.
 * @param {Trace} trace
 */
export function toJsonl(trace) {
  return trace.events.map((event) => JSON.stringify(event)).join('\n') + '\n';
}

/**
 * The run as one HTML file that opens offline in any browser, with the full view, its replay and its report.
 * @param {Trace} trace
 * @param {string} script
 */
export function toHtml(trace, script) {
  const data = JSON.stringify({ saved: trace.events, report: trace.report }).replaceAll('<', '\\u003c');
  /** @param {string} name */
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

/**
 * Hands a text to the visitor as a file.
 * @param {string} name
 * @param {string} type
 * @param {string} text
 */
export function download(name, type, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
