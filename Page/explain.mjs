// Explains files with the module, for tests: node Page/explain.mjs MODULE, with a line of JSON for each request on standard
// input: {"file", "contentType", "entry", "servers", "fixed"}. "fixed" names a file for the fixed request.
import fs from 'node:fs';
import readline from 'node:readline';
import {instantiate} from './Web/engine.mjs';

const compiled = await WebAssembly.compile(fs.readFileSync(process.argv[2]));
let written = [];
const load = () => instantiate(compiled, (bytes) => written.push(bytes));
let doctor = await load();
for await (const line of readline.createInterface({input: process.stdin})) {
  const {file, contentType, entry, servers, fixed} = JSON.parse(line);
  try {
    const input = fs.readFileSync(file);
    doctor.choose(servers ?? []);
    doctor.begin(contentType, entry);
    doctor.read(input);
    console.log(doctor.finish());
    written = [];
    if (fixed && doctor.beginFix(entry)) {
      doctor.readAgain(input);
      if (doctor.finishAgain()) fs.writeFileSync(fixed, Buffer.concat(written));
    }
  } catch (error) {
    console.log(JSON.stringify({trap: String(error)}));
    doctor = await load();
  }
}
