// Chromium (CHROMIUM names it), driven through a pipe by its DevTools protocol.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']
const onPath = () =>
    (process.env.PATH ?? '').split(delimiter).flatMap((f) => NAMES.map((n) => join(f, n))).find(
        (path) => existsSync(path))
export const chromium = () => process.env.CHROMIUM ?? onPath()

export async function launch() {
    const program = chromium()
    if (!program) throw new Error("no Chromium here; 'make deps-dev' installs it")
    const profile = mkdtempSync(join(tmpdir(), 'chromium-'))
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic',
        '--no-first-run', '--disable-background-networking', '--disable-component-update',
        '--disable-sync', '--hide-scrollbars', `--user-data-dir=${profile}`,
        '--remote-debugging-pipe']
    const child = spawn(program, flags, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
    const waiting = new Map()
    const once = new Map()
    const errors = [] // exceptions and console errors of the pages
    let last = 0
    let buffer = ''
    let sessionId
    child.on('error', (error) => {
        console.error(`browser: ${error.message}`)
        process.exit(1)
    })
    child.stdio[4].on('data', (data) => {
        buffer += data
        for (let at; (at = buffer.indexOf('\0')) >= 0; buffer = buffer.slice(at + 1)) {
            const message = JSON.parse(buffer.slice(0, at))
            if (message.id) {
                const { done, failed } = waiting.get(message.id)
                waiting.delete(message.id)
                if (message.error) failed(new Error(message.error.message))
                else done(message.result)
                continue
            }
            const { method, params } = message
            if (method === 'Runtime.exceptionThrown')
                errors.push(params.exceptionDetails.exception?.description ?? 'exception')
            if (method === 'Log.entryAdded' && params.entry.level === 'error')
                errors.push(params.entry.text)
            once.get(method)?.(params)
            once.delete(method)
        }
    })
    const send = (method, params = {}) =>
        new Promise((done, failed) => {
            const id = ++last
            waiting.set(id, { done, failed })
            child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`)
        })
    const { targetId } = await send('Target.createTarget', { url: 'about:blank' })
    sessionId = (await send('Target.attachToTarget', { targetId, flatten: true })).sessionId
    for (const domain of ['Page', 'Runtime', 'Log']) await send(`${domain}.enable`)
    const browser = {
        send,
        errors,
        resize: (width, height) => send('Emulation.setDeviceMetricsOverride', {
            width, height, deviceScaleFactor: 1, mobile: width < 600,
        }),
        async open(url, width = 1280, height = 900, scheme = 'light') {
            await browser.resize(width, height)
            await send('Emulation.setEmulatedMedia', {
                features: [{ name: 'prefers-color-scheme', value: scheme }],
            })
            const loaded = new Promise((done) => once.set('Page.loadEventFired', done))
            await send('Page.navigate', { url })
            await loaded
        },
        async evaluate(expression) {
            const answer = await send('Runtime.evaluate', {
                expression, returnByValue: true, awaitPromise: true,
            })
            if (answer.exceptionDetails)
                throw new Error(answer.exceptionDetails.exception?.description ?? expression)
            return answer.result.value
        },
        async picture(clip) {
            const { data } = await send('Page.captureScreenshot', clip
                ? { clip: { scale: 1, ...clip }, captureBeyondViewport: true } : {})
            return Buffer.from(data, 'base64')
        },
        async close() {
            const ended = new Promise((done) => child.once('exit', done))
            await send('Browser.close').catch(() => child.kill())
            await ended
            rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
        },
    }
    return browser
}
