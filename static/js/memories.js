// The list of memories: keys, selection, the reading pane, the address. Without this file every row is a link.
const explorer = document.getElementById("explorer");
const reader = document.getElementById("reader");
const filters = document.getElementById("filters");
const rows = () => [...document.querySelectorAll("#rows tr[data-id]")];
const current = () => document.querySelector("#rows tr.is-current");
const isTyping = (target) => target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
const OPEN_WAIT = 120; // milliseconds: whoever runs through the list reads none of what is passed
let opening = 0;

for (const one of document.querySelectorAll(".without-script")) one.hidden = true;

// ---- The pane
function place() {
  const all = rows();
  const at = all.indexOf(current());
  const shown = reader.querySelector("[data-place]");
  if (shown && at >= 0) shown.textContent = `${at + 1} / ${all.length}`;
}

function remember(id) {
  const address = new URL(location.href);
  if (id) address.searchParams.set("selected", id);
  else address.searchParams.delete("selected");
  history.replaceState(history.state, "", address);
}

function show(row, { now = false } = {}) {
  for (const one of rows()) one.classList.toggle("is-current", one === row);
  row.scrollIntoView({ block: "nearest" });
  clearTimeout(opening);
  const address = row.dataset.pane;
  opening = setTimeout(async () => {
    await window.htmx.ajax("GET", address, { target: "#reader", swap: "innerHTML" });
    reader.hidden = false;
    reader.classList.add("is-open");
    explorer.classList.add("has-pane");
    remember(row.dataset.id);
    place();
  }, now ? 0 : OPEN_WAIT);
}

function close() {
  clearTimeout(opening);
  reader.hidden = true;
  reader.classList.remove("is-open");
  explorer.classList.remove("has-pane");
  reader.replaceChildren();
  current()?.classList.remove("is-current");
  remember("");
}

function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(current());
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  if (reader.hidden) {
    for (const one of all) one.classList.toggle("is-current", one === next);
    next.scrollIntoView({ block: "nearest" });
  } else {
    show(next);
  }
}

// ---- Selection
function count() {
  const chosen = document.querySelectorAll("#rows input[name=id]:checked").length;
  const told = document.getElementById("selected-count");
  if (told) told.textContent = chosen;
  for (const row of rows()) row.classList.toggle("is-selected", row.querySelector("input[name=id]").checked);
  const begun = document.querySelector("[data-select]")?.getAttribute("aria-pressed") === "true";
  document.querySelector(".memories")?.classList.toggle("is-selecting", chosen > 0 || begun);
  const all = document.getElementById("select-all");
  if (!all) return;
  all.hidden = false;
  all.checked = chosen > 0 && chosen === rows().length;
  all.indeterminate = chosen > 0 && !all.checked;
}

document.addEventListener("change", (event) => {
  if (event.target.id === "select-all") {
    for (const row of rows()) row.querySelector("input[name=id]").checked = event.target.checked;
  }
  if (event.target.matches("#select-all, #rows input[name=id]")) {
    event.stopPropagation();
    count();
  }
}, true);
document.addEventListener("reset", () => setTimeout(count));
document.addEventListener("click", (event) => {  // on a phone, whose rows have no boxes before
  const button = event.target.closest("[data-select]");
  if (!button) return;
  const begins = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", String(begins));
  if (!begins) for (const row of rows()) row.querySelector("input[name=id]").checked = false;
  count();
});

// ---- Pointer: a press on a row reads the memory beside the list; with a modifier, or on a phone, its page opens
document.addEventListener("click", (event) => {
  if (event.target.closest("#reader [data-close]")) close();
  const row = event.target.closest("#rows tr[data-id]");
  if (!row || event.target.closest("input, .c-check") || event.ctrlKey || event.metaKey || event.shiftKey || innerWidth <= 820) return;
  event.preventDefault();
  show(row, { now: true });
});

// ---- Keys
const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  x: () => current()?.querySelector("input[name=id]").click(),
  Enter: () => {
    const row = current();
    if (row) location.assign(row.querySelector(".memory-text").href);
  },
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.id === "find" && event.key === "ArrowDown") {
    event.preventDefault();
    event.target.blur();
    move(1);
    return;
  }
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && !reader.hidden) close();
  if (event.key === "e" && current() && reader.hidden) {
    event.stopImmediatePropagation();
    location.assign(`${current().querySelector(".memory-text").href}edit/`);
    return;
  }
  if (event.key === "Enter" && event.target.closest("a, button, summary, input")) return;
  KEYS[event.key]?.();
}, true);

// ---- What htmx brought
document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.elt !== filters) return;
  document.getElementById("results")?.setAttribute("aria-busy", "true");
});
document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
  // Groups that the reader opened or closed stay so.
  const state = new Map([...document.querySelectorAll("[data-facet]")].map((one) => [one.dataset.facet, one.open]));
  for (const one of event.detail.fragment.querySelectorAll("[data-facet]")) {
    if (state.has(one.dataset.facet)) one.open = state.get(one.dataset.facet);
  }
});
document.body.addEventListener("htmx:afterSwap", () => {
  const query = document.getElementById("view-query");
  const results = document.getElementById("results");
  if (query && results) query.value = results.dataset.address;
  count();
  place();
});

const selected = new URL(location.href).searchParams.get("selected");
if (selected) document.querySelector(`#rows tr[data-id="${CSS.escape(selected)}"]`)?.classList.add("is-current");
count();
place();
