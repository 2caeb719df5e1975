// Keys of the inbox: j and k move, 1 and 2 decide, s skips. Without this file every decision is a button.
const isTyping = (target) => target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
const links = [...document.querySelectorAll("#waiting li a")];
const at = links.findIndex((link) => link.hasAttribute("aria-current"));

const KEYS = {
  j: () => links[at + 1]?.click(),
  k: () => links[at - 1]?.click(),
  s: () => document.querySelector("[data-skip]")?.click(),
  1: () => document.querySelector("[data-decide='1']")?.click(),
  2: () => document.querySelector("[data-decide='2']")?.click(),
};

links[at]?.scrollIntoView({ block: "nearest" });
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const action = KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
