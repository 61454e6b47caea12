// Shows received bytes as text and as numbers.

import { element } from "./elements.js";

export const decoded = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

/** Bytes as text, with visible line breaks. Wrong line breaks are marked. */
export function snippet({ offset, base64 }, place, length) {
  const all = decoded(base64);
  const start = Math.min(Math.max(place - offset, 0), all.length);
  const end = Math.min(start + Math.max(length, 1), all.length);
  const marked = start < all.length ? visible(all.subarray(start, end)) : [" "];
  return element("pre", { class: "snippet excerpt", tabindex: 0 },
    visible(all.subarray(0, start)), element("mark", {}, marked), visible(all.subarray(end)));
}

/** Splits bytes into text and an escape for each byte that is not text. */
function visible(all) {
  const pieces = [];
  let text = "";
  const escape = (name, breaks = "") => {
    pieces.push(text, element("span", { class: "escape" }, name), breaks);
    text = "";
  };
  for (let index = 0; index < all.length;) {
    const byte = all[index];
    const width = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    const character = width > 1 ? wide(all.subarray(index, index + width)) : undefined;
    if (character) text += character;
    else if (byte >= 0x20 && byte < 0x7f) text += String.fromCharCode(byte);
    else if (byte === 10) escape("\\n", "\n");
    else escape({ 9: "\\t", 13: "\\r" }[byte] ?? `\\x${byte.toString(16).padStart(2, "0")}`);
    index += character ? width : 1;
  }
  return [...pieces, text];
}

function wide(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    // Characters that change the text direction could hide other characters.
    return /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

const maximumRows = 64;

/** Bytes as numbers and characters, in rows as wide as the page allows. */
export function hexadecimal({ offset, base64 }, fromEnd = false) {
  const width = matchMedia("(min-width: 48rem)").matches ? 16 : 8;
  const all = decoded(base64);
  const rows = [];
  for (let index = 0; index < all.length; index += width) {
    const row = [...all.subarray(index, index + width)];
    const numbers = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(width * 3 - 1);
    const characters = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
    rows.push(`${String(offset + index).padStart(7)}  ${numbers}  ${characters}`);
  }
  const shown = fromEnd ? rows.slice(-maximumRows) : rows.slice(0, maximumRows);
  return element("pre", { class: "snippet", tabindex: 0 }, shown.join("\n"));
}
