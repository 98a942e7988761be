// A token's element: one span, its text a text node, everything else (seam, glyphs, pieces) drawn from attributes by
// the style sheet, so that what is selected and copied is the text alone.
import { el } from './dom.js';
import { isKept } from './state.js';
import { pieceOf, visible } from './words.js';

const refs = new WeakMap();
// Characters that turn the direction of what follows them: a token with one is kept to itself.
const TURNS = /[\u202a-\u202e\u2066-\u2069]/;

// What an element of a token stands for: {lane, round, slot, status, position}; position is null where not kept.
export const refOf = (node) => refs.get(node);

// The span of one item of a round. `seam` is the small number that closes a round, '' inside it.
export function tokenNode(item, ref, seam) {
  const node = el('span', { class: `tok ${item.status}` });
  if (isKept(item.status)) writeKept(node, item.token, seam);
  else node.textContent = visible(pieceOf(item.token));
  if (TURNS.test(node.textContent)) node.classList.add('turns');
  refs.set(node, ref);
  return node;
}

function writeKept(node, token, seam) {
  const text = token[1] ?? token[2] ?? '';
  const leading = /^\n*/.exec(text)[0].length;
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

// A text with newlines after its first character: each run of them gets its glyph just before it.
function writeLines(node, text, seam) {
  const parts = text.split(/(\n+)/).filter(Boolean);
  parts.forEach((part, i) => {
    const last = i === parts.length - 1;
    if (part[0] === '\n') node.append(el('i', { 'data-newline': (last ? seam : '') + '↵'.repeat(part.length) }), part);
    else node.append(part);
    if (last && part[0] !== '\n' && seam) node.dataset.seam = seam;
  });
}

// Spaces are drawn always where a token is nothing else, and on demand where they lead it.
function markSpaces(node, text) {
  const spaces = /^[ \t]*/.exec(text)[0];
  if (!spaces) return;
  const glyphs = spaces.replaceAll(' ', '·').replaceAll('\t', '⇥');
  node.dataset[spaces.length === text.length ? 'blank' : 'leading'] = glyphs;
}

// The clean text of a selection: what was kept, without rejected drafts.
export function cleanText(range) {
  const copy = range.cloneContents();
  const outside = '.tok.rejected, .tok.untested, .flight, .lane > header, .lane > .end, .sv-skip';
  copy.querySelectorAll(outside).forEach((node) => node.remove());
  return copy.textContent;
}
