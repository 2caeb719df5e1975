// Keys, menus, the side bar and the search of every page. Each of them has a link or a form that works without this file.
import { isComposing } from "./composing.js";
import { copyText } from "./copying.js";

const root = document.documentElement;
const palette = document.getElementById("palette");
const field = document.getElementById("palette-field");
const list = document.getElementById("palette-list");
const side = document.getElementById("side-toggle");
const YEAR = 31536000;
const GO_MILLISECONDS = 1500;
let going = 0; // until when a letter after g leads to a page

const isTyping = (target) => target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

// ---- Side bar: the choice lives in a cookie, so that the first paint is right
function sideSwitch() {
  const narrow = root.dataset.side !== "narrow";
  if (narrow) root.dataset.side = "narrow";
  else delete root.dataset.side;
  document.cookie = `memos-side=${narrow ? "narrow" : "wide"};path=${document.body.dataset.path};max-age=${YEAR};samesite=lax`;
}
if (side) {
  side.hidden = false;
  side.addEventListener("click", sideSwitch);
}

document.querySelector(".side-scroll [aria-current=page]")?.scrollIntoView({ block: "nearest" });

// ---- On a phone the bar has the title of a page, whose own heading is hidden there
const heading = document.querySelector(".view-head.is-top h1");
const barTitle = document.querySelector(".topbar-title");
if (heading && barTitle) {
  barTitle.textContent = heading.textContent;
  barTitle.removeAttribute("href");
}

// ---- Menus close when one presses elsewhere or Escape
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(".menu[open], .switcher[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// ---- Palette
function paletteOpen(text = "") {
  if (!palette || palette.open) return;
  field.value = text;
  palette.showModal();
  field.focus();
  window.htmx.trigger(field, "open");
}
const options = () => [...list.querySelectorAll("[role=option]")];
function paletteMove(step) {
  const all = options();
  const at = all.findIndex((one) => one.getAttribute("aria-selected") === "true");
  const next = all[(at + step + all.length) % all.length];
  for (const one of all) one.setAttribute("aria-selected", String(one === next));
  if (!next) return;
  field.setAttribute("aria-activedescendant", next.id);
  next.scrollIntoView({ block: "nearest" });
}
if (palette) {
  palette.addEventListener("click", (event) => event.target === palette && palette.close());
  list.addEventListener("htmx:afterSwap", () => paletteMove(1));
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      paletteMove(event.key === "ArrowDown" ? 1 : -1);
    }
    if (event.key === "Escape" && !isComposing(event)) {
      event.preventDefault(); // else it empties the field first
      palette.close();
    }
    if (event.key !== "Enter" || isComposing(event)) return;
    const chosen = list.querySelector("[aria-selected=true]");
    if (!chosen) return; // the form is sent: it finds memories
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) window.open(chosen.href, "_blank", "noopener");
    else location.assign(chosen.href);
  });
  // Not on focus: whoever goes through the page by Tab would never get past the field.
  const search = document.getElementById("search");
  for (const kind of ["click", "input", "compositionend"]) {
    search?.addEventListener(kind, (event) => {
      if (event.isComposing) return;
      const text = search.value;
      search.value = "";
      paletteOpen(text);
    });
  }
  for (const link of document.querySelectorAll("[data-palette]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      paletteOpen();
    });
  }
}

// ---- Messages that undo what was done: z does so later, too
for (const toast of document.querySelectorAll(".toast[data-seconds]")) {
  setTimeout(() => toast.classList.remove("show"), Number(toast.dataset.seconds) * 1000);
}

// ---- Texts to copy: the button shows only where a script can do that
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await copyText(document.getElementById(button.dataset.copy).textContent);
    button.setAttribute("aria-pressed", "true");
    button.classList.add("is-copied");
  });
}

// ---- Keys
const ACTIONS = {
  "/": () => {
    const find = document.getElementById("find");
    if (find) find.focus();
    else paletteOpen();
  },
  "[": sideSwitch,
  "?": () => location.assign("#shortcuts"),
  n: () => document.querySelector("[data-key=n]")?.click(),
  e: () => document.querySelector("[data-key=e]")?.click(),
  f: () => document.querySelector("[data-key=f]")?.click(),
  "#": () => document.querySelector("[data-key='#']")?.click(),
  z: () => document.querySelector("[data-key=z]")?.click(),
  g: () => { going = Date.now() + GO_MILLISECONDS; },
};

function back() {
  for (const menu of document.querySelectorAll(".menu[open], .switcher[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
    return;
  }
  if (location.hash === "#shortcuts" || location.hash === "#drawer" || location.hash === "#facets") location.assign("#main");
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    paletteOpen();
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") event.target.closest?.("form[data-saves]")?.requestSubmit();
  if (event.key === "Escape") back();
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target) || palette?.open) return;
  if (Date.now() < going) {
    going = 0;
    document.querySelector(`.side [data-go="${CSS.escape(event.key)}"]`)?.click();
    return;
  }
  const action = ACTIONS[event.key];
  if (!action) return;
  if (event.key !== "g") event.preventDefault();
  action();
});
