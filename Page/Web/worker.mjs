// Explains in the background, so that the page stays responsive. One job at a time: a new one ends the one before it.

import { instantiate } from "./engine.mjs";

/** A recording that is read whole has to fit into the memory of the module several times. */
const maximumWholeBytes = 64 << 20;
const maximumParts = 200;
/** How many bytes of a fixed request are kept before the browser may move them to its disk. */
const blobBytes = 4 << 20;

let compiled;
let doctor;
let current = 0;
/** What was explained last. */
let last;
let receive = () => {};

async function load(packed) {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  compiled = await WebAssembly.compile(await new Response(unpacked).arrayBuffer());
  await renew();
  postMessage({ kind: "ready", servers: doctor.servers() });
}

async function renew() {
  doctor = await instantiate(compiled, (bytes) => receive(bytes));
}

/** Hands a file on in pieces. Returns whether the job is still wanted at the end. */
async function stream(job, input, handOn, report = () => {}) {
  const step = 4 << 20;
  for (let start = 0; start < input.size; start += step) {
    const piece = await input.slice(start, start + step).arrayBuffer();
    if (job !== current) return false;
    if (handOn(new Uint8Array(piece)) === false) return true;
    report(Math.min(start + step, input.size), input.size);
  }
  return job === current;
}

/** Whether an input is JSON or what a browser copied, which the Doctor reads whole. */
async function isReadWhole(input) {
  const start = await input.slice(0, 4096).text();
  return /^\uFEFF?\s*(\{|\$?\s*curl(\.exe)? |(await )?fetch\()/.test(start);
}

/** What the page shows of an explanation. Of a form with 100,000 parts it shows the first. */
function shown(json) {
  const answer = JSON.parse(json);
  if (answer.error) return answer;
  const roots = answer.problems.filter(({ cause }) => cause === null);
  answer.errors = roots.filter(({ severity }) => severity === "error").length;
  answer.warnings = roots.length - answer.errors + answer.page.omitted;
  answer.parts = answer.parts.slice(0, maximumParts);
  answer.page.texts = answer.page.texts.slice(0, maximumParts);
  delete answer.problems;
  return answer;
}

const jobs = {
  async explain(job, { input, contentType, entry, servers }) {
    last = undefined;
    if (contentType === undefined && input.size > maximumWholeBytes && await isReadWhole(input)) {
      return postMessage({ kind: "answer", job, answer: { error: "too-large", uploads: [] } });
    }
    doctor.choose(servers);
    doctor.begin(contentType, entry);
    const isWanted = await stream(job, input, (bytes) => doctor.read(bytes),
      (read, total) => postMessage({ kind: "progress", job, read, total }));
    if (!isWanted) return;
    const answer = shown(doctor.finish());
    last = { input, entry };
    postMessage({ kind: "answer", job, answer });
  },

  judge(job, { servers }) {
    doctor.choose(servers);
    if (last) postMessage({ kind: "answer", job, answer: shown(doctor.judge()) });
  },

  async fix(job) {
    const blobs = [];
    let pieces = [];
    let count = 0;
    const flush = () => {
      blobs.push(new Blob(pieces));
      [pieces, count] = [[], 0];
    };
    receive = (bytes) => {
      pieces.push(bytes);
      count += bytes.length;
      if (count >= blobBytes) flush();
    };
    if (!last || !doctor.beginFix(last.entry)) return postMessage({ kind: "fixed", job });
    const isWanted = await stream(job, last.input, (bytes) => doctor.readAgain(bytes),
      (read, total) => postMessage({ kind: "progress", job, read, total }));
    if (!isWanted) return;
    const isWhole = doctor.finishAgain();
    flush();
    postMessage({ kind: "fixed", job, fixed: isWhole ? new Blob(blobs) : undefined });
  },

  /** Extracts the contents of parts, which the page shows. */
  async contents(job, { wanted }) {
    const found = wanted.map(() => []);
    const end = Math.max(...wanted.map(({ offset, size }) => offset + size));
    let offset = 0;
    receive = (bytes) => {
      for (const [index, each] of wanted.entries()) {
        const start = Math.max(each.offset - offset, 0);
        const stop = Math.min(each.offset + each.size - offset, bytes.length);
        if (start < stop) found[index].push(bytes.slice(start, stop));
      }
      offset += bytes.length;
    };
    if (!last || !doctor.beginBody(last.entry)) return;
    const isWanted = await stream(job, last.input, (bytes) => {
      doctor.readAgain(bytes);
      return offset < end;
    });
    if (!isWanted) return;
    if (offset < end) doctor.finishAgain();
    postMessage({ kind: "contents", job, contents: found.map((pieces) => new Blob(pieces)) });
  },
};

addEventListener("message", async ({ data }) => {
  current = data.job;
  try {
    if (data.kind === "load") await load(data.packed);
    else await jobs[data.kind]?.(data.job, data);
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) {
      last = undefined;
      await renew();
      postMessage({ kind: "trapped", job: data.job });
    } else {
      postMessage({ kind: data.kind === "load" ? "unsupported" : "unreadable", job: data.job, reason: `${error.message}` });
    }
  }
});
