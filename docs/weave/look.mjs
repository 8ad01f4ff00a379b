// Looks at the woven book with Chromium: no page wider than its window, no formula in red, no
// picture missing, no error in a script; search and previews answer the keys and the pointer. With
// PICTURES also photographs some pages for the eye.
//
//     node docs/weave/look.mjs FOLDER [PICTURES]     FOLDER holds book.html and book/
//
// Formulas, tables and listings may scroll inside their own boxes; the document may not.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { launch } from './browser.mjs'

const [folder, pictures] = process.argv.slice(2)
const book = resolve(folder)
const pages = ['book.html', ...readdirSync(join(book, 'book'))
    .filter((f) => f.endsWith('.html'))
    .sort()
    .map((f) => `book/${f}`)]
const SHOWN = pages.filter((p) =>
    /book\.html|\/\d\d_|index|experiment_16|header_(01|opening)|verdicts/.test(p))
const browser = await launch()
const { evaluate, send } = browser
const open = (page, width, scheme) =>
    browser.open(pathToFileURL(join(book, page)).href, width, 900, scheme)
let passed = 0
let failed = 0
const check = (what, ok) => {
    if (ok) passed++
    else {
        failed++
        console.error(`failed: ${what}`)
    }
}

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
        wide: wide && `${all.slice(0, 3).map((e) => `${e.tagName} ${e.textContent.slice(0, 40)}`)}`,
        red: document.querySelectorAll('.katex-error').length,
        pictures: [...document.images].filter((i) => i.complete && !i.naturalWidth).length,
    }
}
for (const page of pages) {
    await open(page, 390, 'light')
    for (const width of [390, 1280]) {
        await browser.resize(width, 900)
        const m = await evaluate(`(${measure})()`)
        check(`${page} at ${width}: wider than its window: ${m.wide}`, !m.wide)
        check(`${page}: formulas in red, or pictures that did not load`, !m.red && !m.pictures)
    }
}

// Search by the keys, a preview by the pointer and by focus.
const soon = async (expression) => {
    for (let k = 0; k < 40; k++) {
        if (await evaluate(expression)) return true
        await new Promise((done) => setTimeout(done, 50))
    }
    return false
}
const key = async (name, more = {}) => {
    for (const type of ['keyDown', 'keyUp'])
        await send('Input.dispatchKeyEvent', { type, key: name, code: name, ...more })
}
await open('book/01_batch_norm.html', 1280, 'light')
await key('/', { text: '/', code: 'Slash' })
check('"/" leads to the search', await soon("document.activeElement.id === 'find'"))
await send('Input.insertText', { text: 'running statistics' })
check('a search finds sections', await soon("document.querySelectorAll('.found a').length > 3"))
await key('ArrowDown', { windowsVirtualKeyCode: 40 })
check('the arrow goes to the first', await soon("document.activeElement.matches('.found a')"))
const target = await evaluate("document.activeElement.getAttribute('href')")
check('which is a page of the book', pages.some((p) => target.includes(p)))
await key('Escape')
check('Escape clears', await soon("!document.querySelector('.found a')"))
const LINK = String.raw`[...document.querySelectorAll('main p a')].find((a) =>
    /#BN\.19$/.test(a.getAttribute('href')))`
const [x, y] = await evaluate(`(() => { const e = ${LINK}
    e.scrollIntoView({ block: 'center', behavior: 'instant' })
    const b = e.getBoundingClientRect(); return [b.x + 4, b.y + b.height / 2] })()`)
await send('Input.dispatchMouseEvent', { type: 'mouseMoved', x, y })
const SEEN = "!document.getElementById('preview').hidden && " +
    "document.querySelector('#preview .katex') !== null"
check('the pointer shows an equation', await soon(SEEN))
await send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: 5, y: 5 })
check('and hides it', await soon("document.getElementById('preview').hidden"))
await evaluate(`${LINK}.focus()`)
check('focus shows it', await soon(SEEN))
await key('Escape')
check('Escape hides it', await soon("document.getElementById('preview').hidden"))
check(`no error in a script: ${browser.errors.slice(0, 2)}`, !browser.errors.length)

if (pictures) {
    mkdirSync(pictures, { recursive: true })
    for (const page of SHOWN.filter((p) => existsSync(join(book, p)))) {
        for (const [width, scheme] of [[390, 'light'], [1280, 'light'], [1280, 'dark']]) {
            await open(page, width, scheme)
            const all = await evaluate('document.documentElement.scrollHeight')
            const clip = { x: 0, y: 0, width, height: Math.min(all, 16000) }
            const name = `${basename(page, '.html')}_${width}_${scheme}.png`
            writeFileSync(join(pictures, name), await browser.picture(clip))
        }
    }
}
await browser.close()
console.log(`look: ${pages.length} pages`)
console.log(`look: ${passed} passed, ${failed} failed`)
process.exit(failed ? 1 : 0)
