// Puts style, program and WebAssembly into one page: node build.mjs FOLDER, which holds
// explore.wasm and fingerprint.txt and gets explore.html.
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const folder = process.argv[2]
const read = (name) => readFileSync(join(here, name), 'utf8')
// Comments of whole lines and indentation stay here.
const lean = (text) => text.replace(/^\s*\/\/.*\n/gm, '').replace(/^ +/gm, '')
const parts = {
    CSS: lean(read('explore.css')),
    JS: lean(read('explore.js')),
    WASM: readFileSync(join(folder, 'explore.wasm')).toString('base64'),
    FINGERPRINT: readFileSync(join(folder, 'fingerprint.txt'), 'utf8').trim(),
}
const page = read('explore.html').replace(/\/\*([A-Z]+)\*\//g, (all, name) => parts[name] ?? all)
writeFileSync(join(folder, 'explore.html'), page)
const bytes = Buffer.byteLength(page)
console.log(`explore: ${folder}/explore.html, ${bytes} bytes, of which ${parts.WASM.length} are ` +
    `the header; fingerprint ${parts.FINGERPRINT}`)
if (bytes > 120000) {
    console.error('explore: more than 120,000 bytes')
    process.exit(1)
}
