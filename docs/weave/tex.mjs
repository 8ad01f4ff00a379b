// From the header's equations, written in UTF-8, to TeX.
//
//     import { equations, tex } from './tex.mjs'
//     tex('x̂ᵢ = (xᵢ − μ)·r')       // '\\hat x_i = (x_i - \\mu) r'
//     node docs/weave/tex.mjs      // prints tag and TeX of every equation of normlayers.h
//
// A small parser rather than a row of replacements: it knows operands from operators, so that
// "in" is a number in √(6/(in + out)) and a word in "uniform in ±1", and it throws at anything it
// does not understand. The grammar, loosest first:
//
//     line     = parts between , ; : and relations (= ≤ < > ≥ ~ ←), words among them
//     sum      = product {(+ | − | ± | ⊕ | mod) product}
//     product  = factor {(· | / | nothing, before a bar or a name) factor}
//     factor   = atom with hat, primes, subscripts, superscripts, [index]; ∑ᵢ, max, ln before it
//     atom     = letter, d-name (dx), number, name, ( ), ⟨ ⟩, | |, ⌊ ⌋, ⌈ ⌉, √ factor, f( )
//
// The TeX is what both KaTeX (strict) and the MathJax of GitHub take: no macros of its own.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { dirname, join } from 'node:path'

const SUB = {
    ᵢ: 'i',
    ⱼ: 'j',
    ₖ: 'k',
    ₙ: 'n',
    ₛ: 's',
    ₘ: 'm',
    ₜ: 't',
    '₊': '+',
    '₀': '0',
    '₁': '1',
    '₂': '2',
    '₃': '3',
    '₄': '4',
    '₅': '5',
    '₆': '6',
    '₇': '7',
    '₈': '8',
    '₉': '9',
}
const SUP = {
    '⁰': '0',
    '¹': '1',
    '²': '2',
    '³': '3',
    '⁴': '4',
    '⁵': '5',
    '⁶': '6',
    '⁷': '7',
    '⁸': '8',
    '⁹': '9',
    '⁻': '-',
    ᵀ: '\\top',
    ᵗ: 't',
    ᵖ: 'p',
    ᵏ: 'k',
    ⁿ: 'n',
}
const GREEK = {
    α: '\\alpha',
    β: '\\beta',
    γ: '\\gamma',
    δ: '\\delta',
    ε: '\\varepsilon',
    ζ: '\\zeta',
    η: '\\eta',
    θ: '\\theta',
    κ: '\\kappa',
    λ: '\\lambda',
    μ: '\\mu',
    ν: '\\nu',
    ξ: '\\xi',
    π: '\\pi',
    ρ: '\\rho',
    σ: '\\sigma',
    τ: '\\tau',
    φ: '\\varphi',
    χ: '\\chi',
    ψ: '\\psi',
    ω: '\\omega',
    ℓ: '\\ell',
    Σ: '\\Sigma',
    Δ: '\\Delta',
    '∞': '\\infty',
}
const RELATION = {
    '=': '=',
    '≤': '\\le',
    '≥': '\\ge',
    '<': '<',
    '>': '>',
    '≠': '\\ne',
    '≈': '\\approx',
    '~': '\\sim',
    '←': '\\leftarrow',
    '→': '\\to',
}
const PLUS = { '+': '+', '−': '-', '±': '\\pm', '⊕': '\\oplus', mod: '\\bmod' }
const CLOSER = { '(': ')', '⟨': '⟩', '⌊': '⌋', '⌈': '⌉', '|': '|' }
const OPEN = { '(': '(', '⟨': '\\langle', '⌊': '\\lfloor', '⌈': '\\lceil', '|': '|' }
const CLOSE = { '(': ')', '⟨': '\\rangle', '⌊': '\\rfloor', '⌈': '\\rceil', '|': '|' }
const PREFIX = { '∑': '\\sum', max: '\\max', min: '\\min', ln: '\\ln' }
const KNOWN = { max: '\\max', min: '\\min', tanh: '\\tanh' }

// ---- tokens --------------------------------------------------------------------------------

function tokenize(source) {
    const s = source
    const tokens = []
    let i = 0
    let space = false
    const push = (kind, text, extra = {}) => {
        tokens.push({ kind, text, space, ...extra })
        space = false
    }
    // Subscripts, superscripts and primes that follow a letter or a closing bracket.
    function marks() {
        let sub = ''
        let sup = ''
        let prime = ''
        for (;;) {
            if (s[i] in SUB) {
                while (s[i] in SUB) sub += SUB[s[i++]]
                if (/\+\d?$/.test(sub) && /[A-Z]/.test(s[i] ?? '')) sub += s[i++]
            } else if (s[i] in SUP) {
                while (s[i] in SUP) sup += SUP[s[i++]]
            } else if (s[i] === '_' && /[a-zμσ]/.test(s[i + 1] ?? '')) {
                const word = /^[a-zμσ]+/.exec(s.slice(i + 1))[0]
                sub += word === 'max' ? '\\max' : [...word].map((c) => GREEK[c] ?? c).join('')
                i += 1 + word.length
            } else if ('′″‴'.includes(s[i] ?? ' ')) {
                prime += "'".repeat('′″‴'.indexOf(s[i++]) + 1)
            } else if (s[i] === '^' && s[i + 1] !== '(') {
                sup += s[i + 1]
                i += 2
            } else {
                return { sub, sup, prime }
            }
        }
    }
    while (i < s.length) {
        const c = s[i]
        if (c === ' ') {
            space = true
            i++
            continue
        }
        const rest = s.slice(i)
        let m
        if ((m = /^`([^`]+)`/.exec(rest))) {
            i += m[0].length
            push('word', m[1], { code: true })
        } else if ((m = /^(∑|max|min|ln)(?![a-z(])/.exec(rest))) {
            i += m[0].length
            push('prefix', m[1], marks())
        } else if ((m = /^mod\b/.exec(rest))) {
            i += 3
            push('plus', 'mod')
        } else if (
            (m = /^d?W[hx](?![a-z])/.exec(rest)) ||
            (m = /^d[a-zA-Zβγθμσ](?![a-zA-Z])/.exec(rest))
        ) {
            i += m[0].length
            push('letter', m[0], marks())
        } else if ((m = /^[A-Za-z][A-Za-z]+(?:[_'-][a-zA-Z]+)*/.exec(rest))) {
            i += m[0].length
            push('word', m[0], marks())
        } else if ((m = /^L([12∞])(?!\w)/.exec(rest))) {
            i += m[0].length
            push('letter', 'L', { sub: GREEK[m[1]] ?? m[1], sup: '', prime: '' })
        } else if ((m = /^∂?[A-Za-zℓα-ωΣΔ∞]\u0302?/.exec(rest))) {
            i += m[0].length
            push('letter', m[0], marks())
        } else if ((m = /^\d+(\.\d+)?/.exec(rest))) {
            i += m[0].length
            push('number', m[0], marks())
        } else if (c === '½') {
            i++
            push('number', '½', { sub: '', sup: '', prime: '' })
        } else if (c in RELATION) {
            i++
            push('relation', c)
        } else if (c in PLUS) {
            i++
            push('plus', c)
        } else if (c === '^' && s[i + 1] === '(') {
            i++
            push('power', '^')
        } else if ('([⟨⌊⌈'.includes(c)) {
            i++
            push('open', c)
        } else if (')]⟩⌋⌉'.includes(c)) {
            i++
            push('close', c, marks())
        } else if (c === '|') {
            i++
            push('bar', c, marks())
        } else if ('·/√…,;:'.includes(c)) {
            i++
            push(c, c)
        } else {
            throw new Error(`character ${c} in: ${source}`)
        }
    }
    // A bar closes what an earlier one has opened, if an operand stands before it.
    const open = []
    tokens.forEach((t, k) => {
        if (t.kind === 'open') open.push(t.text)
        else if (t.kind === 'close') open.pop()
        else if (t.kind === 'bar') {
            const before = tokens[k - 1]?.kind
            const closes =
                open.at(-1) === '|' && ['letter', 'number', 'word', 'close'].includes(before)
            t.kind = closes ? 'close' : 'open'
            if (closes) open.pop()
            else open.push('|')
        }
    })
    return tokens
}

// ---- parser --------------------------------------------------------------------------------

class Parser {
    constructor(source) {
        this.source = source
        this.tokens = tokenize(source)
        this.at = 0
    }
    get now() {
        return this.tokens[this.at] ?? { kind: 'end', text: '' }
    }
    get next() {
        return this.tokens[this.at + 1] ?? { kind: 'end', text: '' }
    }
    fail(what) {
        throw new Error(`${what} at '${this.now.text}' (item ${this.at + 1}) in: ${this.source}`)
    }
    take(kind, text) {
        if (this.now.kind !== kind || (text && this.now.text !== text))
            this.fail(`no ${text ?? kind}`)
        return this.tokens[this.at++]
    }
    // Words that are text, not a quantity: two in a row, or one after an operand.
    isText(afterOperand) {
        if (this.now.kind !== 'word') return false
        if (this.now.code || afterOperand) return true
        if (this.next.kind === 'open' && this.next.text === '(' && !this.next.space) return false
        if (this.next.kind === 'word' || this.next.kind === 'letter') return true
        return /^(if|or|and|else|where|for|which|with|over|of|frozen)$/.test(this.now.text)
    }
    line(until) {
        const parts = []
        let operand = false
        for (;;) {
            const t = this.now
            if (t.kind === 'end') break
            if (until && t.kind === 'close' && t.text === until) break
            if (t.kind === 'relation') {
                this.at++
                parts.push({ is: 'relation', text: t.text })
                operand = false
            } else if (t.kind === ',' || t.kind === ';' || t.kind === ':') {
                this.at++
                parts.push({ is: 'comma', text: t.text })
                operand = false
            } else if (this.isText(operand)) {
                const words = []
                while (this.now.kind === 'word') words.push(this.tokens[this.at++])
                parts.push({ is: 'text', words })
                operand = false
            } else if (operand && t.kind === 'open' && t.text === '(') {
                parts.push(this.remark())
            } else {
                parts.push(this.sum())
                operand = true
            }
        }
        return { is: 'line', parts }
    }
    // (frozen), (L1): said about what stands before.
    remark() {
        this.take('open')
        let end = this.at
        while (this.tokens[end] && this.tokens[end].kind !== 'close') end++
        const inside = this.tokens.slice(this.at, end)
        if (inside.every((t) => 'word,:'.includes(t.kind))) {
            this.at = end + 1
            return { is: 'remark', text: inside.map((t) => (t.space ? ' ' : '') + t.text).join('') }
        }
        const body = this.line(')')
        this.take('close', ')')
        return { is: 'remark', body }
    }
    sum() {
        const terms = []
        if (this.now.kind === 'plus' && '−±+'.includes(this.now.text)) {
            terms.push({ is: 'op', text: this.tokens[this.at++].text })
        }
        terms.push(this.product())
        while (this.now.kind === 'plus') {
            terms.push({ is: 'op', text: this.tokens[this.at++].text })
            terms.push(this.product())
        }
        return terms.length === 1 ? terms[0] : { is: 'sum', terms }
    }
    startsFactor() {
        return this.now.kind === 'open' && this.now.text === '|'
    }
    product() {
        let factors = []
        const numerators = () => {
            // What stands over the line: a bracket alone, if it is the last factor; else back to
            // the last ∑ all that is short.
            let from = factors.length - 1
            const last = factors[from]
            const short = (f) =>
                f.is === 'prefixed' ||
                (['letter', 'number', 'word'].includes(f.is) && !f.text.startsWith('∂'))
            if (!short(last)) return from
            while (from > 0 && short(factors[from - 1])) from--
            return from
        }
        for (;;) {
            while (this.now.kind === 'prefix' && this.now.text === '∑') {
                const t = this.tokens[this.at++]
                factors.push({ is: 'prefix', ...t })
            }
            factors.push(this.factor())
            for (;;) {
                if (this.now.kind !== '/') break
                this.at++
                const under = this.factor()
                // Only what the denominator names again: δ²·n·B/(n + B) is δ² times a share.
                let from = numerators()
                const names = letters(under)
                if (under.is === 'group' && names.has(name(factors.at(-1)))) {
                    from = factors.length - 1
                    while (from > 0 && names.has(name(factors[from - 1]))) from--
                }
                const over = factors.splice(from)
                factors.push({ is: 'fraction', over: product(over), under })
            }
            if (this.now.kind === '·') {
                this.at++
                if (this.now.kind === '…') {
                    this.at++
                    factors.push({ is: 'dots' })
                    this.take('·')
                }
                continue
            }
            if (this.startsFactor()) continue
            return product(factors)
        }
    }
    factor() {
        const t = this.now
        let node
        if (t.kind === 'plus' && t.text === '±') {
            // within ±1
            this.at++
            return { is: 'signed', body: this.factor() }
        }
        if (t.kind === '√') {
            this.at++
            return { is: 'root', body: bare(this.factor()) }
        }
        if (t.kind === '…') {
            this.at++
            return { is: 'ellipsis' }
        }
        if (t.kind === 'prefix') {
            this.at++
            return { is: 'prefixed', prefix: { is: 'prefix', ...t }, body: this.factor() }
        }
        if (t.kind === 'number') {
            this.at++
            node = { is: 'number', ...t }
        } else if (t.kind === 'letter' || t.kind === 'word') {
            this.at++
            node = { ...t, is: t.kind }
            if (this.now.kind === 'open' && this.now.text === '(' && !this.now.space) {
                this.at++
                const body = this.line(')')
                this.take('close', ')')
                return { is: 'call', name: node, body }
            }
            while (this.now.kind === 'open' && this.now.text === '[') {
                this.at++
                const body = this.line(']')
                const end = this.take('close', ']')
                node = { is: 'indexed', base: node, body, ...marksOf(end) }
            }
        } else if (t.kind === 'open') {
            this.at++
            const body = this.line(CLOSER[t.text])
            const end = this.take('close', CLOSER[t.text])
            node = { is: 'group', text: t.text, body, ...marksOf(end) }
        } else {
            this.fail('no operand')
        }
        if (this.now.kind === 'power') {
            this.at++
            this.take('open', '(')
            node.power = this.line(')')
            this.take('close', ')')
        }
        return node
    }
}

const marksOf = (t) => ({ sub: t.sub, sup: t.sup, prime: t.prime })
const product = (factors) => (factors.length === 1 ? factors[0] : { is: 'product', factors })

// The brackets of a root's or fraction's part are not needed any more.
function bare(node) {
    return node.is === 'group' && node.text === '(' && !node.sub && !node.sup && !node.power
        ? node.body
        : node
}
function name(node) {
    return node?.is === 'letter' ? node.text + node.sub : ''
}
function letters(node, found = new Set()) {
    if (!node || typeof node !== 'object') return found
    if (node.is === 'letter') found.add(name(node))
    for (const value of Object.values(node)) {
        if (Array.isArray(value)) value.forEach((v) => letters(v, found))
        else if (value && typeof value === 'object') letters(value, found)
    }
    return found
}

// ---- TeX -----------------------------------------------------------------------------------

const escape = (text) => text.replace(/_/g, '\\_')

// Does it need brackets that grow?
function tall(node, slash) {
    if (!node || typeof node !== 'object') return false
    if (Array.isArray(node)) return node.some((n) => tall(n, slash))
    if (node.is === 'fraction') return !slash || tall(node.over, true) || tall(node.under, true)
    if (node.is === 'prefix') return node.text === '∑' && !slash
    if (node.is === 'call' || node.is === 'indexed') return tall(node.body, true)
    return (
        tall(node.body, slash) ||
        tall(node.parts, slash) ||
        tall(node.terms, slash) ||
        tall(node.factors, slash)
    )
}

function withMarks(base, t) {
    const braces = (m) =>
        /^(\\[a-z]+|.)$/.test(m) && m !== '\\max' ? (m.startsWith('\\') ? ' ' + m : m) : `{${m}}`
    let out = base + (t.prime ?? '')
    if (t.sub) out += '_' + braces(t.sub).trim()
    if (t.sup) out += '^' + braces(t.sup).trim()
    return out
}

function letter(t) {
    let text = t.text
    let front = ''
    if (text.startsWith('∂')) {
        front = '\\partial '
        text = text.slice(1)
    } else if (/^d./.test(text)) {
        front = 'd'
        text = text.slice(1)
    }
    let base = text.replace('\u0302', '')
    base = GREEK[base] ?? (base.length > 1 ? `\\mathit{${base}}` : base)
    if (text.includes('\u0302')) base = `\\hat ${base}`
    if (front === 'd' && base.startsWith('\\hat')) base = `{${base}}`
    return withMarks(front + base, t)
}

function bracket(text, inside, grows) {
    const open = OPEN[text]
    const close = CLOSE[text]
    if (grows) return `\\left${open} ${inside} \\right${close}`
    return `${open}${open.length > 1 ? ' ' : ''}${inside}${close.length > 1 ? ' ' : ''}${close}`
}

function emit(node, slash = false) {
    if (node.power) {
        const { power, ...rest } = node
        return `${emit(rest, slash)}^{${emit(power, true)}}`
    }
    switch (node.is) {
        case 'letter':
            return letter(node)
        case 'number':
            return withMarks(node.text === '½' ? '\\tfrac12' : node.text, node)
        case 'word':
            if (node.text in KNOWN) return withMarks(KNOWN[node.text], node)
            return withMarks(
                node.code ? `\\texttt{${escape(node.text)}}` : `\\mathrm{${escape(node.text)}}`,
                node,
            )
        case 'ellipsis':
            return '\\ldots'
        case 'dots':
            return '\\cdots'
        case 'signed':
            return `{\\pm}${emit(node.body, slash)}`
        case 'root':
            return `\\sqrt{${emit(node.body, slash)}}`
        case 'prefix':
            return withMarks(PREFIX[node.text], node)
        case 'prefixed':
            return product_([node.prefix, node.body], slash)
        case 'group': {
            if (node.body.parts[0]?.is === 'ellipsis') return '(\\cdots)'
            const body = emit(node.body, slash)
            if (plainFraction(node) && !slash) return body
            if (plainFraction(node) && small(node))
                return `\\tfrac${body.replace(/^(.+)\/(.+)$/, '{$1}{$2}')}`
            return withMarks(bracket(node.text, body, tall(node.body, slash)), node)
        }
        case 'call': {
            const name =
                node.name.is === 'word'
                    ? withMarks(
                          KNOWN[node.name.text] ?? `\\mathrm{${escape(node.name.text)}}`,
                          node.name,
                      )
                    : letter(node.name)
            // the distributions of "~ U(a, b)", beside N, the number of examples
            if (/^[UN]$/.test(name) && node.body.parts.some((p) => p.is === 'comma'))
                return `\\mathrm{${name}}` + bracket('(', emit(node.body, true))
            return name + bracket('(', emit(node.body, true), tall(node.body, true))
        }
        case 'indexed': {
            const base = node.base.text === 'E' ? '\\mathrm{E}' : emit(node.base)
            const index = emit(node.body, true).replace(/ ([+-]) /g, '$1')
            return withMarks(`${base}[${index}]`, node)
        }
        case 'fraction':
            if (slash) return `${emit(node.over, true)}/${emit(node.under, true)}`
            return `\\frac{${emit(bare(node.over), true)}}{${emit(bare(node.under), true)}}`
        case 'product':
            return product_(node.factors, slash)
        case 'sum':
            return node.terms
                .map((t, k) => {
                    if (t.is === 'ellipsis') return '\\cdots'
                    if (t.is !== 'op') return emit(t, slash)
                    const sign = PLUS[t.text]
                    return k === 0 ? (sign.length > 1 ? `{${sign}}` : sign) : ` ${sign} `
                })
                .join('')
        case 'line':
            return line(node.parts, slash)
        default:
            throw new Error(`no TeX for ${node.is}`)
    }
}

// (1/M): the fraction's line does what the brackets do.
function plainFraction(node) {
    if (node.text !== '(' || node.sup || node.sub || node.power) return false
    const parts = node.body.parts
    return parts?.length === 1 && parts[0].is === 'fraction'
}

// (1/M) under a root: a small fraction.
function small(node) {
    const { over, under } = node.body.parts[0]
    return over.is === 'number' && under.is === 'letter'
}

function product_(factors, slash) {
    let out = ''
    factors.forEach((f, k) => {
        const text = emit(f, slash)
        if (k > 0) {
            const before = factors[k - 1]
            const wide = (n) =>
                ['indexed', 'call', 'word', 'prefixed'].includes(n.is) ||
                (n.is === 'letter' && /^[d∂]./.test(n.text)) ||
                (n.is === 'letter' && n.text.replace('\u0302', '').length > 1)
            const growing = /^\\left/.test(text)
            if (/^\d/.test(text) && before.is !== 'prefix') out += ' \\cdot '
            else if (before.is === 'prefix') out += ' '
            else if (f.is === 'dots' || before.is === 'dots') out += ' '
            else if (f.is === 'group' && f.text === '(' && /^[A-Z]$/.test(before.text ?? ''))
                out += ' \\cdot '
            else if (before.is === 'word' || f.is === 'word') out += ' \\cdot '
            else if (before.is === 'number' && !growing)
                out += f.is === 'group' || wide(f) ? '\\,' : ' '
            else if (f.is === 'group' && !growing && !plainFraction(f)) out += '\\,'
            else if (wide(f) || wide(before)) out += '\\,'
            else out += ' '
        }
        out += text
    })
    return out
}

// Where a statement ends: a comma or semicolon before parts that hold a relation.
function statements(parts) {
    const out = [[]]
    parts.forEach((p, k) => {
        if (p.is === 'comma' && p.text !== ':') {
            const rest = parts.slice(k + 1)
            const end = rest.findIndex((q) => q.is === 'comma')
            const next = end < 0 ? rest : rest.slice(0, end)
            out.at(-1).push(p)
            if (
                next.some((q) => q.is === 'relation') &&
                next[0].is !== 'text' &&
                parts.slice(0, k).some((q) => q.is === 'relation')
            )
                out.push([])
        } else {
            out.at(-1).push(p)
        }
    })
    return out
}

function run(parts, slash) {
    let out = ''
    parts.forEach((p, k) => {
        if (p.is === 'relation') {
            out = out.trimEnd() + ` ${RELATION[p.text]} `
        } else if (p.is === 'comma') {
            const rest = parts.slice(k + 1)
            const end = rest.findIndex((q) => q.is === 'comma')
            const next = end < 0 ? rest : rest.slice(0, end)
            const related = parts.slice(0, k).some((q) => q.is === 'relation')
            const wide =
                !slash && next.some((q) => (q.is === 'relation' && related) || q.is === 'text')
            out =
                out.trimEnd() +
                p.text +
                (next.length ? (wide ? '\\quad ' : next[0].is === 'text' ? '\\;' : ' ') : '')
        } else if (p.is === 'text') {
            const words = p.words
                .map((w) => (w.code || w.text.includes('_') ? `\x01${w.text}\x02` : w.text))
                .join(' ')
            const first = out === '' || /(\\quad |, |\\;)$/.test(out)
            const text =
                (first ? '' : ' ') +
                words +
                (k + 1 < parts.length && parts[k + 1].is !== 'comma' ? ' ' : '')
            out =
                out.trimEnd() +
                (out.endsWith('\\quad ') ? ' ' : '') +
                text
                    .split(/\x01(.*?)\x02/)
                    .map((piece, at) =>
                        at % 2 ? `\\texttt{${escape(piece)}}` : piece ? `\\text{${piece}}` : '',
                    )
                    .join('')
        } else if (p.is === 'remark') {
            out =
                out.trimEnd() +
                (p.text ? `\\quad \\text{(${p.text})}` : `\\;(${emit(p.body, slash)})`)
        } else {
            out += emit(p, slash)
        }
    })
    return out.trim()
}

// t = a (L1), b (L2), c (L∞): the values stand below each other.
function cases(parts) {
    const at = parts.findIndex((p) => p.is === 'relation' && p.text === '=')
    if (at < 0) return null
    const colon = parts.findIndex((p) => p.is === 'comma' && p.text === ':')
    const from = colon > at ? colon : at
    const rows = [[]]
    let tail = null
    for (const p of parts.slice(from + 1)) {
        if (tail) tail.push(p)
        else if (p.is === 'comma' && p.text === ';') tail = []
        else if (p.is === 'comma' && rows.at(-1).some((q) => q.is === 'remark')) rows.push([])
        else rows.at(-1).push(p)
    }
    const head = `${run(parts.slice(0, from), false)} = `
    if (rows.length > 1 && rows.every((row) => row.at(-1)?.is === 'remark')) {
        const body = rows
            .map((row) => {
                const remark = row.at(-1)
                const said = remark.text ? `\\text{(${remark.text})}` : `(${emit(remark.body)})`
                return `${run(row.slice(0, -1), true)} & ${said}`
            })
            .join(' \\\\ ')
        return (
            `${head}\\begin{cases} ${body} \\end{cases}` +
            (tail ? `\\quad ${run(tail, false)}` : '')
        )
    }
    // x if x > 0, else 0
    const values = parts.slice(from + 1)
    const says = (p, word) => p?.is === 'text' && p.words.map((w) => w.text).join(' ') === word
    if (values[0]?.is !== 'comma' && says(values[1], 'if')) {
        const stop = values.findIndex((p, k) => p.is === 'comma' && says(values[k + 1], 'else'))
        if (
            stop > 0 &&
            !values.slice(2, stop).some((p) => p.is === 'text') &&
            values.length === stop + 3
        ) {
            const [value, when, other] = [
                values.slice(0, 1),
                values.slice(2, stop),
                values.slice(stop + 2),
            ].map((p) => run(p, true))
            const body = `${value} & \\text{if } ${when} \\\\ ${other} & \\text{else}`
            return `${head}\\begin{cases} ${body} \\end{cases}`
        }
    }
    return null
}

function line(parts, slash) {
    return run(parts, slash)
}

// How wide it will be, roughly, in letters.
function width(text) {
    return text
        .replace(/\\(left|right|text|texttt|mathrm|mathit|frac|begin|end|hat|tfrac)\b/g, '')
        .replace(/\\quad/g, '+++')
        .replace(/\\[a-zA-Z]+/g, 'x')
        .replace(/[{}_^&\\ ]/g, '').length
}
const WIDE = 46

export function tex(source) {
    const parser = new Parser(source.trim())
    const { parts } = parser.line()
    if (parser.now.kind !== 'end') parser.fail('left over')
    const inCases = cases(parts)
    if (inCases) return inCases
    const flat = run(parts, false)
    if (width(flat) <= WIDE) return flat
    // Too wide for a page: one statement to a line, aligned at its first relation. One that is too
    // wide alone has its further relations below each other or, if there is none, breaks after a
    // long left side, before an alternative (", or ...") or before a plus.
    const rows = []
    for (const statement of statements(parts)) {
        if (width(run(statement, false)) <= WIDE) {
            rows.push(split(statement))
            continue
        }
        const at = statement.findIndex((p) => p.is === 'relation')
        const cuts = statement.flatMap((p, k) => (p.is === 'relation' && k > at ? [k] : []))
        const or = statement.findIndex(
            (p, k) => p.is === 'text' && statement[k - 1]?.is === 'comma',
        )
        const [left, right] = split(statement)
        if (cuts.length) {
            rows.push(split(statement.slice(0, cuts[0])))
            cuts.forEach((cut, k) => rows.push(['', run(statement.slice(cut, cuts[k + 1]), false)]))
        } else if (or > 0) {
            rows.push(split(statement.slice(0, or)), [
                '',
                `\\quad ${run(statement.slice(or), false)}`,
            ])
        } else if (width(left) > WIDE / 2) {
            rows.push(['', left], ['', `\\quad ${right}`])
        } else {
            const sum = statement.findLast((p) => p.is === 'sum')
            const plus = sum ? sum.terms.findLastIndex((t) => t.is === 'op') : -1
            if (plus <= 0) {
                rows.push([left, right])
                continue
            }
            const head = { ...sum, terms: sum.terms.slice(0, plus) }
            const tail = [
                { ...sum, terms: sum.terms.slice(plus) },
                ...statement.slice(statement.indexOf(sum) + 1),
            ]
            rows.push(split([...statement.slice(0, statement.indexOf(sum)), head]), [
                '',
                `\\quad ${run(tail, false).replace(/^\\?(\+|-)/, '{}$1 ')}`,
            ])
        }
    }
    // Short statements after the first share a line.
    const packed = []
    for (const row of rows) {
        const before = packed.at(-1)
        if (
            packed.length > 1 &&
            row[0] &&
            before[0] &&
            width([...before, ...row].join('')) <= WIDE
        ) {
            before[1] += `\\quad ${row[0]} ${row[1]}`
        } else {
            packed.push([...row])
        }
    }
    if (packed.length === 1) return flat
    const lines = packed.map(([left, right]) => `${left} &${right}`.trim())
    return `\\begin{aligned} ${lines.join(' \\\\ ')} \\end{aligned}`
}

// Left of the first relation, and from there on.
function split(parts) {
    const at = parts.findIndex((p) => p.is === 'relation')
    if (at < 0) return ['', run(parts, false)]
    return [run(parts.slice(0, at), false), run(parts.slice(at), false)]
}

// ---- the header ----------------------------------------------------------------------------

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

// What tests/lint/extract_tags.awk finds in the header: [what, tag, line, kind, source] each.
export function tagRecords(text = readFileSync(join(root, 'normlayers.h'), 'utf8')) {
    const records = execFileSync('awk', ['-f', join(root, 'tests/lint/extract_tags.awk')], {
        input: text,
        encoding: 'utf8',
        env: { ...process.env, LC_ALL: 'C' },
    })
    return records
        .split('\n')
        .filter((record) => record)
        .map((record) => {
            const [what, tag, place, kind, source] = record.split('\t')
            return { what, tag, line: Number(place.split(':').at(-1)), kind, source }
        })
}

// All display equations of the header: tag -> { tag, source, line, computed, tex }.
export function equations(records = tagRecords()) {
    const found = new Map()
    for (const { what, tag, line, kind, source } of records) {
        if (what !== 'define') continue
        if (found.has(tag)) throw new Error(`normlayers.h:${line}: ${tag} is defined twice`)
        try {
            found.set(tag, { tag, source, line, computed: kind === 'computed', tex: tex(source) })
        } catch (error) {
            throw new Error(`normlayers.h:${line}: ${tag}: ${error.message}`)
        }
    }
    return found
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    for (const { tag, tex: typeset } of equations().values()) console.log(`${tag}\t${typeset}`)
}
