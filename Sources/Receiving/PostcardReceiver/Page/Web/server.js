// Sends requests to the receiver, with a token if required, and listens to its events.

import { words } from "./elements.js";

/** A refusal with the text of the receiver. */
export class Refusal extends Error {
  constructor(response, problem) {
    super(problem?.detail ?? `${response.status}`);
    this.status = response.status;
    this.problem = problem;
    /** After how many seconds the receiver wants to be asked again. */
    this.retryAfter = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  }
}

// Tokens are kept until this tab is closed.
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
    // Another request may have received a new token meanwhile.
    if (token(kind) !== used || await askForToken(kind)) return ask(path, options, kind);
  }
  if (response.ok) return response;
  throw new Refusal(response, await response.json().catch(() => undefined));
}

export const askForJSON = async (path) => (await ask(path)).json();

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// The maximum pause before the page asks the receiver again, in seconds.
const longestPause = 60;

/** Sends a request again while the receiver has no time for it, as long as the response is wanted. */
export async function askInTime(path, isWanted) {
  for (;;) {
    try {
      return await ask(path);
    } catch (error) {
      if (!(error instanceof Refusal) || ![429, 503].includes(error.status) || !isWanted()) throw error;
      await pause(Math.min(error.retryAfter || 5, longestPause) * 1_000);
    }
  }
}

// How long the page waits for events before it polls, and the interval of polling, in milliseconds.
const patience = 5_000;
const interval = 5_000;
// The receiver sends a comment every 15 seconds. A longer silence means that a proxy holds the events back.
const longestSilence = 40_000;

/**
 * Calls handlers with the events of the receiver as long as the page is open. `listening` is called each time events
 * begin to arrive: some may have been missed before, so lists have to be reloaded. While none arrive, because a proxy
 * holds them back or there are too many listeners, `poll` reloads the lists every few seconds. It returns whether it
 * could, and `polling` or `lost` is called when that changes.
 *
 * An EventSource could not send the token.
 */
export async function listen(handlers) {
  const polling = new Polling(handlers);
  for (;;) {
    polling.start();
    try {
      await readEvents({ ...handlers, listening: () => { polling.stop(); handlers.listening(); } });
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) {
        polling.stop();
        return handlers.lost();
      }
    }
    if (!polling.isPolling) handlers.lost();
    polling.start();
    await pause(2000);
  }
}

/** Polls after a while, and then every few seconds, one request at a time. */
class Polling {
  #handlers;
  #timer;
  isPolling = false;

  constructor(handlers) {
    this.#handlers = handlers;
  }

  start() {
    this.#timer ??= setTimeout(() => this.#next(), patience);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.isPolling = false;
  }

  async #next() {
    const timer = this.#timer;
    const isLoaded = await this.#handlers.poll();
    // Events may have begun to arrive meanwhile.
    if (timer !== this.#timer) return;
    if (isLoaded && !this.isPolling) this.#handlers.polling();
    if (!isLoaded && this.isPolling) this.#handlers.lost();
    this.isPolling = isLoaded;
    this.#timer = setTimeout(() => this.#next(), interval);
  }
}

async function readEvents(handlers) {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), longestSilence);
  try {
    const { body } = await ask("/events", { signal: silence.signal });
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    let isListening = false;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), longestSilence);
      text += value;
      const messages = text.split("\n\n");
      text = messages.pop();
      if (messages.length && !isListening) handlers.listening();
      isListening ||= messages.length > 0;
      for (const message of messages) handle(message, handlers);
    }
  } finally {
    clearTimeout(timer);
  }
}

function handle(message, handlers) {
  const line = (name) => message.split("\n").find((each) => each.startsWith(`${name}: `))?.slice(name.length + 2);
  const name = line("event");
  if (name) handlers[name]?.(JSON.parse(line("data")));
}
