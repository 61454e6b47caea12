// The classic mistakes: a request for each, as it would be on the wire.

const crlf = (...lines) => lines.join("\r\n");
const byteCount = (text) => new TextEncoder().encode(text).length;

/** A request with a body of these lines. */
function request(type, body, { path = "/pets", length = byteCount(body), fields = [] } = {}) {
  return crlf(`POST ${path} HTTP/1.1`, "Host: example.com", ...fields, `Content-Type: ${type}`, `Content-Length: ${length}`,
    "", body);
}

const form = "multipart/form-data; boundary=PetDiary";
const name = "Content-Disposition: form-data; name=\"name\"";
const photo = "Content-Disposition: form-data; name=\"photo\"; filename=\"cat.png\"";
const good = crlf("--PetDiary", name, "", "초코", "--PetDiary--", "");
/** The signature of a PNG, as bytes that are read as UTF-8 become: what is no character is U+FFFD. */
const decodedPicture = "\uFFFDPNG\r\n\u001A\n\0\0\0\rIHDR\0\0\0\u0001\0\0\0\u0001\b\u0006\0\0\0\u001F\u0015\uFFFD\uFFFD\0\0\0\rIDATx\uFFFDc\uFFFD\uFFFD\uFFFD\u000F\0\u0003\u0003\u0002\0\uFFFD\uFFFD\uFFFD\uFFFD\0\0\0\0IEND\uFFFDB`\uFFFD";
const file = (field, filename) =>
  [`Content-Disposition: form-data; name="${field}"; filename="${filename}"`, "Content-Type: text/plain", "", `This is ${filename}.`];

export const mistakes = {
  "boundary": { text: request("multipart/form-data; boundary=PetDiary2", good) },
  "no-boundary": { text: request("multipart/form-data", good) },
  "line-feeds": { text: request(form, good.replaceAll("\r\n", "\n")) },
  "not-closed": { text: request(form, good.replace("--PetDiary--", "--PetDiary")) },
  "no-name": {
    text: request(form, crlf("--PetDiary", "Content-Disposition: form-data; filename=\"notes.txt\"", "", "Chocolate", "--PetDiary--", "")),
  },
  "no-dashes": { text: request(form, good.replaceAll("--PetDiary", "PetDiary")) },
  "blank-line": { text: request(form, crlf("--PetDiary", name, "Choco likes the sea.", "--PetDiary--", "")) },
  "length": { text: request(form, good, { length: good.length }) },
  "json": { text: request(form, "{\"name\":\"초코\",\"photo\":\"cat.png\"}") },
  "decoded": {
    text: request(form, crlf("--PetDiary", photo, "Content-Type: image/png", "", decodedPicture, "--PetDiary--", "")),
  },
  "php": {
    text: request(form, crlf("--PetDiary", ...file("files", "one.txt"), "--PetDiary", ...file("files", "two.txt"), "--PetDiary--", "")),
    servers: ["php"],
  },
  "s3": {
    text: request(form, crlf("--PetDiary", "Content-Disposition: form-data; name=\"key\"", "", "pets/one.txt", "--PetDiary",
      ...file("file", "one.txt"), "--PetDiary", "Content-Disposition: form-data; name=\"acl\"", "", "private", "--PetDiary--", ""),
    { path: "/" }),
    servers: ["s3"],
  },
};
