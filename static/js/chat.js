// Asks without leaving the page. The page works without this file: the form is then sent as any form is.
import { Answer } from "./answer.js";
import { isComposing } from "./composing.js";
import { copyText } from "./copying.js";
import { events } from "./events.js";

const form = document.getElementById("composer");
const box = document.getElementById("question");
const send = document.getElementById("send");
const stop = document.getElementById("stop");
const fault = document.getElementById("fault");
const log = document.getElementById("log");
const turns = document.getElementById("turns");
const STOPPED_TRIES = 10;
const STOPPED_WAIT = 150; // milliseconds; the server stores a stopped answer as soon as it notices
let asking = null; // the AbortController of the question that is being answered

class Refused extends Error {}

function complain(text) {
  fault.textContent = text;
  fault.hidden = !text;
  box.toggleAttribute("aria-invalid", Boolean(text));
}

function fit() {
  box.classList.toggle("tall", box.scrollHeight > box.clientHeight + 2 || box.value.includes("\n"));
}

function busy(controller) {
  asking = controller;
  send.hidden = Boolean(controller);
  stop.hidden = !controller;
}

const nearEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 120;
const toEnd = () => log.scrollTo({ top: log.scrollHeight });

function draft(question) {
  const element = document.createElement("article");
  element.className = "turn";
  element.setAttribute("aria-busy", "true");
  const asked = document.createElement("pre");
  asked.className = "question";
  asked.dir = "auto";
  asked.textContent = question;
  const answer = document.createElement("pre");
  answer.className = "answer waiting";
  answer.dir = "auto";
  answer.dataset.waiting = form.dataset.thinking;
  element.append(asked, answer);
  turns.append(element);
  return { element, answer };
}

async function open(question, signal) {
  const body = new FormData(form);
  body.set("content", question);
  const response = await fetch(form.action, {
    method: "POST",
    body,
    signal,
    headers: { Accept: "text/event-stream" },
  });
  if (response.status === 401) {
    const way = new URL((await response.json()).sign_in, location.href);
    const back = new URL(location.href);
    back.searchParams.set("q", question);
    way.searchParams.set("next", back.pathname + back.search);
    location.assign(way);
    throw new Refused("");
  }
  if (!response.ok) {
    const told = (response.headers.get("Content-Type") ?? "").includes("json") ? (await response.json()).detail : "";
    throw new Refused(told || form.dataset.failed);
  }
  return response;
}

// Where no model answers, says so as soon as a memory is quoted.
function quoted(element) {
  if (!form.dataset.quoted || element.previousElementSibling?.matches(".note")) return;
  const note = document.createElement("p");
  note.className = "note";
  note.textContent = form.dataset.quoted;
  element.before(note);
}

async function read(response, answer) {
  for await (const { name, data } of events(response)) {
    const follow = nearEnd();
    answer.element.classList.remove("waiting");
    if (name === "citation") quoted(answer.element);
    if (name === "token") answer.add(data.text);
    else if (name === "citation") answer.cite(data.marker, data.url);
    else if (name === "error") throw new Refused(data.detail || form.dataset.failed);
    else if (name === "done") return;
    if (follow) toEnd();
  }
  throw new Refused(form.dataset.lost);
}

// The server's own drawing takes the place of ours. Answers whether there is one.
async function settle(element, url) {
  const response = await fetch(url, { headers: { "HX-Request": "true" } });
  if (!response.ok) return false;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const drawn = document.importNode(page.querySelector("article"), true);
  element.replaceWith(drawn);
  dress(drawn);
  window.htmx.process(drawn);
  return true;
}

async function settleStopped(element, url) {
  for (let tries = 0; tries < STOPPED_TRIES; tries += 1) {
    if (await settle(element, url)) return true;
    await new Promise((resolve) => setTimeout(resolve, STOPPED_WAIT));
  }
  return false;
}

// A conversation that has just begun gets its address, its name in the list, and its title.
async function settleConversation(url) {
  const response = await fetch(url);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const id of ["conversations", "bar"]) {
    document.getElementById(id).replaceWith(document.importNode(page.getElementById(id), true));
  }
  document.title = page.title;
}

function began(turnUrl) {
  const url = turnUrl.replace(/turns\/[^/]+\/$/, "");
  if (new URL(form.action).pathname.startsWith(url)) return null;
  form.action = `${url}turns/`;
  history.replaceState(null, "", url);
  return url;
}

function takeBack(element, question, text) {
  element.remove();
  box.value = box.value || question;
  complain(text);
  fit();
}

async function ask(question = box.value) {
  if (asking) return;
  if (!question.trim()) {
    complain(form.dataset.empty);
    return;
  }
  const controller = new AbortController();
  busy(controller);
  complain("");
  const empty = document.getElementById("empty");
  if (empty) empty.hidden = true; // its choice of persona and model is sent with the first question
  const { element, answer } = draft(question);
  if (box.value === question) box.value = "";
  fit();
  toEnd();
  const coming = new Answer(answer, form.dataset.memory);
  let turnUrl = null;
  let begun = null;
  try {
    const response = await open(question, controller.signal);
    turnUrl = response.headers.get("Content-Location");
    begun = began(turnUrl);
    await read(response, coming);
    await settle(element, turnUrl);
  } catch (error) {
    if (controller.signal.aborted) {
      // Of an answer that had not begun nothing is stored.
      if (!coming.begun || !(await settleStopped(element, turnUrl))) takeBack(element, question, "");
    } else if (error instanceof Refused || error instanceof TypeError) {
      takeBack(element, question, error instanceof Refused ? error.message : form.dataset.lost); // fetch fails with TypeError
    } else {
      takeBack(element, question, form.dataset.failed);
      throw error;
    }
  } finally {
    busy(null);
    if (begun) await settleConversation(begun);
    toEnd();
    if (document.activeElement === document.body || document.activeElement === stop) box.focus();
  }
}

// Copying needs a script; its buttons are shown only with one.
function dress(root) {
  for (const button of root.querySelectorAll(".copy-link")) button.hidden = false;
}
log.addEventListener("click", async (event) => {
  const turn = event.target.closest(".turn");
  if (event.target.closest(".copy-link")) await copyText(turn.querySelector(".answer").innerText);
  if (!event.target.closest(".edit-link") || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  box.value = turn.querySelector(".question").textContent;
  fit();
  box.focus();
});
log.addEventListener("submit", (event) => {
  if (!event.target.matches(".retry")) return;
  event.preventDefault();
  ask(event.target.elements.content.value);
});
dress(document);

form.addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
box.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return; // Enter chooses a character
  event.preventDefault();
  ask();
});
box.addEventListener("input", fit);
stop.addEventListener("click", () => asking?.abort());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") asking?.abort();
});
fit();
toEnd();
