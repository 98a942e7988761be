// Elements without markup: every text becomes a text node, so no text of a model, a prompt or a file can be code.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'g', 'path', 'rect', 'line', 'text', 'title']);

// An element with attributes and children; strings among the children become text nodes, empty children are left out.
export function el(tag, attributes = {}, ...children) {
  const node = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
  return node;
}

// Sets a node's text where it has changed.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A table of texts or elements: the first row is the head, and the first cell of each row names the row.
export function table(caption, head, rows) {
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

// The value of a custom property of the palette, as it stands now.
export function colour(node, name) {
  return getComputedStyle(node).getPropertyValue(`--sv-${name}`).trim();
}

export const reducedMotion = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
