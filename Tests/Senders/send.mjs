// Sends the form in FORM.json with Node's fetch: node send.mjs FORM.json URL
import { readFile } from "node:fs/promises"

const [path, url] = process.argv.slice(2)
const sent = JSON.parse(await readFile(path, "utf8"))
const form = new FormData()
for (const [name, value] of sent.fields) form.append(name, value)
for (const file of sent.files) {
    form.append(file.name, new Blob([await readFile(file.path)], { type: file.type }), file.filename)
}
const response = await fetch(url, { method: "POST", body: form })
console.log(await response.text())
