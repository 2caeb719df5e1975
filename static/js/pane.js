// The memory beside the chat: opened by a chip, closed by its button or Escape; focus goes there and comes back.
const pane = document.getElementById("pane");
const body = document.getElementById("pane-body");
let opener = null;

function close() {
  pane.hidden = true;
  body.replaceChildren();
  document.querySelector(".chip-cite[aria-current]")?.removeAttribute("aria-current");
  if (opener?.isConnected) opener.focus();
}

document.body.addEventListener("htmx:beforeRequest", (event) => {
  const chip = event.target.closest(".chip-cite, .why-link, .stored-link");
  if (!chip) return;
  opener = chip;
  document.querySelector(".chip-cite[aria-current]")?.removeAttribute("aria-current");
  chip.setAttribute("aria-current", "true");
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target !== body) return;
  pane.hidden = false;
  body.scrollTop = 0;
  (body.querySelector("#memory-title, #why-title") ?? body).focus({ preventScroll: true });
});
document.getElementById("pane-close").addEventListener("click", close);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !pane.hidden) close();
});
