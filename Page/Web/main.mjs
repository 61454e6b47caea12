// The page of the Doctor: takes a request, has the worker explain it, and shows the explanation.

import { bytes, count, element, hasWords, percent, say, speak, spoken, translated, words } from "./elements.js";
import { command, part as describedPart, problem as describedProblem, section } from "./explained.js";
import { codes } from "./code.mjs";
import { mistakes } from "./gallery.mjs";
import { own } from "./own.mjs";

const byID = (id) => document.getElementById(id);
const [textArea, fileInput, typeInput, lineFeeds] = ["text", "file", "type", "line-feeds"].map(byID);

/** A longer text is not put into the text box, which would take longer than to explain it. */
const maximumShownText = 64 << 10;
const maximumLink = 8 << 10;
const maximumPictures = 24;
const maximumPictureBytes = 16 << 20;
/** A text of a part is read in its own charset up to this size. */
const maximumTextBytes = 64 << 10;

/** What is explained: a text as it was pasted, or a file. */
let source;
let isTextTyped = false;
/** What is shown: an answer, or why there is none. */
let shown = { kind: "starting" };
let selected = [];
let isListed = false;

// The worker

let worker;
let job = 0;
let isReady = false;
let waiting;
let packed;

/** Sends a job, which ends the one before. */
function send(kind, message = {}) {
  job += 1;
  if (isReady) worker.postMessage({ kind, job, ...message });
  else waiting = { kind, job, ...message };
  return job;
}

function start() {
  isReady = false;
  worker?.terminate();
  worker = new Worker(URL.createObjectURL(new Blob([byID("worker").textContent], { type: "text/javascript" })));
  worker.addEventListener("message", ({ data }) => receive(data));
  // A worker that ran out of memory may end as a whole.
  worker.addEventListener("error", () => {
    if (isReady) {
      start();
      show({ kind: "trapped" });
    } else {
      show({ kind: "unsupported" });
    }
  });
  worker.postMessage({ kind: "load", job: 0, packed });
}

function receive(data) {
  if (data.kind === "ready") {
    isReady = true;
    if (!byID("servers").childElementCount) listServers(data.servers);
    if (waiting) worker.postMessage(waiting);
    else if (shown.kind === "starting") show({ kind: "empty" });
    waiting = undefined;
  } else if (data.kind === "unsupported") {
    show({ kind: "unsupported" });
  } else if (data.job === job) {
    received[data.kind]?.(data);
  }
}

const received = {
  progress: ({ read, total }) => {
    const bar = byID("bar");
    byID("progress").hidden = false;
    [bar.max, bar.value] = [total, read];
    say(byID("state"), words("reading", { percent: percent(read / total) }));
  },
  answer: ({ answer }) => {
    show({ kind: "answer", answer });
    askForContents(answer);
  },
  fixed: ({ fixed }) => {
    byID("progress").hidden = true;
    if (shown.kind !== "answer") return;
    verdict(shown.answer);
    if (fixed) save(fixed);
    byID("fixed").replaceChildren(...whatIsFixed(shown.answer, fixed));
  },
  contents: ({ contents }) => contents.forEach((blob, index) => showContent(asked[index], blob)),
  trapped: () => show({ kind: "trapped" }),
  unreadable: ({ reason }) => show({ kind: "unreadable", reason }),
};

// The input

/** The bytes of the source, and the Content-Type if they are a body alone. */
function input() {
  const contentType = typeInput.value.trim() || undefined;
  if (source.file) return { input: source.file, contentType };
  const text = source.text;
  const isText = losesReturns(text);
  byID("line-feeds-field").hidden = !isText;
  return {
    input: new Blob([isText && !lineFeeds.checked ? text.replaceAll("\n", "\r\n") : text]), contentType,
  };
}

/** Whether a text is a request or a body whose line breaks have lost their CR on the way. */
const losesReturns = (text) => text.includes("\n") && !text.includes("\r")
  && !/^\s*(\{|\$?\s*curl(\.exe)? |(await )?fetch\(|== Info|[=<]. (Send|Recv)|\d\d:\d\d:\d\d)/.test(text);

/** The chosen servers, also before they are listed. */
const servers = () => isListed
  ? [...document.querySelectorAll("#servers input:checked")].map(({ value }) => value) : selected;

function explain(entry) {
  byID("progress").hidden = true;
  if (!source) {
    send("forget");
    return show({ kind: isReady ? "empty" : "starting" });
  }
  const { input: blob, contentType } = input();
  shown = { kind: "reading" };
  byID("result").setAttribute("aria-busy", "true");
  send("explain", { input: blob, contentType, entry, servers: servers() });
}

function choose(next, { isTyped = false } = {}) {
  source = next;
  isTextTyped = isTyped;
  asked = [];
  if (!source?.file) byID("line-feeds-field").hidden = true;
  byID("chosen").replaceChildren(...(source?.name ? [chosenRow()] : []));
  if (!isTyped) textArea.value = source?.text !== undefined && !source.name ? source.text : "";
  if (!isTyped) markMistake();
  explain();
}

function chosenRow() {
  const name = source.isPasted ? words("pasted") : source.name;
  return element("div", { class: "chosen-file" },
    element("span", { class: "file-name" }, name),
    element("span", { class: "state" }, bytes(source.file.size)),
    element("button", {
      type: "button", class: "remove", "aria-label": words("remove", { name }),
      onclick: () => {
        choose(undefined);
        textArea.focus();
      },
    }, "×"));
}

/** Takes a text that was pasted, with the line breaks that a text box would change. */
function paste(text) {
  if (text.length <= maximumShownText) return choose({ text });
  const kept = losesReturns(text) && !lineFeeds.checked ? text.replaceAll("\n", "\r\n") : text;
  choose({ file: new Blob([kept]), name: "pasted.txt", isPasted: true });
}

function takeFile(file) {
  if (file) choose({ file, name: file.name });
}

let typing;

// The next paste replaces what was not typed.
textArea.addEventListener("focus", () => {
  if (!isTextTyped) textArea.select();
});
textArea.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    clearFragment();
    choose(textArea.value ? { text: textArea.value } : undefined, { isTyped: true });
    markMistake();
  }, 250);
});

document.addEventListener("paste", (event) => {
  const { target, clipboardData } = event;
  if (target === typeInput) return;
  const [file] = clipboardData.files;
  const text = clipboardData.getData("text/plain");
  const isWhole = target !== textArea
    || textArea.selectionEnd - textArea.selectionStart === textArea.value.length;
  if (!file && (!text || !isWhole)) return;
  event.preventDefault();
  clearTimeout(typing);
  clearFragment();
  if (file) takeFile(file);
  else paste(text);
});

typeInput.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => explain(), 250);
});
lineFeeds.addEventListener("change", () => explain());
byID("form").addEventListener("submit", (event) => event.preventDefault());
fileInput.addEventListener("change", () => {
  clearFragment();
  takeFile(fileInput.files[0]);
  fileInput.value = "";
});
for (const name of ["dragenter", "dragover"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    byID("drop").classList.add("over");
  });
}
document.addEventListener("dragleave", ({ relatedTarget }) => {
  if (!relatedTarget) byID("drop").classList.remove("over");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  byID("drop").classList.remove("over");
  clearFragment();
  const [file] = event.dataTransfer.files;
  const text = event.dataTransfer.getData("text/plain");
  if (file) takeFile(file);
  else if (text) paste(text);
});
byID("cancel").addEventListener("click", () => {
  send("forget");
  byID("progress").hidden = true;
  show({ kind: "stopped" });
});

function listServers(list) {
  byID("servers").replaceChildren(...list.map(({ name, title }) => element("label", { class: "check" },
    element("input", { type: "checkbox", value: name }), title)));
  byID("servers").addEventListener("change", () => {
    if (shown.kind === "answer" && !shown.answer.error) send("judge", { servers: servers() });
    else explain();
  });
  isListed = true;
  chooseServers(selected);
}

function chooseServers(names) {
  selected = names;
  for (const box of document.querySelectorAll("#servers input")) box.checked = names.includes(box.value);
  if (names.length) byID("servers-field").open = true;
}

// The result

function show(next) {
  shown = next;
  render();
}

/** Shows everything again, in the language of the page. */
function render() {
  const result = byID("result");
  const state = byID("state");
  if (shown.kind !== "reading") byID("progress").hidden = true;
  result.setAttribute("aria-busy", shown.kind === "reading");
  const again = () => element("div", { class: "actions" },
    element("button", { type: "button", onclick: () => explain() }, words("again")));
  switch (shown.kind) {
    case "starting": say(state, words("starting")); break;
    case "empty":
      say(state, "");
      result.replaceChildren(...introduction());
      break;
    case "stopped":
      say(state, words("stopped"));
      result.replaceChildren(...(source ? [again()] : []));
      break;
    case "trapped":
      say(state, words("trapped"), "bad");
      result.replaceChildren(again());
      break;
    case "unsupported":
      say(state, words("noWebAssembly"), "bad");
      result.replaceChildren();
      break;
    case "unreadable":
      say(state, words("unreadable", { reason: shown.reason }), "bad");
      result.replaceChildren(again());
      break;
    case "answer":
      verdict(shown.answer);
      result.replaceChildren(...(shown.answer.error ? failure(shown.answer) : explanation(shown.answer)));
      break;
    default: break;
  }
}

function introduction() {
  return [
    element("p", { class: "note" }, words("waiting")),
    command("curl --trace request.txt -F photo=@cat.jpg https://example.com/pets", "copyLine", "recordCurl"),
    element("p", { class: "note" }, words("recordBrowser")),
  ];
}

function verdict(answer) {
  const state = byID("state");
  if (answer.error) {
    const known = `error-${answer.error}`;
    return say(state, answer.error === "too-large" ? words("tooLarge") : hasWords(known) ? words(known) : answer.message, "bad");
  }
  const { errors, warnings } = answer;
  const isForm = answer.boundary !== null || answer.parts.length > 0;
  if (errors && !isForm) say(state, words("verdictNone"), "bad");
  else if (errors) say(state, words(warnings ? "verdictBoth" : "verdictBad", { errors, warnings }), "bad");
  else if (warnings) say(state, words("verdictWarnings", { warnings }), "warned");
  else say(state, words("verdictGood"), "good");
}

function failure(answer) {
  if (answer.error === "too-large") return [];
  return [
    element("p", {}, own(answer.advice, words)),
    spoken() === "en" ? element("p", { class: "note" }, answer.message) : null,
    answer.uploads.length ? section("uploads", element("ul", { class: "uploads" }, answer.uploads.map((line) =>
      element("li", {}, element("button", { type: "button", onclick: () => explain(Number.parseInt(line, 10)) }, line))))) : null,
  ].filter(Boolean);
}

function explanation(answer) {
  const { page } = answer;
  const left = answer.partCount - answer.parts.length;
  const remarks = answer.remarks.map((text) => element("p", { class: "note" }, element("b", {}, words("note")), ` ${own(text, words)}`));
  return [
    ...remarks,
    page.problems.length ? section("problems", page.problems.map((each) => describedProblem(inOwnWords(each))),
      page.omitted ? element("p", { class: "note" }, words("moreOmitted", { count: count(page.omitted) })) : null) : null,
    actions(answer),
    answer.parts.length ? section("contents", element("ol", { class: "parts" }, answer.parts.map((each, index) =>
      describedPart({ ...each, filename: each.filename ?? undefined, text: page.texts[index] },
        element("div", { class: "content", "data-part": index })))),
    left > 0 ? element("p", { class: "note" }, words("partsOmitted", { count: count(left) })) : null) : null,
    page.request ? codeTabs(codes(page.request, answer.curl)) : null,
  ].filter(Boolean);
}

function inOwnWords(each) {
  const [message, fix] = [own(each.message, words), own(each.fix, words)];
  const known = translated(each.code);
  const isOwn = message !== each.message;
  return {
    ...each, message, fix,
    // A sentence of the page's own is in its language, and says more than the title of the problem.
    translation: known && {
      ...known, title: isOwn ? message : known.title, fix: fix !== each.fix ? fix : own(known.fix, words),
      isWhole: isOwn,
    },
  };
}

function actions(answer) {
  const { page } = answer;
  const link = source?.text !== undefined ? element("button", { type: "button", "data-action": "link", onclick: copyLink }, words("link")) : null;
  const fix = page.fixable.length && answer.page.bodySize
    ? element("button", { type: "button", class: "main", "data-action": "fix", onclick: () => send("fix") },
      words(answer.format === "body" ? "saveFixedBody" : "saveFixed")) : null;
  if (!link && !fix) return null;
  return element("div", { class: "command" }, element("div", { class: "actions" }, fix, link),
    element("div", { id: "fixed", role: "status" }),
    link ? element("p", { class: "note", id: "link-note" }, words("linkNote")) : null);
}

function whatIsFixed({ page }, fixed) {
  const title = (code) => translated(code)?.title ?? page.problems.find((each) => each.code === code)?.title ?? code;
  const titles = (list) => list.map(title).join("; ");
  if (!fixed) return [element("p", {}, words("nothingFixed"))];
  return [
    element("p", {}, words("fixedNow", { titles: titles(page.fixable) })),
    page.unfixable.length ? element("p", {}, words("fixedLeft", { titles: titles(page.unfixable) })) : null,
    page.contentType ? element("p", {}, words("fixedType", { type: page.contentType })) : null,
  ].filter(Boolean);
}

function save(blob) {
  const url = URL.createObjectURL(blob);
  const name = source?.file && !source.isPasted ? `fixed-${source.name}` : "fixed-request.txt";
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

let language = "Swift";

function codeTabs(all) {
  const place = element("div", { role: "tabpanel", id: "code", "aria-labelledby": "code-tab-Swift" });
  const tabs = Object.keys(all).filter((name) => all[name]).map((name) =>
    element("button", { type: "button", role: "tab", id: `code-tab-${name}`, "aria-controls": "code" }, name));
  const choose = (tab) => {
    language = tab.textContent;
    for (const other of tabs) {
      other.setAttribute("aria-selected", other === tab);
      other.tabIndex = other === tab ? 0 : -1;
    }
    place.setAttribute("aria-labelledby", tab.id);
    place.replaceChildren(command(all[language], "copyLine", "codeNote"));
  };
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", ({ key }) => {
      const step = { ArrowLeft: tabs.length - 1, ArrowRight: 1 }[key];
      if (!step) return;
      const next = tabs[(index + step) % tabs.length];
      choose(next);
      next.focus();
    });
  }
  choose(tabs.find((tab) => tab.textContent === language) ?? tabs[0]);
  return section("code", element("div", { class: "tabs", role: "tablist", "aria-label": words("code") }, tabs), place);
}

// What parts contain

let asked = [];

/** The types of pictures that cannot run anything, by their first bytes. */
const pictures = [
  [/^\x89PNG\r\n\x1a\n/, "image/png"], [/^\xff\xd8\xff/, "image/jpeg"], [/^GIF8[79]a/, "image/gif"],
  [/^RIFF....WEBP/s, "image/webp"], [/^BM/, "image/bmp"], [/^....ftypavif/s, "image/avif"],
];

function askForContents(answer) {
  asked = [];
  if (answer.error) return;
  for (const [index, each] of answer.parts.entries()) {
    const isPicture = /^image\//i.test(each.contentType ?? "") || /\.(png|jpe?g|gif|webp|bmp|avif)$/i.test(each.filename ?? "");
    const charset = /;\s*charset="?([^";]+)/i.exec(each.contentType ?? "")?.[1];
    const isWanted = isPicture
      ? each.size <= maximumPictureBytes : charset && answer.page.texts[index] === null && each.size <= maximumTextBytes;
    if (isWanted && each.size && asked.length < maximumPictures) {
      asked.push({ index, offset: each.offset, size: each.size, charset: isPicture ? undefined : charset, name: each.filename });
    }
  }
  if (asked.length) send("contents", { wanted: asked.map(({ offset, size }) => ({ offset, size })) });
}

async function showContent(each, blob) {
  if (each.charset) {
    try {
      each.text = new TextDecoder(each.charset, { fatal: true }).decode(await blob.arrayBuffer());
    } catch {
      return;
    }
  } else {
    const start = String.fromCharCode(...new Uint8Array(await blob.slice(0, 16).arrayBuffer()));
    const type = pictures.find(([pattern]) => pattern.test(start))?.[1];
    if (!type) return;
    each.picture = new Blob([blob], { type });
  }
  placeContent(each);
}

function placeContent(each) {
  const place = document.querySelector(`.content[data-part="${each.index}"]`);
  if (!place) return;
  if (each.text !== undefined) place.replaceChildren(element("p", { class: "value" }, each.text));
  if (each.picture) {
    const url = URL.createObjectURL(each.picture);
    const image = element("img", { class: "part-picture", alt: each.name ?? "", src: url });
    for (const name of ["load", "error"]) image.addEventListener(name, () => URL.revokeObjectURL(url));
    image.addEventListener("error", () => image.remove());
    place.replaceChildren(image);
  }
}

// Links: the fragment names a mistake of the gallery, or holds a text.

const pipe = async (data, stream) => new Uint8Array(await new Response(new Blob([data]).stream().pipeThrough(stream)).arrayBuffer());

async function fragment() {
  const packedText = await pipe(JSON.stringify({ text: source.text, type: typeInput.value || undefined, servers: servers() }),
    new CompressionStream("deflate-raw"));
  return `#text=${btoa(String.fromCharCode(...packedText)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

async function copyLink() {
  const link = await fragment();
  const note = byID("link-note");
  if (link.length > maximumLink) return say(note, words("linkTooLong"));
  history.replaceState(null, "", link);
  const shownLink = element("span", {}, location.href);
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    note.replaceChildren(shownLink);
    getSelection().selectAllChildren(shownLink);
    document.execCommand("copy");
  }
  say(note, `${words("copied")}. ${words("linkNote")}`);
}

function clearFragment() {
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
}

async function openFragment() {
  const [, kind, value] = /^#(mistake|text)=(.*)$/.exec(location.hash) ?? [];
  if (kind === "mistake" && Object.hasOwn(mistakes, value)) {
    typeInput.value = "";
    lineFeeds.checked = false;
    chooseServers(mistakes[value].servers ?? []);
    choose({ text: mistakes[value].text });
  } else if (kind === "text") {
    try {
      const bytesOfLink = Uint8Array.from(atob(value.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
      const { text, type, servers: chosen } = JSON.parse(
        new TextDecoder().decode(await pipe(bytesOfLink, new DecompressionStream("deflate-raw"))));
      typeInput.value = typeof type === "string" ? type : "";
      chooseServers(Array.isArray(chosen) ? chosen : []);
      if (typeof text === "string") choose({ text });
    } catch {
      clearFragment();
    }
  }
}

function markMistake() {
  for (const link of document.querySelectorAll("#mistakes a")) {
    link.setAttribute("aria-current", link.getAttribute("href") === location.hash);
  }
}

addEventListener("hashchange", async () => {
  await openFragment();
  // On a small screen the gallery is far from the result.
  byID("state").scrollIntoView({ block: "nearest" });
});

// The language

function chooseLanguage(chosen) {
  speak(chosen);
  try {
    localStorage.setItem("postcard-language", chosen);
  } catch {
    // A page of a file may have no storage.
  }
  document.title = `${words("pageTitle")} · Postcard`;
  for (const each of document.querySelectorAll("[data-words]")) each.textContent = words(each.dataset.words);
  for (const each of document.querySelectorAll("[data-label]")) each.setAttribute("aria-label", words(each.dataset.label));
  for (const button of document.querySelectorAll(".languages button")) {
    button.setAttribute("aria-pressed", button.lang === chosen);
  }
  byID("mistakes").replaceChildren(...Object.keys(mistakes).map((name) => element("li", {},
    element("a", { href: `#mistake=${name}` }, words(`mistake-${name}`)))));
  markMistake();
  if (source?.name) byID("chosen").replaceChildren(chosenRow());
  render();
  asked.forEach(placeContent);
}

function preferredLanguage() {
  const asked = new URLSearchParams(location.search).get("lang");
  let kept;
  try {
    kept = localStorage.getItem("postcard-language");
  } catch {
    kept = undefined;
  }
  const tags = [asked, kept, ...navigator.languages].filter(Boolean).map((tag) => tag.slice(0, 2).toLowerCase());
  return tags.find((tag) => ["en", "ko"].includes(tag)) ?? "en";
}

for (const button of document.querySelectorAll(".languages button")) {
  button.addEventListener("click", () => chooseLanguage(button.lang));
}

document.documentElement.classList.add("has-scripts");
if (typeof WebAssembly === "object" && typeof DecompressionStream === "function") {
  packed = byID("module").textContent.trim();
  start();
} else {
  shown = { kind: "unsupported" };
}
chooseLanguage(preferredLanguage());
openFragment();
