// What is pointed at: by the mouse, by the keyboard, or by a step. It opens the why card, and marks the token, its
// round, the same position in the other lanes, and its passes on the timeline.
import { reducedMotion, targetOf } from './dom.js';
import { roundItems } from './state.js';
import { refOf } from './tokens.js';
import { Card } from './card.js';

/** @import { LaneView } from './lanes.js' */
/** @import { Timeline } from './timeline.js' */

const HOVER_DELAY = 90;
const LEAVE_DELAY = 180;

export class Pointing {
  /** @type {LaneView[]} */
  lanes = [];
  /** @type {HTMLElement[]} */
  marked = [];
  /**
   * The token last pointed at.
   * @type {HTMLElement | null}
   */
  node = null;
  /**
   * The index of its lane.
   * @type {number | null}
   */
  lane = null;
  /**
   * Where the pointer is, in pixels of the window.
   * @type {[x: number, y: number] | null}
   */
  pointer = null;
  /** @type {number | undefined} */
  opening = undefined;
  /** @type {number | undefined} */
  closing = undefined;
  returning = false;

  /**
   * @param {HTMLElement} root
   * @param {Timeline} timeline
   */
  constructor(root, timeline) {
    this.root = root;
    this.timeline = timeline;
    this.card = new Card(root, () => this.dismiss());
    this.listen();
  }

  /**
   * Starts anew with the views of other lanes.
   * @param {LaneView[]} lanes
   */
  reset(lanes) {
    this.hide();
    Object.assign(this, { lanes, node: null, lane: null });
  }

  listen() {
    const { root } = this;
    root.addEventListener('pointerover', (event) => this.onHover(event));
    root.addEventListener('pointermove', (event) => {
      this.pointer = [event.clientX, event.clientY];
    }, { passive: true });
    root.addEventListener('pointerout', () => this.leave());
    root.addEventListener('focusin', (event) => this.onFocus(event));
    root.addEventListener('click', (event) => this.onClick(event));
    root.addEventListener('keydown', (event) => this.onKey(event));
  }

  /** @param {Event} event */
  tokenOf(event) {
    const node = /** @type {HTMLElement | null} */ (targetOf(event).closest?.('.log .tok'));
    return node && refOf(node) ? node : null;
  }

  /** @param {PointerEvent} event */
  onHover(event) {
    clearTimeout(this.closing);
    if (this.card.root.contains(targetOf(event))) return;
    const node = this.tokenOf(event);
    clearTimeout(this.opening);
    // Text that scrolls or grows under a pointer at rest is not pointed at.
    const rests = this.pointer?.[0] === event.clientX && this.pointer?.[1] === event.clientY;
    if (node && !rests && event.pointerType !== 'touch') {
      this.opening = setTimeout(() => {
        if (!this.card.pinned) this.show(node, false);
      }, HOVER_DELAY);
    } else this.leave();
  }

  leave() {
    clearTimeout(this.opening);
    clearTimeout(this.closing);
    this.closing = setTimeout(() => {
      const focused = document.activeElement?.closest('.tok');
      if (!this.card.pinned && !(focused && this.root.contains(focused))) this.hide();
    }, LEAVE_DELAY);
  }

  /** @param {FocusEvent} event */
  onFocus(event) {
    if (this.returning) return;
    const node = this.tokenOf(event);
    if (node && node !== this.card.node) this.show(node, this.card.pinned);
    else if (!node && !this.card.root.contains(targetOf(event))) this.hide();
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const node = this.tokenOf(event);
    if (node) this.goTo(node, true);
    else if (!this.card.root.contains(targetOf(event)) && !targetOf(event).closest('.controls, .plot')) this.hide();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const node = this.tokenOf(event);
    if (event.key === 'Escape' && !this.card.root.hidden) this.hide();
    else if (node && (event.key === 'Enter' || event.key === ' ')) this.show(node, true);
    else {
      const next = node && this.lanes[refOf(node).lane].step(node, event.key);
      if (!next) return;
      this.goTo(next, this.card.pinned);
    }
    event.preventDefault();
  }

  /**
   * Shows a token, brings it into sight and takes the focus to it.
   * @param {HTMLElement} node
   * @param {boolean} pinned
   */
  goTo(node, pinned) {
    node.scrollIntoView({ block: 'nearest', behavior: reducedMotion() ? 'instant' : 'auto' });
    this.show(node, pinned);
    node.focus({ preventScroll: true });
  }

  /**
   * Opens the card of a token and marks what belongs to it.
   * @param {HTMLElement} node
   * @param {boolean} pinned
   */
  show(node, pinned) {
    const ref = refOf(node);
    const view = this.lanes[ref.lane];
    if (!view) return;
    clearTimeout(this.opening);
    Object.assign(this, { node, lane: ref.lane });
    view.rove(node);
    const round = view.lane.rounds[ref.round];
    const item = roundItems(round).find((one) => one.slot === ref.slot);
    if (item) this.card.open(node, item, round, view.lane, pinned);
    this.mark(ref, node);
  }

  hide() {
    clearTimeout(this.opening);
    this.card.close();
    this.mark(null);
  }

  // Closes the card and gives the focus back to its token, which must not open it again.
  dismiss() {
    const { node } = this.card;
    this.hide();
    this.returning = true;
    node?.focus({ preventScroll: true });
    this.returning = false;
  }

  /**
   * A pass was pointed at (its tokens light up) or clicked (the card of its last token opens).
   * @param {number | null} lane
   * @param {number} round
   * @param {boolean} pinned
   */
  pass(lane, round, pinned) {
    if (this.card.pinned && !pinned) return;
    const nodes = lane === null ? [] : this.lanes[lane]?.roundNodes(round) ?? [];
    if (lane === null || !nodes.length) this.mark(null);
    else if (pinned) this.goTo(nodes[nodes.length - 1], true);
    else this.mark({ lane, round, position: null });
  }

  /**
   * @param {{lane: number, round: number, position: number | null} | null} ref
   * @param {HTMLElement} [node]
   */
  mark(ref, node) {
    this.marked.forEach((marked) => marked.classList.remove('peer', 'here', 'in-round'));
    this.marked = [];
    this.timeline.highlight(ref?.lane ?? null, ref?.round ?? -1);
    if (!ref) return;
    /**
     * @param {HTMLElement | undefined} one
     * @param {string} name
     */
    const add = (one, name) => {
      one?.classList.add(name);
      if (one) this.marked.push(one);
    };
    add(node, 'here');
    this.lanes[ref.lane].roundNodes(ref.round).forEach((one) => add(one, 'in-round'));
    const { position } = ref;
    if (position === null) return;
    this.lanes.forEach((view, lane) => lane !== ref.lane && add(view.positions[position], 'peer'));
  }

  /**
   * The token before or after the one last shown in a lane; its first or last where none was. Undefined at the ends.
   * @param {LaneView} view
   * @param {1 | -1} direction
   * @returns {HTMLElement | undefined}
   */
  neighbour(view, direction) {
    const at = this.node ? view.nodes.indexOf(this.node) : -1;
    return at < 0 ? view.nodes[direction > 0 ? 0 : view.nodes.length - 1] : view.nodes[at + direction];
  }

  // A card whose token is no longer there goes with it.
  keep() {
    if (!this.card.root.hidden && !this.card.node?.isConnected) this.hide();
  }
}
