// The list of calls waits while a call is open that the new list has no longer. Open calls of both lists stay open by
// hx-preserve.
document.addEventListener("htmx:beforeSwap", (event) => {
  const open = [...document.querySelectorAll("#calls details[open]")];
  if (event.detail.target?.id !== "calls" || open.length === 0) return;
  if (open.some((call) => !event.detail.serverResponse.includes(`id="${call.id}"`))) event.detail.shouldSwap = false;
});
