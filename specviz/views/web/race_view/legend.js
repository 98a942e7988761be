// The legend over the lanes: each style of a token beside its meaning.
import { el } from './dom.js';

const STYLES = [
  ['accepted', 'accepted draft', 'guess kept', 'Guessed by the draft, and what the target would have written'],
  ['rejected', 'rejected draft', 'wrong guess, thrown away', 'The target says something else here'],
  [
    'correction',
    'correction',
    'the target’s own in its place',
    'The target’s token in the place of the first wrong guess',
  ],
  [
    'bonus',
    'bonus',
    'all guesses right: one more for free',
    'The token that follows a round’s guesses came with their check',
  ],
  ['standard', 'standard', 'nothing guessed', 'The target’s token of a round that guessed nothing'],
];
const SEAM = 'guesses kept in that round';
const OF_TREES = '✕ and a number: how many more the draft tree held, on branches not taken; the card draws them.';
const OF_SOURCES =
  'A small letter in the round in flight: which of the draft’s sources guessed the token; the card names it.';

export function legend() {
  /** @param {string[]} style */
  const style = ([kind, name, words, title]) =>
    el('span', { title }, el('span', { class: `tok ${kind}` }, name), ` ${words}`);
  return el(
    'div',
    { class: 'tokens-legend', role: 'note', 'aria-label': 'Token styles and their meaning' },
    ...STYLES.map(style),
    el('span', {}, el('sup', {}, '3'), ` ${SEAM}`),
    el('span', { class: 'of-trees' }, OF_TREES),
    el('span', { class: 'of-sources' }, OF_SOURCES),
  );
}
