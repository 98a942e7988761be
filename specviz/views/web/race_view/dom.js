// Elements without markup: every text becomes a text node, so no text of a model, a prompt or a file can be code.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'g', 'path', 'rect', 'line', 'text', 'title']);

/**
 * Attributes by name: true sets one without a value; null, undefined and false leave it out.
 * @typedef {Record<string, string | number | boolean | null | undefined>} Attributes
 */

/** @typedef {HTMLElementTagNameMap & Omit<SVGElementTagNameMap, keyof HTMLElementTagNameMap>} Elements */

/**
 * An element with attributes and children; strings among the children become text nodes, empty children are left out.
 * @template {keyof Elements} K
 * @param {K} tag
 * @param {Attributes} attributes
 * @param {...(Node | string | null | undefined)} children
 * @returns {Elements[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== '') node.append(child);
  return /** @type {Elements[K]} */ (node);
}

/**
 * The element that an event happened on.
 * @param {Event} event
 */
export const targetOf = (event) => /** @type {HTMLElement} */ (event.target);

/**
 * Sets a node's text where it has changed.
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * A table of texts or elements: the first row is the head, and the first cell of each row names the row.
 * @param {string} caption
 * @param {string[]} head
 * @param {(string | number | Node)[][]} rows
 */
export function table(caption, head, rows) {
  /**
   * @param {'td' | 'th'} tag
   * @param {string | number | Node} content
   * @param {string | null} scope
   */
  const cell = (tag, content, scope) => el(tag, { scope }, content instanceof Node ? content : String(content));
  return el(
    'table',
    {},
    el('caption', {}, caption),
    el('thead', {}, el('tr', {}, ...head.map((text) => cell('th', text, 'col')))),
    el(
      'tbody',
      {},
      ...rows.map((row) =>
        el('tr', {}, ...row.map((text, column) => cell(column ? 'td' : 'th', text, column ? null : 'row')))
      ),
    ),
  );
}

/**
 * The current value of a custom property of the palette.
 * @param {Element} node
 * @param {string} name
 */
export function colour(node, name) {
  return getComputedStyle(node).getPropertyValue(`--sv-${name}`).trim();
}

export const reducedMotion = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
