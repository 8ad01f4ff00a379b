// The page: it draws, and the header, in WebAssembly, computes.
const bytes = Uint8Array.from(atob(WASM), (c) => c.charCodeAt(0))
const nrm = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports
const view = (pointer, length) => new Float64Array(nrm.memory.buffer, pointer, length)
const NAMES = ['x', 'dy', 'gamma', 'beta', 'y', 'dx', 'scale', 'dgamma', 'dbeta', 'mean', 'rstd',
    'rmean', 'rvar', 'report']
const at = Object.fromEntries(NAMES.map((name, k) => [name, view(nrm.array(k), 128)]))
const KINDS = ['batch norm', 'layer norm', 'group norm', 'RMS norm', 'noisy batch norm']
const $ = (id) => document.getElementById(id)
const minus = (text) => text.replace('-', '−')
const f = (v, digits = 3) => minus((Math.abs(v) < 0.5 * 10 ** -digits ? 0 : v).toFixed(digits))
const power = (e) => `10${[...String(e)].map((c) => RAISED[c]).join('')}`
const RAISED = { ...Array.from('⁰¹²³⁴⁵⁶⁷⁸⁹'), '-': '⁻', '.': '·' }
const mean = (a) => a.reduce((p, q) => p + q, 0) / a.length

const mark = nrm.fingerprint() >>> 0
$('bits').textContent = String(mark) === NATIVE
    ? `Its bits equal those of the native build: fingerprint ${mark.toString(16)} of all layers, ` +
        'their gradients and two trained networks.'
    : `Its fingerprint is ${mark.toString(16)}, and that of the native build ` +
        `${Number(NATIVE).toString(16)}: the bits differ.`

// Drawings are 720 units wide, or 400 on a phone, so that texts and handles keep their size.
let wide = 720
function measure() {
    wide = innerWidth < 560 ? 400 : 720
    for (const svg of document.querySelectorAll('svg'))
        svg.setAttribute('viewBox', svg.getAttribute('viewBox').replace(/^0 0 \d+/, `0 0 ${wide}`))
}
measure()

// Elements of an SVG that stay while they are wanted, so that focus and dragging survive a redraw.
const COLOUR = { blue: 'var(--blue)', orange: 'var(--orange)', green: 'var(--green)',
    soft: 'var(--soft)', sky: 'var(--sky)' }
function board(svg) {
    const known = new Map()
    let wanted = new Set()
    const make = (tag) => document.createElementNS('http://www.w3.org/2000/svg', tag)
    const [back, front] = [make('g'), make('g')] // what can be dragged lies in front
    svg.append(back, front)
    return {
        svg,
        put(key, tag, attributes, text) {
            let e = known.get(key)
            if (!e) {
                e = make(tag)
                known.set(key, e)
                ;(tag === 'circle' || attributes.class === 'number' ? front : back).append(e)
            }
            for (const [name, value] of Object.entries(attributes)) {
                const to = (name === 'fill' || name === 'stroke') && COLOUR[value] || String(value)
                if (e.getAttribute(name) !== to) e.setAttribute(name, to)
            }
            if (text !== undefined && e.textContent !== text) e.textContent = text
            wanted.add(key)
            return e
        },
        done() {
            for (const [key, e] of known) {
                if (wanted.has(key)) continue
                e.remove()
                known.delete(key)
            }
            wanted = new Set()
        },
    }
}

// A handle moves by pointer and by keys. o: label, min, max, get, set, at(event) -> value, step.
let dragging = false
function handle(e, o) {
    e.o = o
    e.setAttribute('aria-valuemin', o.min)
    e.setAttribute('aria-valuemax', o.max)
    e.setAttribute('aria-valuenow', o.get().toFixed(2))
    if (e.wired) return
    e.wired = true
    e.setAttribute('tabindex', 0)
    e.setAttribute('role', o.role ?? 'slider')
    e.setAttribute('aria-label', o.label)
    const set = (v) => e.o.set(Math.min(e.o.max, Math.max(e.o.min, v)))
    e.addEventListener('touchstart', (event) => event.preventDefault(), { passive: false })
    e.addEventListener('pointerdown', (event) => {
        e.setPointerCapture(event.pointerId)
        dragging = true
        e.from = { y: event.clientY, v: e.o.get() }
        e.focus({ preventScroll: true })
        event.preventDefault()
    })
    e.addEventListener('pointermove', (event) => {
        if (e.hasPointerCapture(event.pointerId)) set(e.o.at(event, e.from))
    })
    const end = () => {
        if (dragging) {
            dragging = false
            e.o.set(e.o.get())
        }
    }
    e.addEventListener('pointerup', end)
    e.addEventListener('pointercancel', end)
    e.addEventListener('keydown', (event) => {
        const by = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10,
            PageDown: -10 }[event.key]
        if (event.key === 'Home') set(e.o.min)
        else if (event.key === 'End') set(e.o.max)
        else if (by) set(e.o.get() + by * 0.1 * (event.shiftKey ? 10 : 1))
        else return
        event.preventDefault()
    })
}
function inside(svg, event) { // the pointer in the coordinates of the drawing
    const m = svg.getScreenCTM().inverse()
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(m)
}

// Whatever has changed is drawn once in the next frame; what that takes is measured.
const dirty = new Set()
const frames = []
function redraw(what) {
    if (!dirty.size) requestAnimationFrame(frame)
    dirty.add(what)
}
function frame() {
    const started = performance.now()
    const now = [...dirty]
    dirty.clear()
    for (const draw of now) draw()
    frames.push(performance.now() - started)
    if (frames.length > 400) frames.shift()
    $('frame').textContent = `${frames.at(-1).toFixed(1)} ms`
}
function slider(id, value, show, draw) {
    const input = $(id)
    const out = input.parentElement.querySelector('output')
    const say = () => {
        out.textContent = show(+input.value)
        input.setAttribute('aria-valuetext', out.textContent)
    }
    input.value = value
    say()
    input.addEventListener('input', () => (say(), redraw(draw)))
    return { get value() { return +input.value }, set value(v) { input.value = v; say() } }
}

// ---- 1: batch norm of one channel --------------------------------------------------------------
const START = { x: [1, 2, 6, 3.5, 4, 2.5, 5, 0.5], dy: [1, -0.5, 0.3, 0, 0.7, -1, 0.2, -0.3] }
const one = { x: [...START.x], dy: [...START.dy], low: -2, high: 8 }
const lines = board($('lines'))
const bars = board($('bars'))
const n = slider('n', 5, String, draw1)
const gamma = slider('gamma', 1, (v) => f(v, 1), draw1)
const beta = slider('beta', 0, (v) => f(v, 1), draw1)
const eps = slider('eps', -5, power, draw1)
const outlier = slider('outlier', 0, String, draw1)
const values = () => one.x.slice(0, n.value)
    .map((v, i) => i === n.value - 1 ? v + outlier.value : v)
const setX = (i, v) => {
    one.x[i] = v - (i === n.value - 1 ? outlier.value : 0)
    redraw(draw1)
}
const setDy = (i, v) => {
    one.dy[i] = v
    redraw(draw1)
}

function draw1() {
    const N = n.value
    const x = values()
    at.x.set(x)
    at.dy.set(one.dy.slice(0, N))
    at.gamma[0] = gamma.value
    at.beta[0] = beta.value
    nrm.layer(0, 0, N, 1, 1, 10 ** eps.value, 0, 0)
    const [mu, r] = [at.mean[0], at.rstd[0]]
    const xhat = x.map((v) => (v - mu) * r)
    const y = [...at.y.slice(0, N)]
    const dx = [...at.dx.slice(0, N)]
    const dy = one.dy.slice(0, N)
    const m = mean(dy)
    const p = mean(dy.map((d, i) => d * xhat[i]))
    const v = mean(x.map((a) => (a - mu) ** 2))
    if (!dragging) {
        one.low = Math.floor(Math.min(-2, ...x, ...y) - 0.5)
        one.high = Math.ceil(Math.max(8, ...x, ...y) + 0.5)
    }
    const X = (a) => 50 + ((a - one.low) / (one.high - one.low)) * (wide - 80)
    const H = (a) => 50 + ((a + 3) / 6) * (wide - 80)
    const rows = [['x', 52, X, x], ['x̂', 138, H, xhat], ['y', 224, X, y]]
    const sd = Math.sqrt(v)
    lines.put('band', 'rect', { x: X(mu - sd), y: 34, width: X(mu + sd) - X(mu - sd), height: 36,
        fill: 'sky', rx: 4 })
    for (const [name, at, scale] of rows) {
        lines.put(`${name} axis`, 'path', { d: `M50 ${at}H${wide - 30}`, class: 'axis' })
        lines.put(`${name} name`, 'text', { x: 30, y: at + 5, 'text-anchor': 'end',
            'font-style': 'italic' }, name)
        const [low, high] = scale === H ? [-3, 3] : [one.low, one.high]
        const step = high - low > 24 ? 10 : high - low > 14 || (wide < 720 && scale !== H) ? 5
            : scale === H ? 1 : 2
        for (let t = Math.ceil(low / step) * step; t <= high; t += step) {
            lines.put(`${name} tick ${t}`, 'path', { d: `M${scale(t)} ${at - 4}v8`,
                class: 'axis' })
            lines.put(`${name} label ${t}`, 'text', { x: scale(t), y: at + 24, class: 'soft',
                'text-anchor': 'middle' }, f(t, 0))
        }
    }
    lines.put('mu', 'path', { d: `M${X(mu)} 26V72`, stroke: 'orange', 'stroke-width': 2 })
    lines.put('mu name', 'text', { x: X(mu), y: 18, 'text-anchor': 'middle',
        style: 'fill:var(--orange)' }, `μ = ${f(mu, 2)}`)
    for (let i = 0; i < N; i++) {
        lines.put(`join ${i}`, 'path', { class: 'rule',
            d: `M${X(x[i])} 52L${H(xhat[i])} 138L${X(y[i])} 224` })
    }
    for (let i = 0; i < N; i++) {
        lines.put(`xhat ${i}`, 'circle', { cx: H(xhat[i]), cy: 138, r: 6, fill: 'blue' })
        lines.put(`y ${i}`, 'circle', { cx: X(y[i]), cy: 224, r: 6, fill: 'blue' })
        const o = { label: `x of example ${i + 1}`, min: -20, max: 60, get: () => values()[i],
            set: (v) => setX(i, v),
            at: (event) => one.low + ((inside(lines.svg, event).x - 50) / (wide - 80)) *
                (one.high - one.low) }
        handle(lines.put(`x ${i}`, 'circle', { cx: X(x[i]), cy: 52, r: 11, fill: 'blue',
            class: 'handle' }), o)
        lines.put(`x name ${i}`, 'text', { x: X(x[i]), y: 56.5, 'text-anchor': 'middle',
            class: 'number' }, String(i + 1))
    }
    lines.done()
    $('stats1').textContent = `μ = ${f(mu)}, v = ${f(v)}, r = ${f(r)}; mean of x̂ = ${
        f(mean(xhat))}, of x̂² = ${f(mean(xhat.map((a) => a * a)), 4)}`

    // Backward: dy, less its mean, less its part along x̂; the sum times γr is dx.
    const W = (wide - 80) / N
    const top = Math.max(1.3, ...dy.map(Math.abs), ...dy.map((d) => Math.abs(d - m)),
        ...dx.map((d) => Math.abs(d / (gamma.value * r || 1)))) * 1.1
    if (!dragging) one.top = top
    const Y = (v) => 112 - (v / one.top) * 92
    bars.put('zero', 'path', { d: `M50 112H${wide - 30}`, class: 'axis' })
    for (const t of [-1, 1]) {
        bars.put(`line ${t}`, 'path', { d: `M50 ${Y(t)}H${wide - 30}`, class: 'rule' })
        bars.put(`label ${t}`, 'text', { x: 42, y: Y(t) + 5, class: 'soft',
            'text-anchor': 'end' }, f(t, 0))
    }
    bars.put('name', 'text', { x: 30, y: 234, 'text-anchor': 'end', 'font-style': 'italic' }, 'dx')
    for (let i = 0; i < N; i++) {
        const left = 50 + W * i + W * 0.1
        const w = (W * 0.8) / 4
        let level = 0
        const bar = (k, by, colour) => {
            const [a, b] = [Y(level), Y(level + by)]
            bars.put(`bar ${i} ${k}`, 'rect', { x: left + w * k, y: Math.min(a, b),
                width: w * 0.86, height: Math.max(1, Math.abs(a - b)), fill: colour })
            level += by
        }
        bar(0, dy[i], 'blue')
        bar(1, -m, 'orange')
        bar(2, -xhat[i] * p, 'green')
        const left_over = level
        level = 0
        bar(3, left_over, 'soft')
        bars.put(`dx ${i}`, 'text', { x: left + 2 * w, y: 234, 'text-anchor': 'middle' },
            f(dx[i], W < 90 ? 2 : 3))
        const o = { label: `dy of example ${i + 1}`, min: -3, max: 3, get: () => one.dy[i],
            set: (v) => setDy(i, v),
            at: (event) => ((112 - inside(bars.svg, event).y) / 92) * one.top }
        handle(bars.put(`dy ${i}`, 'circle', { cx: left + w * 0.43, cy: Y(dy[i]), r: 10,
            fill: 'blue', class: 'handle' }), o)
    }
    bars.done()

    const body = $('table1').tBodies[0]
    while (body.rows.length > N) body.deleteRow(-1)
    while (body.rows.length < N) {
        const i = body.rows.length
        const row = body.insertRow()
        row.innerHTML = `<th scope="row">${i + 1}</th><td><input type="number" step="0.1"
            aria-label="x of example ${i + 1}"></td><td></td><td></td><td><input type="number"
            step="0.1" aria-label="dy of example ${i + 1}"></td><td></td><td></td><td></td>`
        const [a, b] = row.querySelectorAll('input')
        a.addEventListener('input', () => a.value !== '' && setX(i, +a.value))
        b.addEventListener('input', () => b.value !== '' && setDy(i, +b.value))
    }
    for (let i = 0; i < N; i++) {
        const cells = body.rows[i].cells
        const type = (cell, v) => {
            const input = cell.firstElementChild
            if (document.activeElement !== input) input.value = +v.toFixed(3)
        }
        type(cells[1], x[i])
        type(cells[4], dy[i])
        const rest = [, , xhat[i], y[i], , -m, -xhat[i] * p, dx[i]]
        rest.forEach((v, k) => (cells[k].textContent = f(v)))
    }
    const total = (a) => f(a.reduce((s, v) => s + v, 0))
    $('table1').tFoot.innerHTML = `<tr><th scope="row">sum</th><td>${total(x)}</td><td>${
        total(xhat)}</td><td>${total(y)}</td><td>${total(dy)}</td><td></td><td></td><td>${
        total(dx)}</td></tr><tr><th scope="row" colspan="7">sum of dx·x̂</th><td>${
        total(dx.map((d, i) => d * xhat[i]))}</td></tr>`
}
$('reset1').addEventListener('click', () => {
    one.x = [...START.x]
    one.dy = [...START.dy]
    for (const [s, v] of [[n, 5], [gamma, 1], [beta, 0], [eps, -5], [outlier, 0]]) s.value = v
    redraw(draw1)
})

// ---- 2: which numbers share a statistic --------------------------------------------------------
const [N2, C2, G2] = [4, 6, 2]
const FIRST = [1, 4, -2, 3, 0, 2, 2, 5, -1, 1, 1, 4, 0, 6, -3, 2, -1, 3, 3, 3, 0, 5, 2, 1]
const two = { x: [...FIRST], kind: 0, seed: 1, at: null }
const dy2 = FIRST.map((v, i) => ((i * 7) % 11) / 5 - 1)
const gamma2 = [1.2, 0.8, 1.5, 0.6, 1.1, 0.9]
function load2(x = two.x, ones = false) {
    at.x.set(x)
    at.dy.set(dy2)
    at.gamma.set(ones ? gamma2.map(() => 1) : gamma2)
    at.beta.fill(0)
}
const forward2 = (x) => {
    load2(x, true)
    nrm.layer(two.kind, 0, N2, C2, G2, 1e-5, two.seed, 0)
    return [...at.y.slice(0, N2 * C2)]
}
const group = (i) => {
    const [row, c] = [Math.floor(i / C2), i % C2]
    return [c, row, row * G2 + Math.floor(c / (C2 / G2)), row, c][two.kind]
}
function grid(id, editable) {
    const table = $(id)
    const cells = []
    for (let row = 0; row < N2; row++) {
        const tr = table.insertRow()
        for (let c = 0; c < C2; c++) {
            const e = document.createElement(editable ? 'div' : 'span')
            const i = row * C2 + c
            tr.insertCell().append(e)
            cells.push(e)
            const look = () => {
                if (two.at !== i && !dragging) {
                    two.at = i
                    redraw(draw2)
                }
            }
            e.addEventListener('pointerenter', look)
            e.addEventListener('focus', look)
            if (!editable) continue
            handle(e, { role: 'spinbutton', label: `x of example ${row + 1}, channel ${c + 1}`,
                min: -9, max: 9, get: () => two.x[i],
                set: (v) => ((two.x[i] = v), redraw(draw2)),
                at: (event, from) => from.v + (from.y - event.clientY) / 12 })
        }
    }
    return cells
}
const cellsX = grid('grid-x', true)
const cellsY = grid('grid-y', false)
function draw2() {
    const y = forward2(two.x)
    const [means, rstds] = [[...at.mean.slice(0, 24)], [...at.rstd.slice(0, 24)]]
    const i = two.at
    const moved = i === null ? y : forward2(two.x.map((v, k) => k === i ? v + 0.5 : v))
    const show = (e, v, on) => {
        const text = f(v, 2)
        if (e.textContent !== text) e.textContent = text
        e.style.setProperty('--tone', v < 0 ? 'var(--orange)' : 'var(--blue)')
        e.style.setProperty('--mix', `${Math.min(60, Math.abs(v) * 14)}%`)
        e.classList.toggle('on', on)
    }
    cellsX.forEach((e, k) => {
        show(e, two.x[k], i !== null && group(k) === group(i))
        e.setAttribute('aria-valuenow', two.x[k].toFixed(2))
    })
    cellsY.forEach((e, k) => show(e, y[k], Math.abs(moved[k] - y[k]) > 1e-9))
    if (i === null) {
        $('stats2').textContent = 'Point at a number.'
        return
    }
    const k = group(i)
    const size = cellsX.filter((e, j) => group(j) === k).length
    const changed = moved.filter((v, j) => Math.abs(v - y[j]) > 1e-9).length
    const stats = two.kind === 3 ? '' : `mean ${f(means[k])}, `
    $('stats2').textContent = `${size} numbers share ${stats}1/root ${f(rstds[k])}; ` +
        `${changed} outputs depend on this number.`
}
KINDS.forEach((name, k) => {
    $('kind').insertAdjacentHTML('beforeend', `<label><input type="radio" name="kind"
        value="${k}"${k ? '' : ' checked'}> ${name}</label>`)
    $('kind4').insertAdjacentHTML('beforeend', `<option value="${k}">${name}</option>`)
})
const setKind = (k) => {
    two.kind = k
    $('kind').querySelectorAll('input')[k].checked = true
    redraw(draw2)
}
$('kind').addEventListener('change', (event) => setKind(+event.target.value))
$('again2').addEventListener('click', () => (two.seed++, setKind(4)))
$('shift2').addEventListener('click', () => {
    for (let c = 0; c < C2; c++) two.x[c] += 2
    two.at ??= 0
    redraw(draw2)
})
$('reset2').addEventListener('click', () => {
    two.x = [...FIRST]
    redraw(draw2)
})

// ---- 3: training and inference -----------------------------------------------------------------
const three = { batches: [], running: [], state: 1, x: [] }
const plot3 = board($('plot3'))
const weight = slider('weight', 0.1, (v) => f(v, 2), draw3)
function uniform() { // the same batches for everyone
    three.state = (Math.imul(three.state, 1664525) + 1013904223) >>> 0
    return three.state / 2 ** 32
}
function reset3() {
    three.batches = []
    three.running = [[0, 1]]
    three.state = 1
    three.x = [3, 5, 1, 4, 2, 3.5, 2.5, 6]
    redraw(draw3)
}
function steps3(count) {
    for (let k = 0; k < count; k++) {
        three.x = Array.from({ length: 8 }, () => {
            let s = -6
            for (let j = 0; j < 12; j++) s += uniform()
            return 3 + 1.6 * s
        })
        const [rm, rv] = three.running.at(-1)
        load3()
        ;[at.rmean[0], at.rvar[0]] = [rm, rv]
        nrm.weight(weight.value)
        nrm.layer(0, 0, 8, 1, 1, 1e-5, 0, 1)
        three.batches.push(at.mean[0])
        three.running.push([at.rmean[0], at.rvar[0]])
    }
    redraw(draw3)
}
function load3() {
    at.x.set(three.x)
    at.gamma[0] = 1
    at.beta[0] = 0
}
function draw3() {
    const [rm, rv] = three.running.at(-1)
    load3()
    nrm.layer(0, 0, 8, 1, 1, 1e-5, 0, 0)
    const train = [...at.y.slice(0, 8)]
    const mu = at.mean[0]
    ;[at.rmean[0], at.rvar[0]] = [rm, rv]
    nrm.layer(0, 1, 8, 1, 1, 1e-5, 0, 0)
    const infer = [...at.y.slice(0, 8)]
    const count = Math.max(40, three.batches.length)
    const X = (t) => 50 + ((wide - 80) * t) / count
    const Y = (v) => 200 - 36 * v
    for (let v = 0; v <= 5; v++) {
        plot3.put(`line ${v}`, 'path', { d: `M50 ${Y(v)}H${wide - 30}`,
            class: v ? 'rule' : 'axis' })
        plot3.put(`label ${v}`, 'text', { x: 40, y: Y(v) + 5, class: 'soft',
            'text-anchor': 'end' }, f(v, 0))
    }
    three.batches.forEach((v, t) => plot3.put(`batch ${t}`, 'circle', { cx: X(t + 1), cy: Y(v),
        r: 4, fill: 'blue' }))
    plot3.put('running', 'path', { stroke: 'orange', 'stroke-width': 3, fill: 'none',
        d: `M${three.running.map(([v], t) => `${X(t).toFixed(1)} ${Y(v).toFixed(1)}`).join('L')}` })
    plot3.put('name 1', 'text', { x: 60, y: 16, style: 'fill:var(--blue)' }, 'dots: batch mean')
    plot3.put('name 2', 'text', { x: 200, y: 16, style: 'fill:var(--orange)' },
        'line: running mean')
    plot3.put('name 3', 'text', { x: wide - 30, y: 222, class: 'soft', 'text-anchor': 'end' },
        'training steps →')
    plot3.done()
    const row = (name, a) =>
        `<tr><th scope="row">${name}</th>${a.map((v) => `<td>${f(v, 2)}</td>`).join('')}</tr>`
    $('table3').tBodies[0].innerHTML = row('<i>x</i>', three.x) +
        row('<i>y</i>, training', train) + row('<i>y</i>, inference', infer)
    $('stats3').textContent = `After ${three.batches.length} steps: batch mean ${
        f(mu)}, running mean ${f(rm)}, running variance ${f(rv)}.`
}
$('step1').addEventListener('click', () => steps3(1))
$('step20').addEventListener('click', () => steps3(20))
$('reset3').addEventListener('click', reset3)

// ---- 4: a gradient check -----------------------------------------------------------------------
function draw4() {
    const kind = +$('kind4').value
    load2(two.x, $('ones').checked)
    nrm.layer(kind, 0, N2, C2, G2, 1e-5, two.seed, 0)
    const status = nrm.check(+$('mistake').value)
    const names = ['<i>x</i>', '<i>γ</i>', '<i>β</i>'].slice(0, kind === 3 ? 2 : 3)
    let wrong = 0
    $('table4').tBodies[0].innerHTML = names.map((name, k) => {
        const [checked, bad, error, analytic, numeric] = at.report.slice(6 * k, 6 * k + 6)
        wrong += bad
        return `<tr><th scope="row">${name}</th><td>${checked}</td><td>${bad}</td><td>${
            minus(error.toExponential(1))}</td><td>${f(analytic, 6)}</td><td>${
            f(numeric, 6)}</td></tr>`
    }).join('')
    const verdict = $('verdict')
    verdict.className = `verdict ${status === 0 ? 'good' : 'bad'}`
    verdict.textContent = status === 0
        ? 'The gradients are right: nothing is off by more than 10⁻⁷.'
        : `${wrong} entries of the gradient are wrong.`
}
for (const id of ['kind4', 'mistake', 'ones'])
    $(id).addEventListener('change', () => redraw(draw4))

// ---- 5: a network on two spirals ---------------------------------------------------------------
const GRID = 40
const five = { loss: [[], []], steps: 0, turn: 0, running: false, failed: [false, false] }
const chart = board($('loss'))
const lr = slider('lr', -0.5, (v) => f(10 ** v, 3), reset5)
const points = view(nrm.net_points(), 600)
function reset5() {
    five.loss = [[], []]
    five.steps = 0
    five.failed = [false, false]
    const seed = Math.max(1, +$('seed').value || 1)
    nrm.net_init(0, 0, seed, 10 ** lr.value)
    nrm.net_init(1, +$('norm5').value, seed, 10 ** lr.value)
    $('name5').textContent = $('norm5').selectedOptions[0].textContent
    redraw(draw5)
}
const small = document.createElement('canvas')
small.width = small.height = GRID
function draw5() {
    const css = getComputedStyle(document.documentElement)
    const [blue, orange, paper] = ['--blue', '--orange', '--paper'].map((v) =>
        css.getPropertyValue(v).trim().slice(1).match(/../g).map((h) => parseInt(h, 16)))
    five.turn ^= 1
    for (let k = 0; k < 2; k++) {
        if (five.running && k === five.turn) continue // each in every other frame
        const map = view(nrm.net_map(k), GRID * GRID)
        const image = new ImageData(GRID, GRID)
        map.forEach((p, i) => {
            const [to, mix] = p > 0.5 ? [orange, (p - 0.5) * 0.9] : [blue, (0.5 - p) * 0.9]
            for (let c = 0; c < 3; c++) image.data[4 * i + c] = paper[c] + mix * (to[c] - paper[c])
            image.data[4 * i + 3] = 255
        })
        small.getContext('2d').putImageData(image, 0, 0)
        const pen = $(`net${k}`).getContext('2d')
        pen.drawImage(small, 0, 0, 280, 280)
        for (let i = 0; i < 300; i++) {
            pen.fillStyle = `rgb(${i % 2 ? orange : blue})`
            pen.fillRect(140 + points[2 * i] * 107.7 - 1.5, 140 - points[2 * i + 1] * 107.7 - 1.5,
                3, 3)
        }
        const loss = five.loss[k].at(-1)
        $(`said${k}`).textContent = five.failed[k] ? 'not finite: the step was too long'
            : loss === undefined ? 'untrained' : `loss ${f(loss)}, ${
                f(100 * nrm.net_accuracy(k), 0)} % right`
    }
    const count = Math.max(100, five.loss[0].length)
    const Y = (v) => 160 - Math.min(1, v) * 140
    for (const v of [0, 0.5, 1]) {
        chart.put(`line ${v}`, 'path', { d: `M50 ${Y(v)}H${wide - 30}`,
            class: v ? 'rule' : 'axis' })
        chart.put(`label ${v}`, 'text', { x: 42, y: Y(v) + 5, class: 'soft',
            'text-anchor': 'end' }, String(v))
    }
    five.loss.forEach((a, k) => {
        const stride = Math.ceil(a.length / 320)
        const line = a.filter((v, t) => t % stride === 0).map((v, t) =>
            `${(50 + ((wide - 80) * t * stride) / count).toFixed(1)} ${Y(v).toFixed(1)}`).join('L')
        chart.put(`loss ${k}`, 'path', { d: line ? `M${line}` : '', fill: 'none',
            stroke: k ? 'blue' : 'orange', 'stroke-width': 2.5 })
    })
    chart.put('name 0', 'text', { x: wide - 250, y: 16, style: 'fill:var(--orange)' }, '— no norm')
    chart.put('name 1', 'text', { x: wide - 160, y: 16, style: 'fill:var(--blue)' },
        `— ${$('name5').textContent}`)
    chart.put('steps', 'text', { x: wide - 30, y: 182, class: 'soft', 'text-anchor': 'end' },
        `loss after ${five.steps} steps`)
    chart.done()
}
function train5() { // as many steps as fit well into a frame
    const until = performance.now() + 4
    do {
        for (let k = 0; k < 2; k++) {
            if (five.failed[k]) continue
            const loss = nrm.net_train(k, 5)
            if (loss >= 0) five.loss[k].push(loss)
            else five.failed[k] = true
        }
        five.steps += 5
    } while (performance.now() < until)
    draw5()
    if (five.running) setTimeout(() => redraw(train5))
}
function run(on) {
    five.running = on
    $('run').textContent = on ? 'Pause' : 'Train'
    $('run').setAttribute('aria-pressed', on)
    redraw(on ? train5 : draw5)
}
$('run').addEventListener('click', () => run(!five.running))
$('reset5').addEventListener('click', reset5)
$('norm5').addEventListener('change', reset5)
$('seed').addEventListener('input', reset5)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraw(draw5))

// ---- predict, then look ------------------------------------------------------------------------
const QUESTIONS = { // question, choices, the right one, why, what to show
    one: [
        ['Add 3 to every x. What happens to x̂?', ['it moves by 3', 'nothing', 'it shrinks'], 1,
            'The mean moves along and is subtracted again. A bias before batch norm is lost.',
            () => (one.x = one.x.map((v) => v + 3))],
        ['Move the last x far away. What happens to the other x̂?',
            ['nothing', 'they spread out', 'they crowd together'], 2,
            'One outlier makes the standard deviation large, and everybody is divided by it.',
            () => (outlier.value = 40)],
        ['Let all dy be equal. What is dx?', ['the same for all', '0', 'γr times dy'], 1,
            'A constant gradient asks to shift all y, and a shift of all x cannot do that.',
            () => (one.dy = one.dy.map(() => 1))],
        ['Take a batch of two. What is dx?', ['almost 0, whatever dy is', 'half of dy', 'like dy'],
            0, 'Two values have two directions. The mean takes one, the variance the other.',
            () => (n.value = 2)],
    ],
    shared: [
        ['In batch norm, which outputs change when one number changes?',
            ['its row', 'its column', 'all'], 1,
            'The channel’s mean and variance are taken over the examples, which are the rows.',
            () => ((two.at = 8), setKind(0))],
        ['Add 2 to a whole row. Which layer’s output changes?',
            ['layer norm', 'RMS norm', 'neither'], 1,
            'Layer norm subtracts the row’s mean, and 2 goes with it. RMS norm subtracts nothing.',
            () => ($('shift2').click(), setKind(3))],
    ],
    running: [
        ['With weight 0.1, how many steps bring the running mean nine tenths of the way?',
            ['9', '22', '100'], 1,
            'What is left shrinks by 0.9 a step, and 0.9 to the 22nd is 0.1.',
            () => (reset3(), (weight.value = 0.1), steps3(22))],
        ['With weight 1, what are the running statistics?',
            ['those of all batches', 'those of the last batch', 'always 0 and 1'], 1,
            'The old value gets the weight 0.', () => (reset3(), (weight.value = 1), steps3(20))],
    ],
    checking: [
        ['All γ are 1, and the backward pass forgets γ. Does the check notice?', ['yes', 'no'], 1,
            'With γ = 1 the mistake changes nothing. Check with random γ.', () => {
                $('ones').checked = true
                $('mistake').value = 3
            }],
        ['RMS norm has no mean. Does “the mean taken for a constant” hurt it?', ['yes', 'no'], 1,
            'There is no term to forget.', () => {
                $('kind4').value = 3
                $('mistake').value = 1
            }],
    ],
    spirals: [
        ['Learning rate 2: which network still learns?',
            ['without norm', 'with batch norm', 'both'], 1,
            'Before a norm, longer weights mean smaller gradients: the step length adjusts.',
            () => {
                lr.value = 0.3
                reset5()
                run(true)
            }],
    ],
}
for (const [id, questions] of Object.entries(QUESTIONS)) {
    const place = document.querySelector(`.questions[data-for="${id}"]`)
    questions.forEach(([question, choices, right, why, look], k) => {
        const q = document.createElement('div')
        q.className = 'q'
        q.setAttribute('role', 'group')
        q.setAttribute('aria-label', question)
        q.innerHTML = `<p><b>Predict, then look.</b> ${question}</p><div class="choices">${
            choices.map((c) => `<button type="button" aria-pressed="false">${c}</button>`)
                .join('')}</div><div class="answer" role="status"></div>`
        const answer = q.querySelector('.answer')
        q.querySelectorAll('button').forEach((b, j, all) => b.addEventListener('click', () => {
            all.forEach((o) => o.setAttribute('aria-pressed', o === b))
            answer.innerHTML = `<b class="${j === right ? 'good' : 'bad'}">${j === right ? 'Yes.'
                : `No: ${choices[right]}.`}</b> ${why} `
            const see = document.createElement('button')
            see.type = 'button'
            see.textContent = 'Look'
            see.addEventListener('click', () => {
                look()
                for (const draw of [draw1, draw2, draw3, draw4]) redraw(draw)
                $(id).scrollIntoView()
            })
            answer.append(see)
        }))
        place.append(q)
    })
}

addEventListener('resize', () => {
    measure()
    for (const draw of [draw1, draw3, draw5]) redraw(draw)
})
reset3()
reset5()
for (const draw of [draw1, draw2, draw4]) redraw(draw)
