// Posts random forms to the page's own receiver, and compares its records with what the forms were given.
//
// Left out of names is what no receiver can tell from something else, because browsers escape neither `%` nor `\`:
// `%22`, `%0D`, `%0A`, two backslashes in a row, and a path before a filename. A NUL and an empty name are refused.
async (count, seed) => {
  let state = seed >>> 0;
  // Mulberry32.
  const random = (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) % below;
  };
  const choose = (list) => list[random(list.length)];

  const pieces = [
    "\\", "\\", "\\", '"', '"', "%", "%2", "25", "%20", ";", "; ", "=", '="', "; filename=", "'", ":", ",", "--", " ",
    "\t", "\r", "\n", "\r\n", "\n\r", "a", "b.jpg", "[0]", "{", "\u0001", "\u007f", "\u0085", "\u2028", "\ufeff", "é",
    "e\u0301", "초코", "🐶", "\ud83d", "\udc36", "name", "form-data",
  ];
  const some = (most) => Array.from({ length: random(most + 1) }, () => choose(pieces)).join("");
  const ending = () => (random(4) ? "" : "\\");
  const isAmbiguous = (name) => !name || /\\\\|%22|%0[ad]/i.test(name);
  const name = () => {
    for (;;) {
      const made = some(8) + ending();
      if (!isAmbiguous(made)) return made;
    }
  };
  const filename = () => {
    for (;;) {
      const made = some(8) + choose(["", ".jpg", ".txt"]) + ending();
      if (!isAmbiguous(made) && !/\\./su.test(made)) return made;
    }
  };
  const texts = [...pieces, "\0", "\r\n--", "------WebKitFormBoundary"];
  const text = () => Array.from({ length: random(6) }, () => choose(texts)).join("");
  const bytes = () => {
    const made = new Uint8Array(choose([0, 1, 2, 10, 100, 3000]));
    for (let index = 0; index < made.length; index += 1) made[index] = random(4) ? random(256) : choose([13, 10, 45]);
    return made;
  };
  const types = ["", "image/png", "IMAGE/JPEG", "text/plain;charset=utf-8", "application/x.y+z"];

  const withLineBreaks = (text) => text.toWellFormed().replace(/\r\n?|\n/g, "\r\n");
  const hexadecimal = (digest) => [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

  let backslashes = 0;
  const make = () => {
    const form = new FormData(), fields = [], files = [];
    for (let part = 1 + random(5); part > 0; part -= 1) {
      const named = name();
      backslashes += named.endsWith("\\");
      if (random(2)) {
        const value = text();
        form.append(named, value);
        fields.push({ name: withLineBreaks(named), value: withLineBreaks(value) });
      } else {
        const content = bytes(), blob = new Blob([content], { type: choose(types) }), called = filename();
        backslashes += called.endsWith("\\");
        form.append(named, blob, called);
        files.push({
          name: withLineBreaks(named), filename: called.toWellFormed(), content,
          contentType: blob.type || "application/octet-stream",
        });
      }
    }
    return { form, fields, files };
  };

  const wrong = [];
  let posted = 0;
  const post = async ({ form, fields, files }) => {
    const response = await fetch("/uploads", { method: "POST", body: form });
    const received = await response.text();
    const given = { fields, files: [] };
    for (const { content, ...file } of files) {
      given.files.push({ ...file, sha256: hexadecimal(await crypto.subtle.digest("SHA-256", content)) });
    }
    if (response.status !== 201) return wrong.push({ status: response.status, received, given });
    const record = JSON.parse(received);
    const stored = {
      fields: record.fields.map(({ name, value }) => ({ name, value })),
      files: record.files.map(({ name, filename, contentType, sha256 }) => ({ name, filename, contentType, sha256 })),
    };
    if (JSON.stringify(stored) !== JSON.stringify(given)) wrong.push({ stored, given });
    else posted += 1;
  };

  // As many at a time as the browser has connections.
  const forms = Array.from({ length: count }, make);
  const work = async () => {
    for (let next = forms.pop(); next && wrong.length < 5; next = forms.pop()) await post(next);
  };
  await Promise.all(Array.from({ length: 6 }, work));
  return { posted, backslashes, wrong };
}
