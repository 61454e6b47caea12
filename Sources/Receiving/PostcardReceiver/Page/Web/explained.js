// Shows the problems of a request as elements, for the receiver's page and for the Doctor's own page.

import { bytes, count, element, message, offer, translated, words } from "./elements.js";
import { snippet } from "./bytes.js";

export const section = (name, ...children) => element("section", {}, element("h3", {}, words(name)), ...children);

export function fieldList(fields) {
  return element("dl", { class: "header-fields" },
    fields.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

/** A problem, with the bytes around it, why servers care and what to write instead. */
export function problem(each) {
  const place = [
    each.part === undefined ? null : words("inPart", { part: each.part }),
    each.offset === undefined
      ? null : words(each.place === "head" ? "atHeadByte" : "atByte", { offset: count(each.offset) }),
  ].filter(Boolean).join(", ");
  const known = each.translation ?? translated(each.code);
  const [fix, reason] = [known?.fix ?? each.fix, known?.cause ?? each.reason];
  return element("div", { class: `problem ${each.severity}`, "data-code": each.code },
    message(each.message, known, "h4"),
    element("p", { class: "note" }, element("span", { class: "code" }, each.code), place ? ` · ${place}` : null),
    each.around ? snippet(each.around, each.offset, each.length) : null,
    fix ? element("p", { class: "fix" }, element("b", {}, words("fix")), fix) : null,
    reason ? element("p", { class: "note" }, reason) : null,
    each.swift ? element("pre", { class: "line" }, each.swift) : null,
    folded(each).map((line) => element("p", { class: "note" }, line)));
}

/** Repetitions and consequences of a problem, one line for each kind. */
function folded({ count: total, also, consequences, otherConsequences }) {
  return [
    total > 1 ? words("alsoAt", { places: places(also, total - 1) }) : null,
    ...consequences.map((each) => words("thenAt", {
      message: translated(each.code)?.title ?? each.message, code: each.code, places: places(each.places, each.count),
    })),
    otherConsequences ? words("moreFollow", { count: count(otherConsequences) }) : null,
  ].filter(Boolean);
}

function places(shown, total) {
  const list = shown.map(({ offset, part }) =>
    count(offset) + (part === undefined ? "" : ` (${words("inPart", { part })})`)).join(", ");
  return total > shown.length
    ? words("bytesAndMore", { places: list, count: count(total - shown.length) })
    : words("bytes", { places: list, total });
}

/** A part of the form, with what is shown of its content. */
export function part(each, ...content) {
  const place = each.size
    ? words("partPlace", {
      start: count(each.offset), end: count(each.offset + each.size - 1), size: bytes(each.size),
    })
    : words("partEmpty", { start: count(each.offset) });
  return element("li", {},
    element("h4", {}, each.name, each.filename === undefined ? null : element("span", { class: "file-name" }, each.filename),
      element("span", { class: "state" }, place)),
    each.text ? element("p", { class: "value" }, each.text) : null,
    content,
    fieldList(each.headers));
}

/** A line to copy. */
export function command(line, name, note) {
  const button = element("button", { class: "copy", "data-action": name }, words(name));
  const code = element("code", {}, line);
  button.addEventListener("click", async () => {
    await copy(line, code);
    button.textContent = words("copied");
    button.addEventListener("blur", () => { button.textContent = words(name); }, { once: true });
  });
  return element("div", { class: "command" },
    element("pre", { class: "line", tabindex: 0 }, code),
    element("div", { class: "actions" }, button, note ? element("span", { class: "note" }, words(note)) : null));
}

/** A first form to send, for a page that has none yet. */
export const example = () => command(`curl -F files=@cat.jpg ${location.origin}${offer.uploadPath}`, "copy");

/** Without TLS, only a page from this machine may write to the clipboard. */
async function copy(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(shown);
    document.execCommand("copy");
  }
}
