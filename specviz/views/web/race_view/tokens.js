// A token's element: one span whose text is a text node. The style sheet draws everything else (seam, glyphs, pieces)
// from attributes, so that a selection copies the text alone.
import { el } from './dom.js';
import { isKept } from './state.js';
import { pieceOf, visible } from './words.js';

/** @import { Token } from './records.js' */
/** @import { Item, Status } from './state.js' */

/**
 * A token's place: the indices of its lane and round, the slot among the drafts (-1: the target's own), and the
 * position in the lane's kept text, null where it was not kept.
 * @typedef {{lane: number, round: number, slot: number, status: Status, position: number | null}} Ref
 */

/** @type {WeakMap<Node, Ref>} */
const refs = new WeakMap();
// Characters that turn the direction of what follows them: a token with one is kept to itself.
const TURNS = /[\u202a-\u202e\u2066-\u2069]/;

/**
 * What a token's element stands for.
 * @param {Node} node
 */
export const refOf = (node) => /** @type {Ref} */ (refs.get(node));

/**
 * The span of one item of a round. `seam` is the small number that closes a round, '' inside it.
 * @param {Item} item
 * @param {Ref} ref
 * @param {string} seam
 */
export function tokenNode(item, ref, seam) {
  const node = el('span', { class: `tok ${item.status}` });
  if (isKept(item.status)) writeKept(node, item.token, seam);
  else node.textContent = visible(pieceOf(item.token));
  if (TURNS.test(node.textContent)) node.classList.add('turns');
  refs.set(node, ref);
  return node;
}

/**
 * @param {HTMLElement} node
 * @param {Token} token
 * @param {string} seam
 */
function writeKept(node, token, seam) {
  const text = token[1] ?? token[2] ?? '';
  const leading = text.length - text.replace(/^\n+/, '').length;
  // A part of a character, or a token that says nothing: its piece stands in, faintly.
  if (text === '') node.dataset.piece = visible(token[2] ?? '∅');
  if (text.includes('\n', leading)) writeLines(node, text, seam);
  else if (leading) {
    node.dataset.newline = seam + '↵'.repeat(leading);
    node.textContent = text;
  } else {
    node.textContent = text;
    markSpaces(node, text);
    if (seam) node.dataset.seam = seam;
  }
}

/**
 * A text with newlines after its first character: each run of them gets its glyph just before it.
 * @param {HTMLElement} node
 * @param {string} text
 * @param {string} seam
 */
function writeLines(node, text, seam) {
  const parts = text.split(/(\n+)/).filter(Boolean);
  parts.forEach((part, i) => {
    const last = i === parts.length - 1;
    if (part[0] === '\n') node.append(el('i', { 'data-newline': (last ? seam : '') + '↵'.repeat(part.length) }), part);
    else node.append(part);
    if (last && part[0] !== '\n' && seam) node.dataset.seam = seam;
  });
}

/**
 * Spaces are drawn always where a token is nothing else, and on demand where they lead it.
 * @param {HTMLElement} node
 * @param {string} text
 */
function markSpaces(node, text) {
  const [spaces] = /** @type {RegExpExecArray} */ (/^[ \t]*/.exec(text));
  if (!spaces) return;
  const glyphs = spaces.replaceAll(' ', '·').replaceAll('\t', '⇥');
  node.dataset[spaces.length === text.length ? 'blank' : 'leading'] = glyphs;
}

/**
 * The clean text of a selection: what was kept, without rejected drafts.
 * @param {Range} range
 * @returns {string}
 */
export function cleanText(range) {
  const copy = range.cloneContents();
  const outside = '.tok.rejected, .tok.untested, .flight, .lane > header, .lane > .end, .sv-skip';
  copy.querySelectorAll(outside).forEach((node) => node.remove());
  return copy.textContent ?? '';
}
