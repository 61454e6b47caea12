// The inspector: every request as it was received, with its problems.

import { bytes, element, time, translated, words } from "./elements.js";
import { decoded, hexadecimal } from "./bytes.js";
import { command, example, fieldList, part, problem, section } from "./explained.js";
import { askForJSON } from "./server.js";

const maximumEntries = 200;

/** On this machine no one else looks on, so values are shown at once. */
const isOwnMachine = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname);

export class Requests {
  constructor(place) {
    this.entries = new Map();
    this.list = element("ol", { class: "requests" });
    this.empty = element("div", { class: "empty", hidden: true }, element("p", {}, words("nothingRequested")), example());
    this.problem = element("p", { class: "problem-line", role: "status" });
    place.append(this.problem, this.list, this.empty);
  }

  /**
   * Reloads the list. Rows stay as they are, because they may be open. Identifiers start over when the receiver
   * restarts, so entries that it no longer has are removed, except those that arrived while the list was loading.
   */
  async load() {
    const before = [...this.entries];
    try {
      const { requests } = await askForJSON("/requests");
      const known = new Map(requests.map((entry) => [entry.id, entry.received]));
      for (const [id, row] of before) {
        if (this.entries.get(id) === row && known.get(id) !== row.dataset.received) this.#remove(id);
      }
      for (const entry of requests.reverse()) this.add(entry);
      this.problem.textContent = "";
    } catch (error) {
      this.problem.textContent = words("failed", { reason: error.message });
    }
    this.#showWhetherEmpty();
  }

  add(entry) {
    if (this.entries.has(entry.id)) return;
    const row = this.#row(entry);
    this.entries.set(entry.id, row);
    const after = [...this.list.children].find((other) => Number(other.dataset.id) < Number(entry.id));
    this.list.insertBefore(row, after ?? null);
    if (this.entries.size > maximumEntries) this.#remove(this.list.lastElementChild.dataset.id);
    this.#showWhetherEmpty();
  }

  /** Removes the request of an upload that was deleted. */
  forget(upload) {
    for (const [id, row] of this.entries) if (row.dataset.upload === upload) this.#remove(id);
    this.#showWhetherEmpty();
  }

  /** Opens a request, if it is still recorded. */
  open(id) {
    const details = this.entries.get(id)?.querySelector("details");
    if (!details) return;
    details.open = true;
    details.scrollIntoView({ block: "nearest" });
  }

  #remove(id) {
    this.entries.get(id)?.remove();
    this.entries.delete(id);
  }

  #showWhetherEmpty() {
    this.empty.hidden = this.entries.size > 0;
  }

  #row(entry) {
    const details = element("details", {},
      element("summary", {},
        element("span", { class: `status ${kind(entry.status)}` }, `${entry.status ?? words("unanswered")}`),
        element("span", { class: "request-line" }, `${entry.method} ${entry.path}`),
        entry.code ? element("span", { class: "title" }, translated(entry.code)?.title ?? entry.title) : null,
        element("span", { class: "state" }, entry.declaredBytes
          ? words("readOf", { read: bytes(entry.bytes), size: bytes(entry.declaredBytes) }) : bytes(entry.bytes)),
        time(entry.received)));
    details.addEventListener("toggle", async () => {
      if (!details.open || details.querySelector(".inside")) return;
      const inside = element("div", { class: "inside" }, words("loading"));
      details.append(inside);
      await describe(entry, inside, isOwnMachine ? "?values=shown" : "");
    });
    details.addEventListener("toggle", () => {
      this.opened?.(details.open ? entry.id : undefined);
    });
    return element("li", {
      "data-id": entry.id, "data-code": entry.code, "data-upload": entry.upload ?? "", "data-received": entry.received,
    }, details);
  }
}

/** Values that may be secret are only shown to who asks for them. */
async function describe({ id }, place, query = "") {
  try {
    const request = await askForJSON(`/requests/${id}${query}`);
    place.replaceChildren(...description(request, () => describe({ id }, place, "?values=shown")));
  } catch (error) {
    place.replaceChildren(words("failed", { reason: error.message }));
  }
}

const kind = (status) => (!status || status >= 500 ? "bad" : status >= 400 ? "refused" : "good");

function description(request, showValues) {
  return [
    request.valuesHidden ? element("p", { class: "note" }, words("valuesHidden"), " ",
      element("button", { class: "quiet", "data-action": "show-values", onclick: showValues }, words("showValues"))) : null,
    request.problems.length ? section("problems", request.problems.map(problem)) : null,
    section("head",
      request.client ? element("p", { class: "note" }, words("from", { address: request.client })) : null,
      fieldList(request.headers)),
    request.parts.length ? section("parts", element("ol", { class: "parts" }, request.parts.map((each) => part(each))),
      request.partCount > request.parts.length
        ? element("p", { class: "note" }, words("partsLeftOut", { count: request.partCount - request.parts.length }))
        : null) : null,
    body(request),
    repeat(request),
  ].filter(Boolean);
}

function body(request) {
  const { length, complete, first, last } = request.body;
  if (!length) return null;
  const shown = (name, kept) => kept
    ? element("details", {}, element("summary", {}, words(name)), hexadecimal(kept, name === "lastBytes")) : null;
  return section("body",
    element("p", { class: "note" }, words(complete ? "bodyRead" : "bodyUnread", { size: bytes(length) })),
    shown("firstBytes", first), shown("lastBytes", last),
    first ? element("button", { class: "quiet", onclick: () => save(request) }, words("saveBytes")) : null);
}

function save({ id, body: { first, last } }) {
  const url = URL.createObjectURL(new Blob([first, last].filter(Boolean).map(({ base64 }) => decoded(base64))));
  element("a", { href: url, download: `request-${id}.body` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function repeat({ curl, send }) {
  const parts = curl.complete ? "curlParts" : "curlSome";
  const note = curl.exact ? "curlExact" : curl.line.includes("@body") ? "curlUnknown" : parts;
  return section("repeat",
    command(curl.line, "copy", note), send ? command(send, "copySend", parts) : null);
}
