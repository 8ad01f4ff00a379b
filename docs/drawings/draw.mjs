// Draws the SVGs of this folder.
//
//     node docs/drawings/draw.mjs           writes them
//     node docs/drawings/draw.mjs --check   compares: fails if a file is not what this writes
//
// Either refuses a drawing in which a text touches another one or leaves the frame.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as layers from './layers.mjs'
import * as network from './network.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const check = process.argv.includes('--check')
let bytes = 0
let failed = 0
const fail = (what) => {
    console.error(`drawings: ${what}`)
    failed++
}
const names = []
for (const draw of Object.values({ ...layers, ...network })) {
    const drawing = draw()
    const { svg, problems } = drawing.svg()
    const path = join(here, `${drawing.name}.svg`)
    for (const what of problems) fail(`${drawing.name}.svg: ${what}`)
    names.push(`${drawing.name}.svg`)
    bytes += Buffer.byteLength(svg)
    if (!check) writeFileSync(path, svg)
    else {
        let old = ''
        try { old = readFileSync(path, 'utf8') } catch { /* named below */ }
        if (old !== svg) fail(`${drawing.name}.svg is not what draw.mjs draws: make drawings`)
    }
}
for (const file of readdirSync(here))
    if (file.endsWith('.svg') && !names.includes(file)) fail(`nothing draws ${file}`)
if (bytes > 300000) fail(`${bytes} bytes in all, more than 300,000`)
console.log(`drawings: ${names.length} SVGs, ${bytes} bytes`)
console.log(`drawings: ${names.length - Math.min(failed, names.length)} passed, ${failed} failed`)
process.exit(failed ? 1 : 0)
