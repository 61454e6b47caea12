// The functions of the module, for the page's worker and for tests in Node.

/** How many bytes the module reads at a time. */
export const pieceBytes = 1 << 20;

/** A fresh instance of the compiled module. `write` gets the bytes that a second reading makes. */
export async function instantiate(compiled, write) {
  let memory;
  const bytes = (pointer, count) => new Uint8Array(memory.buffer, pointer >>> 0, count);
  const text = (pointer, count) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes(pointer, count));
  const { exports } = await WebAssembly.instantiate(compiled, {
    page: {
      secondsNow: () => Date.now() / 1000,
      number: (pointer, count) => Number(text(pointer, count)),
      write: (pointer, count) => write(bytes(pointer, count).slice()),
    },
  });
  memory = exports.memory;
  const buffer = exports.allocate(pieceBytes);

  /** Calls a function of the module with bytes, a piece at a time. */
  const pass = (content, call) => {
    for (let start = 0; start < content.length; start += pieceBytes) {
      const piece = content.subarray(start, start + pieceBytes);
      bytes(buffer, piece.length).set(piece);
      call(buffer, piece.length);
    }
  };
  const passText = (value, call) => {
    const content = new TextEncoder().encode(value);
    const place = exports.allocate(content.length || 1);
    bytes(place, content.length).set(content);
    const result = call(place, content.length);
    exports.deallocate(place);
    return result;
  };
  const answer = (count) => {
    const place = exports.allocate(count || 1);
    exports.takeAnswer(place);
    const json = text(place, count);
    exports.deallocate(place);
    return json;
  };

  return {
    /** Begins a request, or with a Content-Type a body. Of several requests, `entry` counts from 1; 0 is no choice. */
    begin(contentType, entry = 0) {
      passText(contentType ?? "", (place, count) => exports.begin(contentType === undefined ? 0 : 1, place, count, entry));
    },
    read: (content) => pass(content, exports.read),
    /** Ends the input, and returns the explanation as JSON. */
    finish: () => answer(exports.finish()),
    choose: (servers) => passText(servers.join(","), exports.setServers),
    /** The explanation of the same input, with what the chosen servers refuse. */
    judge: () => answer(exports.judge()),
    servers: () => JSON.parse(answer(exports.listServers())),
    /** Begins to fix the same input. Returns whether anything can be fixed for certain. */
    beginFix: (entry = 0) => exports.beginFix(entry) === 1,
    /** Begins to extract the body of the same input. */
    beginBody: (entry = 0) => exports.beginBody(entry) === 1,
    readAgain: (content) => pass(content, exports.readAgain),
    finishAgain: () => exports.finishAgain() === 1,
  };
}
