// What lanes are called: a heading, and a short name that tells each from the others. The short names are those of
// specviz/views/lane_names.py; a test holds the two together. Pure functions of lanes.
import { millions } from './words.js';

/** @import { Lane } from './state.js' */

/**
 * The lane's name as a heading.
 * @param {Lane} lane
 */
export function title(lane) {
  const label = lane.info.label || lane.name;
  return label.charAt(0).toUpperCase() + label.slice(1);
}

/**
 * What stands beside the heading: whose weights write or guess, and how much a round drafts.
 * @param {Lane} lane
 */
export function subtitle(lane) {
  const model = lane.speculative ? lane.info.draft_model : lane.target;
  const known = model ? `${model.name}, ${millions(model.parameters)}` : null;
  if (!lane.speculative) return ['no draft', known].filter(Boolean).join(', ');
  return [known, drafting(lane)].filter(Boolean).join(', ');
}

/**
 * How much a round drafts: "k = 4", "16 nodes"; at most so much where a policy chooses.
 * @param {Lane} lane
 */
function drafting(lane) {
  const { k, k_policy: policy } = lane.settings;
  const fixed = policy === 'fixed';
  if (lane.tree) return fixed ? `${k} nodes` : `at most ${k} nodes, ${policy}`;
  return fixed ? `k = ${k}` : `k ≤ ${k}, ${policy}`;
}

/**
 * The name where it must tell lanes apart in a few characters.
 * @param {Lane} lane
 */
export const shortName = (lane) => lane.short;

/**
 * Gives every lane its short name; again once a lane turns out to draft trees.
 * @param {Lane[]} lanes
 */
export function nameLanes(lanes) {
  /** @type {Map<string, Lane[]>} */
  const alike = new Map();
  lanes.forEach((lane) => alike.set(plainName(lane), [...alike.get(plainName(lane)) ?? [], lane]));
  alike.forEach((group, name) => toldApart(name, group));
  // A name that was made longer may be another's.
  if (new Set(lanes.map(shortName)).size < lanes.length) {
    lanes.forEach((lane) => {
      lane.short = lane.name;
    });
  }
}

/** @param {Lane} lane */
function plainName(lane) {
  if (!lane.speculative) return title(lane);
  return lane.tree ? `${title(lane)}, ${lane.settings.k} nodes` : `${title(lane)} k=${lane.settings.k}`;
}

/**
 * @param {string} name
 * @param {Lane[]} lanes
 */
function toldApart(name, lanes) {
  const details = lanes.length === 1 ? [''] : DETAILS.map((detail) => detail(lanes))
    .find((words) => new Set(words).size === lanes.length);
  lanes.forEach((lane, i) => {
    lane.short = details?.[i] ? `${name}, ${details[i]}` : name;
  });
}

/** @param {Lane[]} lanes */
const models = (lanes) => lanes.map((lane) => lane.info.draft_model?.name ?? '');

/** @param {Lane[]} lanes */
const policies = (lanes) => lanes.map((lane) => lane.settings.k_policy);

/**
 * Of each lane the options that the others have otherwise.
 * @param {Lane[]} lanes
 */
function options(lanes) {
  /**
   * @param {Lane} lane
   * @param {string} name
   */
  const of = (lane, name) => spelt((lane.info.options ?? {})[name]);
  const names = [...new Set(lanes.flatMap((lane) => Object.keys(lane.info.options ?? {})))];
  const differing = names.filter((name) => new Set(lanes.map((lane) => of(lane, name))).size > 1);
  return lanes.map((lane) =>
    differing.filter((name) => of(lane, name)).map((name) => `${name}=${of(lane, name)}`).join(' ')
  );
}

/** @param {Lane[]} lanes */
function allThree(lanes) {
  const found = [models(lanes), options(lanes), policies(lanes)];
  return lanes.map((_, i) => found.map((words) => words[i]).filter(Boolean).join(', '));
}

/**
 * The last one always tells lanes apart: a race's names differ.
 * @type {((lanes: Lane[]) => string[])[]}
 */
const DETAILS = [models, options, policies, allThree, (lanes) => lanes.map((lane) => lane.name)];

/**
 * @param {unknown} value
 * @returns {string}
 */
function spelt(value) {
  if (value === undefined || value === null) return '';
  return Array.isArray(value) ? value.map(spelt).join('+') : String(value);
}
