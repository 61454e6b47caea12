// Elements and words. Text always becomes text nodes, so received text is never parsed as HTML.

const { texts, offer, problems } = JSON.parse(document.getElementById("data").textContent);

export { offer };

/**
 * A text as it can be shown: a character that controls, or changes the reading direction of those around it, becomes its
 * number. A filename with U+202E would seem to have another extension.
 */
const shown = (text) => `${text}`.replace(/[\p{Bidi_Control}\p{Cc}]/gu, (character) => "\t\n\r".includes(character)
  ? character : `\\u{${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}}`);

/** A text of the page in its language, with its {values} filled in. */
export function words(name, values = {}) {
  const text = texts[name] ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, key) => (values[key] == null ? whole : shown(values[key])));
}

/**
 * A problem in the language of the page, by its code: a title, what to do instead, and often why. Nothing if the page is
 * in the language of the receiver's messages.
 */
export const translated = (code) => problems?.[code] ?? problems?.[code?.replace(/-of-client$/, "")];

/** The receiver's message about a problem: under its title in the language of the page if there is one. */
export function message(text, known) {
  return known
    ? [element("p", {}, known.title), element("p", { class: "note", lang: "en" }, text)] : [element("p", {}, text)];
}

/** An element with properties (class, aria-…, onclick and so on) and children: elements, texts, or nothing. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : key === "value" ? value : shown(value));
  }
  // What someone types into a field is sent as it is.
  made.append(...children.flat().filter((child) => child !== undefined && child !== null)
    .map((child) => (child instanceof Node || name === "textarea" ? child : shown(child))));
  return made;
}

const language = document.documentElement.lang;
const number = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
const percentage = new Intl.NumberFormat(language, { style: "percent" });
const clock = new Intl.DateTimeFormat(language, { timeStyle: "medium" });
const calendar = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });

export const count = (value) => number.format(value);
export const percent = (share) => percentage.format(share);

/** A number of bytes as people read it. */
export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${number.format(value)} ${units[unit]}`;
}

/** A date and time. Today's date is left out. */
export function time(text) {
  const date = new Date(text);
  const isToday = date.toDateString() === new Date().toDateString();
  return element("time", { datetime: text, title: date.toString() }, (isToday ? clock : calendar).format(date));
}

/** Replaces the sentence that an element shows. */
export function say(place, text, kind = "") {
  place.className = `${place.className.split(" ")[0]} ${kind}`.trim();
  place.textContent = shown(text);
}
