// The book as one PDF with numbered pages and a table of contents, printed by Chromium:
//     node docs/weave/print.mjs FOLDER FILE.pdf        FOLDER holds print.html
//
// The time to print grows faster than the number of pages, so some sections are printed at a time,
// the others being hidden. Each print says on which page each heading is; then the contents are
// printed, and the files joined.
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { launch } from './browser.mjs'

const [folder, file] = process.argv.slice(2)
const browser = await launch()
const { evaluate, send } = browser
await browser.open(pathToFileURL(resolve(join(folder, 'print.html'))).href)
await evaluate('document.fonts.ready.then(() => 0)')
const sizes = await evaluate(`(() => {
    document.head.append(Object.assign(document.createElement('style'), { id: 'part' }))
    return [...document.querySelectorAll('main > section')].map((e) => e.innerHTML.length)
})()`)

// ---- what Chromium writes: objects, of which the catalogue names pages and destinations ----
function parse(pdf) {
    const text = pdf.toString('latin1')
    const table = Number(/startxref\n(\d+)\s*%%EOF\s*$/.exec(text)[1])
    const offsets = [...text.slice(table).matchAll(/\n(\d{10}) 00000 n/g)].map((m) => Number(m[1]))
    const ends = [...offsets, table].sort((a, b) => a - b)
    const objects = new Map()
    for (const from of offsets) {
        const [head, id] = /^(\d+) 0 obj\n/.exec(text.slice(from, from + 30))
        const body = text.slice(from + head.length, ends[ends.indexOf(from) + 1])
        objects.set(Number(id), body.slice(0, body.lastIndexOf('endobj')))
    }
    const catalog = Number(/\/Root (\d+) 0 R/.exec(text.slice(table))[1])
    const info = Number(/\/Info (\d+) 0 R/.exec(text.slice(table))[1])
    const named = (key) => Number(new RegExp(`/${key} (\\d+) 0 R`).exec(objects.get(catalog))?.[1])
    const [root, dests] = [named('Pages'), named('Dests')]
    const pages = []
    const walk = (id) => {
        const kids = /^<<\/Type \/Pages[^]*\/Kids \[([^\]]*)\]/.exec(objects.get(id))
        if (!kids) pages.push(id)
        else for (const [, kid] of kids[1].matchAll(/(\d+) 0 R/g)) walk(Number(kid))
    }
    walk(root)
    const found = [...(objects.get(dests) ?? '').matchAll(/\/(\S+) \[(\d+) 0 R ([^\]]*)\]/g)]
        .map(([, name, page, where]) => ({ name, page: Number(page), where }))
    for (const id of [catalog, info, dests]) objects.delete(id)
    return { objects, root, pages, found }
}

// Some sections, whose first page has this number.
async function print(from, to, number) {
    await evaluate(`document.getElementById('part').textContent = \`
        main > section { display: none }
        main > section:nth-child(n+${from + 1}):nth-child(-n+${to}) { display: block }
        main > section:nth-child(${from + 1}) { break-before: auto !important }
        html { counter-reset: page ${number - 1} }
        ${from ? '@page :first { @bottom-center { content: counter(page) } }' : ''}\``)
    const { stream } = await send('Page.printToPDF', {
        preferCSSPageSize: true, printBackground: true, generateTaggedPDF: false,
        transferMode: 'ReturnAsStream',
    })
    const chunks = []
    for (let eof = false; !eof; ) {
        const part = await send('IO.read', { handle: stream, size: 1 << 22 })
        chunks.push(Buffer.from(part.data, part.base64Encoded ? 'base64' : 'latin1'))
        eof = part.eof
    }
    await send('IO.close', { handle: stream })
    return parse(Buffer.concat(chunks))
}

function joined(parts) {
    let last = 2 // 1: the catalogue, 2: all pages
    const objects = []
    const dests = []
    const roots = []
    for (const { objects: own, root, found } of parts) {
        const base = last
        const moved = (text) => text.replace(/\b(\d+) 0 R\b/g, (all, id) => `${+id + base} 0 R`)
        for (const [id, body] of own) {
            const at = body.search(/\bstream\r?\n/) // what follows is data
            let text = at < 0 ? moved(body) : moved(body.slice(0, at)) + body.slice(at)
            if (id === root) text = text.replace('/Type /Pages', '/Type /Pages\n/Parent 2 0 R')
            objects.push([id + base, text])
            last = Math.max(last, id + base)
        }
        roots.push(root + base)
        for (const { name, page, where } of found)
            dests.push(`/${name} [${page + base} 0 R ${where}]`)
    }
    const count = parts.reduce((sum, p) => sum + p.pages.length, 0)
    const kids = roots.map((id) => `${id} 0 R`).join(' ')
    objects.push([1, `<</Type /Catalog\n/Pages 2 0 R\n/Dests ${last + 1} 0 R>>\n`])
    objects.push([2, `<</Type /Pages\n/Count ${count}\n/Kids [${kids}]>>\n`])
    objects.push([last + 1, `<<${dests.join('\n')}>>\n`])
    objects.push([last + 2, '<</Title (normlayers.h)>>\n'])
    objects.sort((a, b) => a[0] - b[0])
    const pieces = ['%PDF-1.4\n%\xd3\xeb\xe9\xe1\n']
    let at = pieces[0].length
    const offset = new Map()
    for (const [id, body] of objects) {
        const piece = `${id} 0 obj\n${body}endobj\n`
        offset.set(id, at)
        at += piece.length
        pieces.push(piece)
    }
    const size = last + 3
    pieces.push(`xref\n0 ${size}\n0000000000 65535 f \n`)
    for (let id = 1; id < size; id++) {
        const where = String(offset.get(id) ?? 0).padStart(10, '0')
        pieces.push(offset.has(id) ? `${where} 00000 n \n` : '0000000000 00001 f \n')
    }
    pieces.push(`trailer\n<</Size ${size}\n/Root 1 0 R\n/Info ${last + 2} 0 R>>\n`)
    pieces.push(`startxref\n${at}\n%%EOF\n`)
    return Buffer.from(pieces.join(''), 'latin1')
}

// ---- cover and contents, to know their length; the others; the contents with their numbers ----
const OPENING = 2
let next = (await print(0, OPENING, 1)).pages.length + 1
const length = next - 1
const parts = []
const numbers = {}
for (let from = OPENING; from < sizes.length; ) {
    let to = from
    let size = 0
    while (to < sizes.length && (to === from || size + sizes[to] < 600000)) size += sizes[to++]
    const part = await print(from, to, next)
    for (const { name, page } of part.found) {
        const id = name.replace(/#([0-9A-Fa-f]{2})/g, (all, h) => String.fromCharCode(`0x${h}`))
        numbers[Buffer.from(id, 'latin1').toString()] = next + part.pages.indexOf(page)
    }
    next += part.pages.length
    parts.push(part)
    from = to
}
const missing = await evaluate(`(() => {
    const numbers = ${JSON.stringify(numbers)}
    return [...document.querySelectorAll('.toc .page')].map((e) => {
        const id = decodeURIComponent(e.getAttribute('href').slice(1))
        const n = numbers[id] ?? numbers[encodeURIComponent(id)]
        e.textContent = n ?? ''
        return n ? null : id
    }).filter(Boolean)
})()`)
const opening = await print(0, OPENING, 1)
await browser.close()
if (missing.length || opening.pages.length !== length) {
    console.error(`print: the contents have ${opening.pages.length} pages, not ${length}; ` +
        `${missing.length} headings are on no page: ${missing.slice(0, 3)}`)
    process.exit(1)
}
const pdf = joined([opening, ...parts])
writeFileSync(file, pdf)
console.log(`print: ${file}, ${next - 1} pages, ${(pdf.length / 1e6).toFixed(1)} MB`)
