// Tests the page with real pointer, touch and key events in Chromium, and its WebAssembly in Node:
//     node test.mjs FOLDER [PICTURES]      FOLDER holds explore.html, explore.wasm, fingerprint.txt
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { launch } from '../weave/browser.mjs'

const [folder, pictures] = process.argv.slice(2)
let passed = 0
let failed = 0
const check = (what, ok, shown = '') => {
    if (ok) passed++
    else {
        failed++
        console.error(`failed: ${what} ${shown}`)
    }
}
const near = (a, b, by = 2e-3) => Math.abs(a - b) <= by

// In Node: the same bits as two native builds.
const native = readFileSync(join(folder, 'fingerprint.txt'), 'utf8').trim()
const wasm = new WebAssembly.Instance(
    new WebAssembly.Module(readFileSync(join(folder, 'explore.wasm'))))
check('WebAssembly in Node has the bits of the native build',
    String(wasm.exports.fingerprint() >>> 0) === native)
execFileSync(process.env.CC ?? 'cc', ['-std=c99', '-O3', '-march=native', '-ffp-contract=off',
    '-DHOST', join(import.meta.dirname ?? '.', 'glue.c'), '-o', join(folder, 'fast'), '-lm'])
check('so has the build with -O3 -march=native',
    execFileSync(join(folder, 'fast'), { encoding: 'utf8' }).trim() === native)

const page = await launch()
const url = pathToFileURL(resolve(folder, 'explore.html')).href
const { evaluate, send } = page
const settle = () => evaluate(
    'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
const text = (selector) => evaluate(`document.querySelector('${selector}').textContent`)
const centre = async (selector) => {
    await evaluate(`document.querySelector('${selector}').scrollIntoView({ block: 'center',
        behavior: 'instant' })`)
    await settle()
    return evaluate(`(() => { const b = document.querySelector('${selector}')
        .getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2] })()`)
}
const mouse = (type, [x, y], buttons = 1) => send('Input.dispatchMouseEvent', { type, x, y,
    button: type === 'mouseMoved' && !buttons ? 'none' : 'left', buttons, clickCount: 1 })
const drag = async (selector, dx, dy) => {
    const [x, y] = await centre(selector)
    await mouse('mouseMoved', [x, y], 0)
    await mouse('mousePressed', [x, y])
    for (let k = 1; k <= 5; k++) {
        await mouse('mouseMoved', [x + (dx * k) / 5, y + (dy * k) / 5])
        await settle()
    }
    await mouse('mouseReleased', [x + dx, y + dy], 0)
    await settle()
}
const click = async (selector) => {
    const at = await centre(selector)
    await mouse('mousePressed', at)
    await mouse('mouseReleased', at, 0)
    await settle()
}
const key = async (name, count = 1) => {
    for (let k = 0; k < count; k++) {
        for (const type of ['keyDown', 'keyUp'])
            await send('Input.dispatchKeyEvent', { type, key: name, code: name,
                windowsVirtualKeyCode: { ArrowDown: 40, ArrowRight: 39 }[name] })
    }
    await settle()
}
const range = (id, v) => evaluate(`(() => { const e = document.getElementById('${id}')
    e.value = ${v}; e.dispatchEvent(new Event('input', { bubbles: true })) })()`).then(settle)
const number = (s) => Number(s.replace('−', '-'))
const columns = async () => (await evaluate(`[...document.querySelectorAll('#table1 tbody tr')].map(
    (r) => [...r.cells].map((c) => c.firstElementChild?.value ?? c.textContent))`))
    .map((row) => row.map(number))
const shoot = async (name, width, height, scheme, selector) => {
    if (!pictures) return
    mkdirSync(pictures, { recursive: true })
    const clip = await evaluate(`(() => { const b = (${selector ? `document.querySelector('${
        selector}')` : 'document.documentElement'}).getBoundingClientRect()
        return { x: 0, y: b.y + scrollY, width: ${width}, height: b.height } })()`)
    writeFileSync(join(pictures, `explore_${name}.png`), await page.picture(clip))
    await evaluate('new Promise((done) => setTimeout(done, 300))') // the window has its size again
}

await page.open(url, 1100, 900)
await settle()
check('the page says that its bits are native', /^Its bits equal/.test(await text('#bits')))
await shoot('1_start', 1100, 900, 'light')

// Batch norm of one channel: the numbers by hand.
const byHand = (rows, gamma, eps) => {
    const x = rows.map((r) => r[1])
    const dy = rows.map((r) => r[4])
    const mean = (a) => a.reduce((p, q) => p + q, 0) / a.length
    const mu = mean(x)
    const r = 1 / Math.sqrt(mean(x.map((a) => (a - mu) ** 2)) + eps)
    const h = x.map((a) => (a - mu) * r)
    const p = mean(dy.map((d, i) => d * h[i]))
    return rows.every((row, i) => near(row[2], h[i]) && near(row[3], gamma * h[i]) &&
        near(row[5], -mean(dy)) && near(row[6], -h[i] * p) &&
        near(row[7], gamma * r * (dy[i] - mean(dy) - h[i] * p)))
}
check('five examples, computed right', (await columns()).length === 5 &&
    byHand(await columns(), 1, 1e-5))
let before = await columns()
await drag('#lines [aria-label="x of example 3"]', -60, 0)
let after = await columns()
check('dragging x moves it', after[2][1] < before[2][1] - 0.3, `${before[2][1]} ${after[2][1]}`)
check('and all of the layer follows', byHand(after, 1, 1e-5))
await drag('#bars [aria-label="dy of example 2"]', 0, -40)
check('dragging dy moves it', (await columns())[1][4] > after[1][4] + 0.3)
check('and dx follows', byHand(await columns(), 1, 1e-5))
before = await columns()
await evaluate(`document.querySelector('#lines [aria-label="x of example 1"]').focus()`)
await key('ArrowRight', 3)
check('arrow keys move a value by 0.1', near((await columns())[0][1], before[0][1] + 0.3, 2e-3))
check('the handle says its value', near(Number(await evaluate(
    'document.activeElement.getAttribute("aria-valuenow")')), before[0][1] + 0.3, 0.01))
await range('gamma', 2)
await range('eps', -1)
check('γ and ε', byHand(await columns(), 2, 0.1))
await range('n', 8)
check('a batch of 8', (await columns()).length === 8 && byHand(await columns(), 2, 0.1))
await range('outlier', 40)
await shoot('2_outlier', 1100, 900, 'light', '#one')
await range('n', 2)
check('a batch of 2', (await columns()).length === 2)
await click('#reset1')
await send('Emulation.setTouchEmulationEnabled', { enabled: true })
const [tx, ty] = await centre('#lines [aria-label="x of example 2"]')
before = await columns()
await send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [{ x: tx, y: ty }] })
for (let k = 1; k <= 4; k++) {
    await send('Input.dispatchTouchEvent', { type: 'touchMove',
        touchPoints: [{ x: tx + 15 * k, y: ty }] })
    await settle()
}
await send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
await settle()
await send('Emulation.setTouchEmulationEnabled', { enabled: false })
check('a finger moves a value', (await columns())[1][1] > before[1][1] + 0.3)
await evaluate(`(() => { const e = document.querySelector('#table1 input'); e.focus()
    e.value = 4.5; e.dispatchEvent(new Event('input', { bubbles: true })) })()`)
await settle()
check('a typed value counts', byHand(await columns(), 1, 1e-5) && (await columns())[0][1] === 4.5)

// Who shares a statistic: for each layer, how many numbers, and how many outputs depend on one.
const cell = '#grid-x tr:nth-child(2) td:nth-child(3) div'
for (const [k, share, depend] of [[0, 4, 4], [1, 6, 6], [2, 3, 3], [3, 6, 6], [4, 4, 4]]) {
    await click(`#kind label:nth-of-type(${k + 1})`)
    const at = await centre(cell)
    await mouse('mouseMoved', [at[0] + 90, at[1] + 200], 0)
    await mouse('mouseMoved', at, 0)
    await settle()
    const said = await text('#stats2')
    check(`layer ${k}: shares and dependents`, said.startsWith(`${share} numbers share`) &&
        said.includes(`${depend} outputs`), said)
    if (k === 2) await shoot('3_shared', 1100, 900, 'light', '#shared')
}
const value = await text(cell)
await drag(cell, 0, -24)
check('dragging a cell changes it', near(number(await text(cell)), number(value) + 2, 0.2))
await key('ArrowDown', 5)
check('keys as well', near(number(await text(cell)), number(value) + 1.5, 0.2))

// Running statistics.
await click('#step1')
const said = (await text('#stats3')).match(/[−\d.]+/g).map((s) => number(s.replace(/\.$/, '')))
check('one step: running mean = 0.1 of the batch mean', near(said[2], 0.1 * said[1]), `${said}`)
for (let k = 0; k < 2; k++) await click('#step20')
check('41 steps', (await text('#stats3')).startsWith('After 41 steps'))
await shoot('4_running', 1100, 900, 'light', '#running')

// The gradient check finds each mistake in each layer that has the term.
for (let kind = 0; kind < 5; kind++) {
    for (let mistake = 0; mistake < 5; mistake++) {
        await evaluate(`(() => { document.getElementById('kind4').value = ${kind}
            const m = document.getElementById('mistake'); m.value = ${mistake}
            m.dispatchEvent(new Event('change')) })()`)
        await settle()
        const right = mistake === 0 || (kind === 3 && mistake === 1)
        check(`check of layer ${kind}, mistake ${mistake}`,
            (await text('#verdict')).startsWith('The gradients are right') === right)
    }
}
await shoot('5_checking', 1100, 900, 'light', '#checking')

// A question, with the keyboard.
await evaluate(`document.querySelector('#checking .q button').focus()`)
await send('Input.dispatchKeyEvent', { type: 'keyDown', key: 'Enter', code: 'Enter', text: '\r',
    windowsVirtualKeyCode: 13 })
await send('Input.dispatchKeyEvent', { type: 'keyUp', key: 'Enter', code: 'Enter' })
await settle()
check('a wrong answer is explained', /^No: no\./.test(await text('#checking .answer')))
await click('#checking .answer button')
check('"Look" shows it', await evaluate('document.getElementById("ones").checked'))

// The networks train.
await click('#run')
let right = 0
for (let k = 0; k < 30 && right < 90; k++) { // seconds
    await evaluate('new Promise((done) => setTimeout(done, 1000))')
    right = Number(/(\d+) %/.exec(await text('#said1'))?.[1] ?? 0)
}
await click('#run')
await settle()
check('batch norm has learnt the spirals', right >= 90, `${right} % right`)
await shoot('6_spirals', 1100, 900, 'light', '#spirals')
const frames = (await evaluate('frames')).sort((a, b) => a - b)
const at95 = frames[Math.floor(0.95 * frames.length)]
const median = frames[frames.length >> 1]
check('a frame takes at most 16 ms', median <= 16, `${median}`)
console.log(`explore: ${frames.length} frames, median ${median.toFixed(1)} ms, 95 of 100 below ${
    at95.toFixed(1)} ms`)

// Labels, phones, the dark.
check('each control has a name', await evaluate(`[...document.querySelectorAll(
    'input, select, button, [role=slider], [role=spinbutton]')].every((e) => e.labels?.length ||
    e.getAttribute('aria-label') || e.textContent.trim())`))
for (const [width, scheme] of [[390, 'light'], [390, 'dark'], [1100, 'dark']]) {
    await page.open(url, width, 850, scheme)
    await settle()
    check(`no wider than ${width}`, await evaluate(
        'document.documentElement.scrollWidth <= innerWidth'))
    await shoot(`${width}_${scheme}`, width, 850, scheme, width < 600 ? '#one' : undefined)
}
check('no error in the console', page.errors.length === 0, page.errors.join('; '))
await page.close()
console.log(`explore: ${passed} passed, ${failed} failed`)
process.exit(failed ? 1 : 0)
