// Explains files with the module, for tests: node Page/explain.mjs MODULE, with a line of JSON for each request on standard
// input: {"file", "contentType", "entry", "fixed"}. "fixed" names a file for the fixed request.
import fs from 'node:fs';

const compiled = await WebAssembly.compile(fs.readFileSync(process.argv[2]));
const pieceBytes = 65536;

async function load() {
  let memory;
  let output = [];
  const bytes = (pointer, count) => Buffer.from(new Uint8Array(memory.buffer, pointer, count).slice());
  const {exports} = await WebAssembly.instantiate(compiled, {
    page: {
      secondsNow: () => Date.now() / 1000,
      number: (pointer, count) => Number(bytes(pointer, count).toString()),
      write: (pointer, count) => output.push(bytes(pointer, count)),
    },
  });
  memory = exports.memory;
  const withBytes = (content, body) => {
    const place = exports.allocate(content.length || 1);
    new Uint8Array(memory.buffer, place, content.length).set(content);
    body(place, content.length);
    exports.deallocate(place);
  };
  const pieces = (input, body) => {
    for (let start = 0; start < input.length; start += pieceBytes) withBytes(input.subarray(start, start + pieceBytes), body);
  };
  return {
    explain(input, contentType, entry) {
      withBytes(Buffer.from(contentType ?? ''), (place, count) =>
        exports.begin(contentType === undefined ? 0 : 1, place, count, entry ?? 0));
      pieces(input, exports.read);
      const count = exports.finish();
      const place = exports.allocate(count || 1);
      exports.takeAnswer(place);
      const answer = bytes(place, count).toString();
      exports.deallocate(place);
      return answer;
    },
    fix(input, entry) {
      output = [];
      if (!exports.beginFix(entry ?? 0)) return null;
      pieces(input, exports.fix);
      return exports.finishFix() ? Buffer.concat(output) : null;
    },
  };
}

let doctor = await load();
for (const line of fs.readFileSync(0, 'utf8').split('\n')) {
  if (!line) continue;
  const request = JSON.parse(line);
  try {
    const input = fs.readFileSync(request.file);
    console.log(doctor.explain(input, request.contentType, request.entry));
    const fixed = request.fixed && doctor.fix(input, request.entry);
    if (fixed) fs.writeFileSync(request.fixed, fixed);
  } catch (error) {
    console.log(JSON.stringify({trap: String(error)}));
    doctor = await load();
  }
}
