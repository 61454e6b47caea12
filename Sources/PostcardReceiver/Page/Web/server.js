// Sends requests to the receiver, with a token if one is required, and listens to its events.

import { words } from "./elements.js";

/** A refusal with the text of the receiver. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? `${status}`);
    this.status = status;
    this.problem = problem;
  }
}

// Tokens are kept only as long as this tab is open.
const stored = (kind) => `postcard-token-${kind}`;
export const token = (kind) => sessionStorage.getItem(stored(kind));

export function authorization(kind) {
  const value = token(kind);
  return value ? { Authorization: `Bearer ${value}` } : {};
}

let asking;

/** Asks for a token, once at a time. Returns whether there is a new one. */
export function askForToken(kind) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("token");
    const input = document.getElementById("token-value");
    document.getElementById("token-words").textContent = words(kind === "posting" ? "tokenPosting" : "tokenReading");
    input.value = "";
    dialog.addEventListener("close", () => {
      asking = undefined;
      const value = dialog.returnValue === "use" ? input.value.trim() : "";
      if (value) sessionStorage.setItem(stored(kind), value);
      resolve(value !== "");
    }, { once: true });
    dialog.returnValue = "";
    dialog.showModal();
  });
  return asking;
}

/** Sends a request and returns the response, or throws if it is a refusal. */
export async function ask(path, options = {}, kind = "reading") {
  const used = token(kind);
  const response = await fetch(path, { ...options, headers: authorization(kind), cache: "no-cache" });
  if (response.status === 401) {
    // Another request may have received a new token in the meantime.
    if (token(kind) !== used || await askForToken(kind)) return ask(path, options, kind);
  }
  if (response.ok) return response;
  throw new Refusal(response.status, await response.json().catch(() => undefined));
}

export const askForJSON = async (path) => (await ask(path)).json();

/**
 * Calls handlers with the events of the receiver as long as the page is open. `listening` is called each time a
 * connection is established: events may have been missed before, so lists have to be reloaded.
 *
 * An EventSource could not send the token.
 */
export async function listen(handlers) {
  for (;;) {
    try {
      const response = await ask("/events");
      handlers.listening();
      await readEvents(response.body, handlers);
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return handlers.lost();
    }
    handlers.lost();
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

async function readEvents(stream, handlers) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const messages = text.split("\n\n");
    text = messages.pop();
    for (const message of messages) {
      const line = (name) => message.split("\n").find((each) => each.startsWith(`${name}: `))?.slice(name.length + 2);
      const name = line("event");
      if (name) handlers[name]?.(JSON.parse(line("data")));
    }
  }
}
