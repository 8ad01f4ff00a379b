// A pen for SVG drawings in two colour schemes. It measures every text with the widths of a wide
// font and refuses a drawing in which a text leaves the frame or touches another one.
const PALETTE = { // light, dark
    paper: ['#fffefb', '#17181b'],
    ink: ['#1d1c1a', '#e4e0d8'],
    soft: ['#635e56', '#a8a297'],
    rule: ['#cbc5b8', '#4a4a4f'],
    pale: ['#f1ede4', '#2c2d33'],
    blue: ['#0067a5', '#6bbcf0'],
    orange: ['#b84e00', '#ff9e5e'],
    green: ['#007a55', '#4fcf9f'],
    sky: ['#d6e8f5', '#17364b'],
    peach: ['#fbe3d1', '#4a2b18'],
    mint: ['#d3eee3', '#143d30'],
}
const ITALIC = /[A-Za-zα-ω]\u0302?/
const escape = (s) => s.replace(/&/g, '&amp;').replace(/</g, '&lt;')
export const round = (v) => String(Math.round(v * 10) / 10 || 0)
export const minus = (v, digits = 3) => v.toFixed(digits).replace(/^-(0\.?0*)$/, '$1')
    .replace('-', '−')

function widthOf(c) {
    if (c === '\u0302') return 0
    if (/[ijl.,:;'|!()[\]{} ]/.test(c)) return 0.37
    if (/[mwMW@…→←∑]/.test(c)) return 0.95
    if (/[A-Z+−=<>≈·×√∂⟨⟩]/.test(c)) return /[·⟨⟩]/.test(c) ? 0.42 : 0.75
    return 0.6
}

// "$x_1$" is set as a formula: letters italic, _ lowers and ^ raises the next sign or {group}.
// "@o" paints what follows orange, so @b blue, @g green; "@k" ends it.
const COLOURS = { b: 'blue', o: 'orange', g: 'green', k: '' }
function pieces(text) {
    const out = []
    let math = false
    let level = 0
    let group = false
    let colour = ''
    const add = (s) => {
        const face = math ? (ITALIC.test(s) ? 'i' : 'm') : ''
        const kind = `${face} ${level} ${colour}`
        if (out.length && out.at(-1).kind === kind) out.at(-1).text += s
        else out.push({ kind, text: s, level, face, colour })
    }
    for (const c of text.match(/@[bogk]|[\s\S]\u0302?/gu) ?? []) {
        if (c[0] === '@') colour = COLOURS[c[1]]
        else if (c === '$') math = !math
        else if (math && c === '_') level = 1
        else if (math && c === '^') level = -1
        else if (math && c === '{' && level) group = true
        else if (math && c === '}' && group) group = (level = 0) > 0
        else {
            add(c)
            if (!group) level = 0
        }
    }
    return out
}

export function drawing(name, width, height, title, description) {
    const body = []
    const texts = []
    const used = new Set(['paper', 'rule'])
    const problems = []
    const attrs = (o) => Object.entries(o).map(([k, v]) => ` ${k}="${v}"`).join('')
    const paint = (style) => { // "fill-name stroke-name": fsky, sblue, s2 (width), dash
        const words = style.split(' ')
        for (const w of words) if (PALETTE[w.slice(1)]) used.add(w.slice(1))
        const filled = words.some((w) => w[0] === 'f')
        return { class: words.join(' '), ...(!filled && { fill: 'none' }) }
    }
    const d = { name, width, height }
    d.add = (tag, style, o) => body.push(`<${tag}${attrs({ ...paint(style), ...o })}/>`)
    d.rect = (x, y, w, h, style, rx = 0) =>
        d.add('rect', style, { x: round(x), y: round(y), width: round(w), height: round(h),
            ...(rx && { rx }) })
    d.circle = (x, y, r, style) => d.add('circle', style, { cx: round(x), cy: round(y), r })
    d.path = (points, style) => d.add('path', style, { d: points })
    d.poly = (points, style, close = false) =>
        d.path(`M${points.map((p) => p.map(round).join(' ')).join('L')}${close ? 'Z' : ''}`, style)
    d.head = (x, y, angle, colour, size = 8) => {
        const at = (turn, r) => [x + r * Math.cos(angle + turn), y + r * Math.sin(angle + turn)]
        d.poly([[x, y], at(2.75, size), at(-2.75, size)], `f${colour}`, true)
    }
    // Through the points, with a head at the last one.
    d.arrow = (points, colour = 'ink', more = '', size = 8) => {
        const [p, q] = points.slice(-2)
        const angle = Math.atan2(q[1] - p[1], q[0] - p[0])
        const stop = [q[0] - 5 * Math.cos(angle), q[1] - 5 * Math.sin(angle)]
        d.poly([...points.slice(0, -1), stop], `s${colour} ${more}`.trim())
        d.head(q[0], q[1], angle, colour, size)
    }
    d.curve = (p, c, q, colour, more = '') => { // quadratic
        const angle = Math.atan2(q[1] - c[1], q[0] - c[0])
        const stop = [q[0] - 5 * Math.cos(angle), q[1] - 5 * Math.sin(angle)]
        const f = (v) => v.map(round).join(' ')
        d.path(`M${f(p)}Q${f(c)} ${f(stop)}`, `s${colour} ${more}`.trim())
        d.head(q[0], q[1], angle, colour)
    }
    d.text = (x, y, text, style = 'ink', anchor = 'middle', size = 14) => {
        used.add(style.split(' ')[0])
        let w = 0
        let html = ''
        let shift = 0
        for (const p of pieces(text)) {
            const small = p.level ? 0.72 : 1
            const to = p.level === 1 ? 0.25 : p.level === -1 ? -0.38 : 0
            const dy = to - shift
            shift = to
            w += [...p.text].reduce((sum, c) => sum + widthOf(c), 0) * small
            const o = {}
            if (p.colour) used.add(p.colour)
            if (p.face || p.colour)
                o.class = [p.face, p.colour && `f${p.colour}`].filter(Boolean).join(' ')
            if (small < 1) o['font-size'] = round(size * small)
            if (dy) o.dy = round(dy * size)
            html += Object.keys(o).length ? `<tspan${attrs(o)}>${escape(p.text)}</tspan>`
                : escape(p.text)
        }
        w *= size
        const left = anchor === 'middle' ? x - w / 2 : anchor === 'end' ? x - w : x
        const box = { left, right: left + w, top: y - 0.76 * size, bottom: y + 0.22 * size, text }
        if (left < 4 || box.right > width - 4 || box.top < 4 || box.bottom > height - 4)
            problems.push(`"${text}" leaves the frame`)
        for (const b of texts) {
            if (b.left < box.right && box.left < b.right && b.top < box.bottom &&
                box.top < b.bottom) problems.push(`"${text}" touches "${b.text}"`)
        }
        texts.push(box)
        const at = { x: round(x), y: round(y), class: style.split(' ').map((s) =>
            PALETTE[s] ? `f${s}` : s === 'halo' ? 'halo spaper' : s).join(' ') }
        if (anchor !== 'start') at['text-anchor'] = anchor
        if (size !== 14) at['font-size'] = size
        body.push(`<text${attrs(at)}>${html}</text>`)
    }
    // A box with a name, or two lines.
    d.box = (x, y, w, h, lines, style = 'fpale srule', colour = 'ink', size = 14) => {
        d.rect(x - w / 2, y - h / 2, w, h, style, 6)
        lines.forEach((line, k) =>
            d.text(x, y + 0.33 * size + (k - (lines.length - 1) / 2) * size * 1.35, line, colour,
                'middle', size))
    }
    d.svg = () => {
        const rules = (k) => [...used].sort().map((c) =>
            `.f${c}{fill:${PALETTE[c][k]}}.s${c}{stroke:${PALETTE[c][k]}}`).join('')
        return { problems, svg: `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${
            height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="t d">
<title id="t">${escape(title)}</title><desc id="d">${escape(description)}</desc>
<style>
svg{font:14px Helvetica,Arial,"Liberation Sans",sans-serif}
.i,.m{font-family:"Times New Roman",Times,"Liberation Serif",serif}
.i{font-style:italic}
.b{font-weight:600}
path,rect,circle{stroke-width:1.4;stroke-linejoin:round}
text{white-space:pre}.halo{paint-order:stroke;stroke-width:5}
.w2{stroke-width:2.2}.w3{stroke-width:3}.w0{stroke-width:.8}
.dash{stroke-dasharray:5 4}.thin{opacity:.55}
${rules(0)}
@media(prefers-color-scheme:dark){${rules(1)}}
</style>
<rect class="fpaper srule" x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="8"/>
${body.join('\n')}
</svg>
` }
    }
    return d
}
