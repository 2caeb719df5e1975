// An answer while it comes: text is only ever a text node, and [1] becomes a chip once its citation is known.
const UNFINISHED = /\[\d{0,2}$/; // may become a marker with the next piece

export class Answer {
  constructor(element, chipLabel) {
    this.element = element;
    this.chipLabel = chipLabel;
    this.held = "";
    this.urls = new Map();
  }

  get begun() {
    return Boolean(this.held) || this.element.hasChildNodes();
  }

  add(text) {
    const all = this.held + text;
    this.held = UNFINISHED.exec(all)?.[0] ?? "";
    for (const part of all.slice(0, all.length - this.held.length).split(/(\[\d{1,2}\])/)) {
      if (part) this.element.append(/^\[\d/.test(part) ? this.#marker(part) : part);
    }
  }

  cite(marker, url) {
    this.urls.set(marker, url);
    for (const waiting of this.element.querySelectorAll(`[data-marker="${Number(marker)}"]`)) {
      waiting.replaceWith(this.#chip(marker, url));
    }
  }

  #marker(text) {
    const marker = Number(text.slice(1, -1));
    if (this.urls.has(marker)) return this.#chip(marker, this.urls.get(marker));
    const waiting = document.createElement("span");
    waiting.dataset.marker = marker;
    waiting.textContent = text;
    return waiting;
  }

  #chip(marker, url) {
    const chip = document.createElement("a");
    chip.className = "chip-cite";
    chip.href = url;
    chip.textContent = marker;
    chip.setAttribute("aria-label", `${this.chipLabel} ${marker}`);
    chip.setAttribute("hx-get", url);
    chip.setAttribute("hx-target", "#pane-body");
    queueMicrotask(() => window.htmx.process(chip));
    return chip;
  }
}
