// The book as one PDF with numbered pages and a table of contents, printed by Chromium:
//     node docs/weave/print.mjs FOLDER FILE.pdf        FOLDER holds print.html
//
// Printed twice: the first time, with all of it invisible, which is quick, says on which page each
// heading is; the second has the numbers.
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { launch } from './browser.mjs'

const [folder, file] = process.argv.slice(2)
const browser = await launch()
await browser.open(pathToFileURL(resolve(join(folder, 'print.html'))).href)
await browser.evaluate('document.fonts.ready.then(() => 0)')

async function print() {
    const { stream } = await browser.send('Page.printToPDF', {
        preferCSSPageSize: true, printBackground: true, generateTaggedPDF: false,
        transferMode: 'ReturnAsStream',
    })
    const chunks = []
    for (let eof = false; !eof; ) {
        const part = await browser.send('IO.read', { handle: stream, size: 1 << 22 })
        chunks.push(Buffer.from(part.data, part.base64Encoded ? 'base64' : 'latin1'))
        eof = part.eof
    }
    await browser.send('IO.close', { handle: stream })
    return Buffer.concat(chunks)
}

// Where each anchor is: the file's destinations name objects that are pages, the page tree has
// their order.
function pagesOf(pdf) {
    const text = pdf.toString('latin1')
    const tree = new Map()
    for (const m of text.matchAll(/\n(\d+) 0 obj\n<<\/Type \/Pages\n([^]*?)>>/g))
        tree.set(m[1], [.../\/Kids \[([^\]]*)\]/.exec(m[2])[1].matchAll(/(\d+) 0 R/g)])
    const order = new Map()
    const walk = (id) => {
        if (tree.has(id)) for (const kid of tree.get(id)) walk(kid[1])
        else order.set(id, order.size + 1)
    }
    walk(/\/Type \/Catalog\n\/Pages (\d+) 0 R/.exec(text)[1])
    const found = {}
    for (const m of text.matchAll(/\/(\S+) \[(\d+) 0 R \/XYZ/g)) {
        const name = m[1].replace(/#([0-9a-fA-F]{2})/g, (all, hex) =>
            String.fromCharCode(parseInt(hex, 16)))
        found[Buffer.from(name, 'latin1').toString()] = order.get(m[2])
    }
    return { found, count: order.size }
}

await browser.evaluate(`(() => {
    const style = document.createElement('style')
    style.id = 'invisible'
    style.textContent = 'main * { visibility: hidden !important }'
    document.head.append(style)
})()`)
const first = pagesOf(await print())
const missing = await browser.evaluate(`(() => {
    document.getElementById('invisible').remove()
    const found = ${JSON.stringify(first.found)}
    return [...document.querySelectorAll('.toc .page')].map((e) => {
        const id = decodeURIComponent(e.getAttribute('href').slice(1))
        const n = found[id] ?? found[encodeURIComponent(id)]
        e.textContent = n ?? ''
        return n ? null : id
    }).filter(Boolean)
})()`)
const pdf = await print()
await browser.close()
const second = pagesOf(pdf)
const moved = Object.keys(first.found).filter((id) => first.found[id] !== second.found[id])
if (missing.length || moved.length || !second.count) {
    console.error(`print: ${missing.length} headings without a page (${missing.slice(0, 3)}), ` +
        `${moved.length} on another page than the contents say (${moved.slice(0, 3)})`)
    process.exit(1)
}
writeFileSync(file, pdf)
console.log(`print: ${file}, ${second.count} pages, ${(pdf.length / 1e6).toFixed(1)} MB`)
