// The page of one memory: the form in the place of the text. It works without this file.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  document.querySelector("[data-cancels]")?.click();
});

// The JSON of the memory is read from the API when somebody opens it, and shown as text.
document.querySelector(".raw")?.addEventListener("toggle", async () => {
  const shown = document.getElementById("raw-json");
  if (shown.textContent) return;
  const response = await fetch(shown.dataset.source, { headers: { Accept: "application/json" } });
  if (!response.ok) return;
  shown.textContent = JSON.stringify(await response.json(), null, 2);
  shown.hidden = false;
});

// Nothing that was typed is lost by a link pressed by mistake.
let changed = false;
document.addEventListener("input", (event) => {
  if (event.target.closest("form[data-saves]")) changed = true;
});
document.addEventListener("submit", () => { changed = false; });
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-cancels]")) changed = false;
});
addEventListener("beforeunload", (event) => {
  if (changed) event.preventDefault();
});
document.body.addEventListener("htmx:afterRequest", () => { changed = false; });
