// Makes elements and words. Text always becomes text nodes, so received text is never parsed as HTML.

const data = JSON.parse(document.getElementById("data").textContent);

/** What the receiver offers to this page. */
export const offer = data.offer;

let texts;
let problems;
let language;
let number;
let percentage;
let clock;
let calendar;

/** Chooses the language. Texts that are on the page already stay as they are. */
export function speak(chosen) {
  ({ texts, problems } = data.languages?.[chosen] ?? data);
  language = chosen;
  document.documentElement.lang = chosen;
  number = new Intl.NumberFormat(chosen, { maximumFractionDigits: 1 });
  percentage = new Intl.NumberFormat(chosen, { style: "percent" });
  clock = new Intl.DateTimeFormat(chosen, { timeStyle: "medium" });
  calendar = new Intl.DateTimeFormat(chosen, { dateStyle: "medium", timeStyle: "short" });
}

speak(document.documentElement.lang);

export const spoken = () => language;

/**
 * A text as it can be shown: a character that controls, or changes the reading direction of those around it, becomes its
 * number. A filename with U+202E would seem to have another extension.
 */
const shown = (text) => `${text}`.replace(/[\p{Bidi_Control}\p{Cc}]/gu, (character) => "\t\n\r".includes(character)
  ? character : `\\u{${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}}`);

/** A text of the page in its language, with its {values} filled in, and {count:one|several} as the count wants it. */
export function words(name, values = {}) {
  const text = texts[name] ?? name;
  return text
    .replace(/\{(\w+):([^|}]*)\|([^}]*)\}/g, (_, key, one, several) => (`${values[key]}` === "1" ? one : several))
    .replace(/\{(\w+)\}/g, (whole, key) => (values[key] == null ? whole : shown(values[key])));
}

export const hasWords = (name) => texts[name] !== undefined;

/**
 * A problem in the language of the page, by its code: a title, what to do instead, and often why. Nothing if the page is
 * in the language of the receiver's messages.
 */
export const translated = (code) => problems?.[code] ?? problems?.[code?.replace(/-of-client$/, "")];

/**
 * The receiver's message about a problem. Where the page has another language, its title of the problem is shown instead,
 * and the message, which has more detail, can be opened.
 */
export function message(text, known, name = "p") {
  if (known?.isWhole) return [element(name, {}, known.title)];
  return known
    ? [element(name, {}, known.title),
      element("details", { class: "original" }, element("summary", {}, words("inEnglish")), element("p", { lang: "en" }, text))]
    : [element(name, {}, text)];
}

/** An element with properties (class, aria-…, onclick and so on) and children: elements, texts, or nothing. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : key === "value" ? value : shown(value));
  }
  // The text of a text area is sent as typed, so it is added unchanged.
  made.append(...children.flat().filter((child) => child !== undefined && child !== null)
    .map((child) => (child instanceof Node || name === "textarea" ? child : shown(child))));
  return made;
}

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
