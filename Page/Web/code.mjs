// Code that sends a form as it should be sent. Every text in it may come from a stranger, and becomes a literal of the language.

/** A text that is a literal of JavaScript, and of Python too: both read the escapes of JSON. */
const literal = (text) => JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\p{Bidi_Control}]/gu,
  (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Swift has other escapes, and `\(` begins an expression there. */
const swiftLiteral = (text) => `"${text.replace(/["\\\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (character) =>
  ({ "\"": "\\\"", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" })[character]
    ?? `\\u{${character.codePointAt(0).toString(16)}}`)}"`;

const isFile = (part) => part.filename !== undefined;
const unknown = "…";

function swift({ url, method, parts }) {
  const lines = parts.map((part) => {
    const type = part.contentType ? `, contentType: ${swiftLiteral(part.contentType)}` : "";
    return isFile(part)
      ? `form.append(fileAt: URL(filePath: ${swiftLiteral(part.filename)}), named: ${swiftLiteral(part.name)}${type})`
      : `form.append(${swiftLiteral(part.text ?? unknown)}, named: ${swiftLiteral(part.name)}${type})`;
  });
  const options = method === "POST" ? "" : `, method: .${method.toLowerCase()}`;
  return ["import Foundation", "import PostcardClient", "", "var form = MultipartForm()", ...lines,
    `let response = try await UploadClient().upload(form, to: URL(string: ${swiftLiteral(url)})!${options})`].join("\n");
}

function javascript({ url, method, parts }) {
  const lines = parts.map((part) => isFile(part)
    ? `form.append(${literal(part.name)}, file, ${literal(part.filename)});`
    : `form.append(${literal(part.name)}, ${literal(part.text ?? unknown)});`);
  const file = parts.find(isFile);
  const chosen = file ? ["const [file] = document.querySelector(\"input[type=file]\").files;"] : [];
  return ["const form = new FormData();", ...chosen, ...lines,
    "// No Content-Type here: fetch writes it, with the boundary.",
    `const response = await fetch(${literal(url)}, { method: ${literal(method)}, body: form });`].join("\n");
}

function python({ url, method, parts }) {
  const lines = parts.map((part) => {
    const type = part.contentType ? `, ${literal(part.contentType)}` : "";
    return isFile(part)
      ? `    (${literal(part.name)}, (${literal(part.filename)}, open(${literal(part.filename)}, "rb")${type})),`
      : `    (${literal(part.name)}, (None, ${literal(part.text ?? unknown)}${type})),`;
  });
  return ["import requests", "", "parts = [", ...lines, "]",
    `response = requests.request(${literal(method)}, ${literal(url)}, files=parts)`].join("\n");
}

/** The code for each language, by its name. */
export function codes(request, curl) {
  const parts = request.parts.map((part) => Object.fromEntries(Object.entries(part).filter(([, value]) => value !== null)));
  const form = { ...request, parts };
  return { Swift: swift(form), JavaScript: javascript(form), Python: python(form), curl };
}
