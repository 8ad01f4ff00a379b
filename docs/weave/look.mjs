// Looks at the woven book with a browser: that no page is wider than its window, and pictures of
// some pages for the eye. Needs Chromium (CHROMIUM names it), which it drives through a pipe.
//
//     node docs/weave/look.mjs FOLDER [PICTURES]     FOLDER holds book.html and book/
//
// Formulas, tables and listings may scroll inside their own boxes; the document may not.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, pictures] = process.argv.slice(2)
const book = resolve(folder ?? 'docs')
const pages = [
    'book.html',
    ...readdirSync(join(book, 'book'))
        .filter((f) => f.endsWith('.html'))
        .sort()
        .map((f) => `book/${f}`),
]
const WIDTHS = [390, 1280]
const SHOWN = [
    'book.html',
    'book/01_batch_norm.html',
    'book/02_layer_norm.html',
    'book/experiment_16_landscape.html',
    'book/verdicts.html',
    'book/header_01.html',
    'book/header_opening.html',
]

const browser = spawn(
    process.env.CHROMIUM ?? 'chromium',
    ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--remote-debugging-pipe'],
    { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
)
browser.on('error', (error) => {
    console.error(`look: ${error.message}`)
    process.exit(1)
})
const waiting = new Map()
const events = new Map()
let last = 0
let buffer = ''
browser.stdio[4].on('data', (data) => {
    buffer += data
    for (let at; (at = buffer.indexOf('\0')) >= 0; buffer = buffer.slice(at + 1)) {
        const message = JSON.parse(buffer.slice(0, at))
        if (message.id) {
            const { done, failed } = waiting.get(message.id)
            waiting.delete(message.id)
            if (message.error) failed(new Error(message.error.message))
            else done(message.result)
        } else {
            events.get(message.method)?.(message.params)
            events.delete(message.method)
        }
    }
})
let sessionId
const send = (method, params = {}) =>
    new Promise((done, failed) => {
        const id = ++last
        waiting.set(id, { done, failed })
        browser.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`)
    })
const event = (method) => new Promise((done) => events.set(method, done))

const { targetId } = await send('Target.createTarget', { url: 'about:blank' })
sessionId = (await send('Target.attachToTarget', { targetId, flatten: true })).sessionId
await send('Page.enable')

async function open(page, width, scheme) {
    await send('Emulation.setDeviceMetricsOverride', {
        width,
        height: 900,
        deviceScaleFactor: 1,
        mobile: width < 600,
    })
    await send('Emulation.setEmulatedMedia', {
        features: [{ name: 'prefers-color-scheme', value: scheme }],
    })
    const loaded = event('Page.loadEventFired')
    await send('Page.navigate', { url: pathToFileURL(join(book, page)).href })
    await loaded
}
const evaluate = async (expression) =>
    (await send('Runtime.evaluate', { expression, returnByValue: true })).result.value

// What is wider than the window and not inside a box that scrolls; pictures that did not load.
function measure() {
    const page = document.documentElement
    const boxed = (e) => {
        for (; e && e !== document.body; e = e.parentElement) {
            if (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX)) return true
        }
        return false
    }
    const outside = (e) => e.getBoundingClientRect().right > page.clientWidth + 1 && !boxed(e)
    const wide = page.scrollWidth > page.clientWidth
    const all = wide ? [...document.querySelectorAll('main *')].filter(outside) : []
    return {
        width: page.scrollWidth,
        wide,
        culprits: all.slice(0, 3).map((e) => `${e.tagName} ${e.textContent.slice(0, 40)}`),
        errors: document.querySelectorAll('.katex-error').length,
        scrolling: [...document.querySelectorAll('.eq')]
            .filter(
                (e) =>
                    e.querySelector('.formula').scrollWidth >
                    e.querySelector('.formula').clientWidth,
            )
            .map((e) => e.id),
        pictures: [...document.images].filter((i) => i.complete && !i.naturalWidth).length,
    }
}
const MEASURE = `(${measure})()`

let bad = 0
for (const page of pages) {
    for (const width of WIDTHS) {
        await open(page, width, 'light')
        const m = await evaluate(MEASURE)
        const say = (what) => {
            console.error(`${page} at ${width}: ${what}`)
            bad++
        }
        if (m.wide) say(`${m.width} wide: ${m.culprits.join(' | ')}`)
        if (m.errors) say(`${m.errors} formulas failed`)
        if (m.scrolling.length && width > 600) {
            console.log(`${page}: formulas wider than the column: ${m.scrolling.join(' ')}`)
        }
        if (m.pictures) say(`${m.pictures} pictures did not load`)
    }
}

if (pictures) {
    mkdirSync(pictures, { recursive: true })
    for (const page of SHOWN.filter((p) => existsSync(join(book, p)))) {
        const name = page.replace(/.*\//, '').replace('.html', '')
        for (const [width, scheme] of [
            [390, 'light'],
            [1280, 'light'],
            [1280, 'dark'],
        ]) {
            await open(page, width, scheme)
            const height = Math.min(await evaluate('document.documentElement.scrollHeight'), 16000)
            const clip = { x: 0, y: 0, width, height, scale: 1 }
            const { data } = await send('Page.captureScreenshot', {
                clip,
                captureBeyondViewport: true,
            })
            writeFileSync(
                join(pictures, `${name}_${width}_${scheme}.png`),
                Buffer.from(data, 'base64'),
            )
        }
        const { data } = await send('Page.printToPDF', {
            preferCSSPageSize: true,
            printBackground: false,
        })
        writeFileSync(join(pictures, `${name}.pdf`), Buffer.from(data, 'base64'))
    }
}
browser.kill()
console.log(`look: ${pages.length} pages at ${WIDTHS.join(' and ')} pixels, ${bad} problems`)
process.exit(bad ? 1 : 0)
