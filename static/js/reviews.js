// Keys of the reviews: j and k move, 1 and 2 decide, s skips. Without this file every decision is a button.
const list = document.getElementById("reviews");
const isTyping = (target) => target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
const reviews = () => [...list.querySelectorAll("article.review")];
const current = () => document.activeElement?.closest?.("article.review") ?? null;

function move(step) {
  const all = reviews();
  const at = all.indexOf(current());
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  s: () => move(1),
  1: () => current()?.querySelector("[data-decide='1']")?.click(),
  2: () => current()?.querySelector("[data-decide='2']")?.click(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const action = KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
