// A file that is larger than a form may be goes in parts; the form itself then only names it.
const form = document.getElementById("import");
const file = form?.elements.file;
const largest = Number(form?.dataset.part);

async function send(address, part) {
  const reply = await fetch(address, {
    method: "POST",
    body: part,
    headers: { "Content-Type": "application/octet-stream", "X-CSRFToken": form.elements.csrfmiddlewaretoken.value },
  });
  if (!reply.ok) throw new Error(String(reply.status));
  return reply.json();
}

async function sendParts(chosen, told) {
  const parts = form.dataset.parts;
  const begun = await send(`${parts}?name=${encodeURIComponent(chosen.name)}`, chosen.slice(0, largest));
  for (let number = 1; number * largest < chosen.size; number += 1) {
    told.value = number * largest;
    await send(`${parts}${begun.id}/?number=${number}`, chosen.slice(number * largest, (number + 1) * largest));
  }
  return begun.address;
}

form?.addEventListener("submit", async (event) => {
  const chosen = file.files[0];
  if (!chosen || chosen.size <= largest) return;
  event.preventDefault();
  const [told, failed, button] = ["progress", "[data-failed]", "button[type=submit]"].map((name) => form.querySelector(name));
  told.max = chosen.size;
  told.hidden = false;
  failed.hidden = true;
  button.disabled = true;
  try {
    window.location.assign(`${await sendParts(chosen, told)}?format=${form.elements.format.value}`);
  } catch {
    told.hidden = true;
    failed.hidden = false;
    button.disabled = false;
  }
});
