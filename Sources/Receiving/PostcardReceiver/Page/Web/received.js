// The received forms, newest first.

import { example } from "./explained.js";
import { extension } from "./compose.js";
import { bytes, element, offer, time, words } from "./elements.js";
import { ask, askForJSON, askInTime, token } from "./server.js";

const pictureTypes = /^image\/(jpeg|png|gif|webp|avif|heic|heif|bmp|tiff|x-adobe-dng)\s*(;|$)/i;
const pictureNames = /\.(jpe?g|png|gif|webp|avif|heic|heif|bmp|tiff?|dng)$/i;

export class Received {
  constructor(place) {
    this.cards = new Map();
    this.list = element("ol", { class: "cards" });
    this.empty = element("div", { class: "empty", hidden: true }, element("p", {}, words("nothingReceived")), example());
    this.problem = element("p", { class: "problem-line", role: "status" });
    this.older = element("button", { class: "quiet older", hidden: true, onclick: () => this.#loadOlder() }, words("older"));
    this.list.addEventListener("notfetched", ({ detail }) => this.#say(detail));
    place.append(this.problem, this.list, this.empty, this.older);
  }

  /** Reloads the newest records, and returns whether they could be read. */
  async load() {
    let isLoaded = false;
    const before = [...this.cards.keys()];
    try {
      const { uploads, next } = await askForJSON("/uploads");
      const known = new Set(uploads.map(({ id }) => id));
      const oldest = uploads.at(-1)?.id ?? "";
      // Older forms that the page already shows stay, and need not be offered again.
      const isContinued = before.includes(oldest);
      // Recent records missing in the new list were deleted. Records that arrived while the list was loading stay.
      for (const id of before) if (id >= oldest && !known.has(id)) this.remove(id);
      for (const record of uploads.reverse()) this.add(record);
      if (!isContinued) this.#offerOlder(next);
      this.problem.textContent = "";
      isLoaded = true;
    } catch (error) {
      this.#say(error);
    }
    this.#showWhetherEmpty();
    return isLoaded;
  }

  #say(error) {
    this.problem.textContent = words("failed", { reason: error.message });
  }

  async #loadOlder() {
    try {
      const { uploads, next } = await askForJSON(`/uploads?after=${this.next}`);
      for (const record of uploads) this.add(record);
      this.#offerOlder(next);
      this.problem.textContent = "";
    } catch (error) {
      this.#say(error);
    }
  }

  #offerOlder(next) {
    this.next = next;
    this.older.hidden = !next;
  }

  /** Identifiers grow with time, so they order the records. */
  add(record) {
    if (!offer.canRead || this.cards.has(record.id)) return;
    const card = this.#card(record);
    const after = [...this.list.children].find((other) => other.dataset.id < record.id);
    this.list.insertBefore(card, after ?? null);
    this.cards.set(record.id, card);
    this.#showWhetherEmpty();
  }

  remove(id) {
    this.cards.get(id)?.remove();
    this.cards.delete(id);
    this.#showWhetherEmpty();
  }

  #showWhetherEmpty() {
    this.empty.hidden = this.cards.size > 0;
  }

  #card(record) {
    // Browsers send an empty file for a file input without a chosen file.
    const files = record.files.filter(({ chosen }) => chosen !== false);
    const pictures = files.filter(isPicture);
    const size = files.reduce((sum, file) => sum + file.size, 0);
    return element("li", { class: "card", "data-id": record.id },
      pictures.length
        ? element("div", { class: `pictures of-${Math.min(pictures.length, 3)}` }, pictures.map(picture)) : null,
      element("div", { class: "card-words" },
        record.fields.length ? element("dl", { class: "texts" }, record.fields.map(text)) : null,
        files.length ? element("ul", { class: "files" }, files.map(file)) : null,
        record.fields.length + files.length ? null : element("p", { class: "empty" }, words("emptyForm"))),
      element("footer", {},
        time(record.received), files.length ? element("span", {}, bytes(size)) : null,
        offer.canDelete ? this.#deleteButton(record.id) : null));
  }

  /** Asks for confirmation in place, and stops asking when it loses focus. */
  #deleteButton(id) {
    let isSure = false;
    const button = element("button", { class: "quiet delete", "data-action": "delete" }, words("delete"));
    const reset = () => {
      isSure = false;
      button.textContent = words("delete");
      button.classList.remove("sure");
    };
    button.addEventListener("blur", reset);
    button.addEventListener("click", async () => {
      if (!isSure) {
        isSure = true;
        button.textContent = words("deleteSurely");
        button.classList.add("sure");
        return;
      }
      try {
        await ask(`/uploads/${id}`, { method: "DELETE" });
        this.remove(id);
      } catch (error) {
        if (error.status === 404) return this.remove(id);
        reset();
        this.problem.textContent = words("notDeleted", { reason: error.message });
      }
    });
    return button;
  }
}

const isPicture = (file) => file.size > 0 && (pictureTypes.test(file.detectedType ?? file.contentType)
  || (file.contentType === "application/octet-stream" && pictureNames.test(file.filename)));
/** The type that the client sent, and the one that the bytes show if it is another. */
const typeOf = (file) => file.contentType + (file.detectedType ? ` (${file.detectedType})` : "");
const nameOf = (file) => (file.sentFilename ?? file.filename) || words("noFilename");

/** A text, and its bytes as they were sent if it was not in UTF-8. */
function text({ name, value, base64 }) {
  const sent = () => element("a", {
    class: "download", href: `data:application/octet-stream;base64,${base64}`, download: name,
    "aria-label": words("downloadFile", { name }),
  }, words("sentBytes"));
  return element("div", {}, element("dt", {}, name), element("dd", {}, value, base64 ? [" ", sent()] : null));
}

// Larger pictures are only shown if the receiver makes thumbnails of them.
const largestShown = 16 << 20;
// Pictures up to this size are shown without a thumbnail if browsers support their format.
const largestWhole = 60_000;
const shownByBrowsers = /^image\/(jpeg|png|gif|webp|avif|bmp)\s*(;|$)/i;

/** What may show a picture, best first: the receiver's small picture, and the file itself. */
function sources(entry, tile) {
  const small = offer.hasThumbnails ? [() => thumbnail(entry.url, () => tile.isConnected)] : [];
  const whole = entry.size <= largestShown ? [() => fetched(entry)] : [];
  const isWholeBetter = entry.size <= largestWhole && shownByBrowsers.test(entry.detectedType ?? entry.contentType);
  return isWholeBetter ? [...whole, ...small] : [...small, ...whole];
}

function picture(entry) {
  const kind = element("span", { class: "kind" }, extension(entry.filename));
  const image = element("img", { alt: nameOf(entry) });
  const link = element("a", {
    href: entry.url, target: "_blank", rel: "noopener", "aria-label": words("open", { name: nameOf(entry) }),
  }, kind);
  whenSeen(link, async () => {
    for (const source of sources(entry, link)) {
      try {
        image.src = await source();
        await image.decode();
        URL.revokeObjectURL(image.src);
        kind.replaceWith(image);
        return;
      } catch {
        // The next picture may still load.
      }
    }
  });
  return fetchedWhenFollowed(link, entry);
}

// The receiver makes one thumbnail at a time, and a browser has few connections for the whole page.
const mostAtOnce = 2;
let atOnce = 0;
const waiting = [];

/** The address of a small picture. */
async function thumbnail(url, isWanted) {
  if (atOnce < mostAtOnce) atOnce += 1;
  else await new Promise((resolve) => waiting.push(resolve));
  try {
    return URL.createObjectURL(await (await askInTime(`${url}/thumbnail`, isWanted)).blob());
  } finally {
    const next = waiting.shift();
    if (next) next();
    else atOnce -= 1;
  }
}

const seen = new WeakMap();
const watch = new IntersectionObserver((changes) => {
  for (const { isIntersecting, target } of changes) {
    if (!isIntersecting) continue;
    watch.unobserve(target);
    seen.get(target)().catch(() => {});
    seen.delete(target);
  }
}, { rootMargin: "50%" });

/** Runs an action when an element is about to become visible, so that hundreds of pictures are not fetched at once. */
function whenSeen(target, action) {
  seen.set(target, action);
  watch.observe(target);
}

function file(entry) {
  const link = element("a", {
    class: "download", href: entry.url, download: entry.filename,
    "aria-label": words("downloadFile", { name: nameOf(entry) }),
  }, words("download"));
  return element("li", {},
    element("span", { class: "file-name" }, nameOf(entry)),
    element("span", { class: "state" }, typeOf(entry) + ` · ${bytes(entry.size)}`),
    fetchedWhenFollowed(link, entry));
}

/** A link to a file, which is fetched with a token if one is required. */
function fetchedWhenFollowed(link, entry) {
  if (token("reading")) {
    link.addEventListener("click", async (event) => {
      if (link.href.startsWith("blob:")) return;
      event.preventDefault();
      try {
        link.href = await fetched(entry);
        link.click();
      } catch (error) {
        link.dispatchEvent(new CustomEvent("notfetched", { bubbles: true, detail: error }));
      }
    });
  }
  return link;
}

/**
 * The address of a file. A link sends no token, so a file that requires one is fetched first. It then belongs to this
 * page, so only what can run no code keeps its type.
 */
async function fetched(entry) {
  if (!token("reading")) return entry.url;
  const data = await (await ask(entry.url)).blob();
  const type = entry.detectedType ?? entry.contentType;
  return URL.createObjectURL(data.slice(0, data.size, pictureTypes.test(type) ? type : "application/octet-stream"));
}
