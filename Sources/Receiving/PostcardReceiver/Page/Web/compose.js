// The page's form: chosen or dropped pictures, text fields, and the progress of each file.

import { bytes, element, message, offer, percent, say, translated, words } from "./elements.js";
import { askForToken, authorization } from "./server.js";

const byID = (id) => document.getElementById(id);
const form = byID("compose");
const input = byID("files");
const outcome = byID("outcome");

/** The files to send, each with its elements in the list. */
let chosen = [];
let request;
/** The last form sent, if it is not known to be stored: its texts, its files, and its key. */
let attempt;

/** Sets up the form. Calls `delivered` with the record of each form that was accepted. */
export function compose({ delivered }) {
  replaceFields();
  byID("add-field").hidden = false;
  byID("add-field").addEventListener("click", () => addField("").querySelector("input").focus());
  input.addEventListener("change", () => {
    add(input.files);
    input.value = "";
  });
  acceptDrops();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!request) send(delivered);
  });
  byID("cancel").addEventListener("click", () => request?.abort());
}

// Fields

/** With scripts, a field's name can be chosen too. */
function replaceFields() {
  const text = byID("message").value;
  byID("fields").replaceChildren();
  addField("message", text);
}

function addField(name, text = "") {
  const field = element("div", { class: "field named" },
    element("input", { class: "field-name", "aria-label": words("fieldName"), placeholder: words("fieldName"), value: name }),
    element("textarea", { class: "field-value", rows: 2, "aria-label": words("fieldValue") }, text),
    element("button", {
      type: "button", class: "remove", "aria-label": words("removeField"), title: words("removeField"),
      onclick: () => {
        field.remove();
        byID("add-field").focus();
      },
    }, "×"));
  byID("fields").append(field);
  return field;
}

const fields = () => [...byID("fields").children]
  .map((field) => ({
    name: field.querySelector("input").value, value: field.querySelector("textarea").value,
  }))
  .filter(({ name, value }) => name !== "" && (value !== "" || name !== "message"));

// Files

function acceptDrops() {
  const drop = byID("drop");
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.classList.add("over");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.classList.remove("over");
    add(event.dataTransfer.files);
  });
}

function add(files) {
  for (const file of files) {
    const entry = { file, bar: element("progress", { max: Math.max(file.size, 1), value: 0, hidden: true, "aria-label": file.name }) };
    entry.state = element("span", { class: "state" }, bytes(file.size));
    entry.row = element("li", { class: "chosen-file" },
      thumbnail(file),
      element("span", { class: "file-name" }, file.name),
      entry.state,
      element("button", {
        type: "button", class: "remove", "aria-label": words("removeFile", { name: file.name }),
        onclick: () => remove(entry),
      }, "×"),
      entry.bar);
    chosen.push(entry);
    byID("chosen").append(entry.row);
  }
  say(outcome, "");
}

function remove(entry) {
  chosen = chosen.filter((other) => other !== entry);
  entry.row.remove();
  input.focus();
}

function thumbnail(file) {
  const kind = element("span", { class: "thumbnail kind", "aria-hidden": "true" }, extension(file.name));
  if (!file.type.startsWith("image/") || file.type === "image/svg+xml") return kind;
  const url = URL.createObjectURL(file);
  const image = element("img", { class: "thumbnail", alt: "", src: url });
  image.addEventListener("load", () => URL.revokeObjectURL(url));
  image.addEventListener("error", () => image.replaceWith(kind));
  return image;
}

export const extension = (name) => (name.match(/\.(\w{1,5})$/)?.[1] ?? "–").toLowerCase();

// Sending

/**
 * The key of the current form, which stays the same until the form changes or is stored. A cancelled request may
 * still have been stored, and browsers repeat requests on their own: for one key, the receiver makes one record.
 */
function key(texts) {
  const files = chosen.map(({ file }) => file);
  const text = JSON.stringify(texts);
  const isSame = attempt?.text === text && attempt.files.length === files.length
    && files.every((file, index) => file === attempt.files[index]);
  if (!isSame) attempt = { text, files, key: newKey() };
  return attempt.key;
}

/** A string of RFC 8941 §3.3.3. Without TLS, away from this machine, there is no crypto.randomUUID. */
function newKey() {
  const digits = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0"));
  return `"${digits.join("")}"`;
}

function send(delivered) {
  const data = new FormData();
  const texts = fields();
  for (const { name, value } of texts) data.append(name, value);
  for (const { file } of chosen) data.append("files", file, file.name);
  setBusy(true);
  request = new XMLHttpRequest();
  // fetch does not report upload progress.
  request.upload.addEventListener("progress", ({ loaded, total }) => show(loaded, total, texts));
  request.upload.addEventListener("load", () => say(outcome, words("storing")));
  request.addEventListener("load", () => answered(request, delivered));
  request.addEventListener("error", () => ended(words("connectionLost"), "bad"));
  request.addEventListener("abort", () => ended(words("cancelled")));
  request.open("POST", offer.uploadPath);
  request.setRequestHeader("Idempotency-Key", key(texts));
  for (const [name, value] of Object.entries(authorization("posting"))) request.setRequestHeader(name, value);
  request.send(data);
}

/** A form is sent part by part, so the number of bytes sent shows which file is being sent. */
function show(loaded, total, texts) {
  const textBytes = new TextEncoder().encode(texts.map(({ value }) => value).join("")).length;
  const fileBytes = chosen.reduce((sum, { file }) => sum + file.size, 0);
  // Headers and delimiters also count in the total. Divide their bytes equally among the parts.
  const perPart = Math.max(total - textBytes - fileBytes, 0) / Math.max(chosen.length + texts.length, 1);
  let offset = textBytes + perPart * texts.length;
  for (const { file, bar, state } of chosen) {
    const sent = Math.min(Math.max(loaded - offset - perPart, 0), file.size);
    bar.value = file.size === 0 ? Number(loaded > offset) : sent;
    const isSent = sent === file.size && loaded > offset;
    state.textContent = isSent ? words("sent") : sent > 0 ? percent(sent / file.size) : bytes(file.size);
    offset += perPart + file.size;
  }
  say(outcome, words("sending", { percent: percent(total ? loaded / total : 0) }));
}

async function answered(response, delivered) {
  let body;
  try {
    body = JSON.parse(response.responseText);
  } catch {
    body = {};
  }
  if (response.status === 201) {
    attempt = undefined;
    for (const { row } of chosen) row.remove();
    chosen = [];
    for (const text of byID("fields").querySelectorAll("textarea")) text.value = "";
    ended("", "good");
    outcome.replaceChildren(offer.canRead ? deliveredLink(body) : words("delivered"));
    return delivered(body);
  }
  ended("");
  if (response.status === 401 && await askForToken("posting")) return send(delivered);
  if (body.code === "idempotency-key-reused") {
    // A chosen file has changed: the key belongs to the form with its earlier content. Retry with a new key.
    attempt = undefined;
    return send(delivered);
  }
  outcome.className = "outcome bad";
  const known = translated(body.code);
  const fix = known?.fix ?? body.fix;
  outcome.replaceChildren(
    element("strong", {}, known ? `${response.status}` : `${response.status} ${body.title ?? ""}`),
    ...message(body.detail ?? "", known),
    fix ? element("p", {}, fix) : "");
}

/** Leads to the record in the list if it is there, and else to its JSON. */
function deliveredLink({ id }) {
  const link = element("a", { href: `/uploads/${id}` }, words("delivered"));
  link.addEventListener("click", (event) => {
    const card = document.querySelector(`.card[data-id="${id}"]`);
    if (!card) return;
    event.preventDefault();
    document.getElementById("received-tab").click();
    card.tabIndex = -1;
    card.scrollIntoView({ block: "center" });
    card.focus();
  });
  return link;
}

function ended(text, kind) {
  request = undefined;
  setBusy(false);
  say(outcome, text, kind);
}

function setBusy(isBusy) {
  form.classList.toggle("busy", isBusy);
  byID("send").disabled = isBusy;
  byID("cancel").hidden = !isBusy;
  for (const { bar, file, state } of chosen) {
    bar.hidden = !isBusy;
    bar.value = 0;
    if (!isBusy) state.textContent = bytes(file.size);
  }
  for (const button of form.querySelectorAll(".remove")) button.disabled = isBusy;
}
