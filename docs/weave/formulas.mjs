// The header's formulas in the pages of docs/, typeset, and never written by hand.
//
//     node docs/weave/formulas.mjs --check [FILES]   fails if one differs from the header's
//     node docs/weave/formulas.mjs --write [FILES]   fills them in, and replaces \operatorname
//
// A fence ```math that ends in \tag{BN.19} shows equation BN.19 of normlayers.h; while it is being
// written it may hold that line alone. Without FILES: all pages of docs/. Fences whose tag has a
// letter at its end (BN.19b), a family that the header does not know (MV.3), or a number after its
// last one (FOLD.5) belong to the page; of them only the form is checked. And no formula, in a
// fence or in a line, may use what GitHub does not typeset.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { equations, root } from './tex.mjs'

const COLUMNS = 100

// What GitHub's MathJax refuses ("The following macros are not allowed", github/markup#1688), or
// what looks otherwise there than in the book.
const REFUSED = new RegExp(
    '\\\\(?:operatorname|mbox|[hv]?phantom|(?:re)?newcommand|def|let|href|url|html[a-z]*|class|' +
        'cssId|style|require|unicode|bbox)(?![a-zA-Z])|' +
        '\\\\begin\\{(?:align|eqnarray|equation|gather)\\*?\\}',
)

// The fence's lines: a row of aligned or cases to a line, and none longer than COLUMNS.
export function fence(typeset, tag) {
    const rows = []
    const pieces = typeset
        .replace(/(\\begin\{(?:aligned|cases)\})\s*/g, '$1\n')
        .replace(/\s*(\\end\{(?:aligned|cases)\})/g, '\n$1')
        .replace(/ \\\\ /g, ' \\\\\n')
        .split('\n')
    for (let piece of pieces) {
        while (piece.length > COLUMNS) {
            let at = Math.max(...[' = ', ' + ', ' - '].map((op) => piece.lastIndexOf(op, COLUMNS)))
            if (at < COLUMNS / 2) at = piece.lastIndexOf(' ', COLUMNS)
            const text = piece.lastIndexOf('\\text{', at)
            if (text >= 0 && piece.indexOf('}', text) > at) at = text // words stay together
            rows.push(piece.slice(0, at).trimEnd())
            piece = piece.slice(at).trimStart()
        }
        rows.push(piece)
    }
    const end = `\\tag{${tag}}`
    if (rows.length === 1 && rows[0].length + end.length < COLUMNS) return [`${rows[0]} ${end}`]
    return [...rows, end]
}

// The math fences of a page: { line (of the first inside), rows, tag, indent, end }.
export function fences(text) {
    const out = []
    const lines = text.split('\n')
    for (let k = 0; k < lines.length; k++) {
        const open = /^(\s*)(`{3,}|~{3,})\s*(\S*)/.exec(lines[k])
        if (!open) continue
        let end = k + 1
        while (end < lines.length && lines[end].trim() !== open[2]) end++
        if (open[3] === 'math') {
            const rows = lines.slice(k + 1, end)
            const tags = [...rows.join('\n').matchAll(/\\tag\{([^}]*)\}/g)].map((m) => m[1])
            out.push({ line: k + 2, end, rows, tags, indent: open[1] })
        }
        k = end
    }
    return out
}

function main() {
    const [mode, ...rest] = process.argv.slice(2)
    if (mode !== '--check' && mode !== '--write') {
        console.error('usage: node docs/weave/formulas.mjs --check|--write [FILES]')
        process.exit(2)
    }
    const header = equations()
    const families = new Map() // the last number of each
    for (const tag of header.keys()) {
        const [family, number] = tag.split('.')
        families.set(family, Math.max(Number(number), families.get(family) ?? 0))
    }
    const docs = join(root, 'docs')
    const files = rest.length
        ? rest
        : readdirSync(docs)
              .filter((f) => f.endsWith('.md'))
              .sort()
              .map((f) => relative(process.cwd(), join(docs, f)))
    let failed = 0
    let shown = 0
    let own = 0
    const complain = (file, line, what) => {
        console.log(`${file}:${line}: ${what}`)
        failed++
    }
    for (const file of files) {
        let text = readFileSync(file, 'utf8')
        if (mode === '--write' && text.includes('\\operatorname{')) {
            text = text.replace(/\\operatorname\{([^{}]*)\}/g, '\\mathop{\\mathrm{$1}}')
            writeFileSync(file, text)
            console.log(`${file}: \\operatorname, which GitHub refuses, replaced`)
        }
        const lines = text.split('\n')
        const changes = []
        lines.forEach((line, k) => {
            for (const [, inside] of line.matchAll(/\$`([^`]*)`\$/g)) {
                const m = REFUSED.exec(inside)
                if (m) complain(file, k + 1, `GitHub does not typeset ${m[0]}`)
            }
        })
        for (const f of fences(text)) {
            const refused = REFUSED.exec(f.rows.join('\n'))
            if (refused) complain(file, f.line, `GitHub does not typeset ${refused[0]}`)
            if (f.tags.length === 0 && !/^\d\d_/.test(basename(file))) continue // not a chapter
            if (f.tags.length !== 1) {
                complain(
                    file,
                    f.line,
                    f.tags.length ? 'more than one \\tag in a fence' : 'a formula without \\tag',
                )
                continue
            }
            const tag = f.tags[0]
            const m = /^([A-Z]+)\.?(\d+)([a-z]?)$/.exec(tag)
            if (!m) {
                complain(file, f.line, `${tag} is no tag`)
            } else if (header.has(tag)) {
                shown++
                const wanted = fence(header.get(tag).tex, tag).map((row) => f.indent + row)
                if (wanted.join('\n') === f.rows.join('\n')) continue
                if (mode === '--write') changes.push([f.line - 1, f.end, wanted])
                else complain(file, f.line, `${tag} is not what the header says: run --write`)
            } else if (m[3] && header.has(tag.slice(0, -1))) {
                own++
            } else if (m[2] <= families.get(m[1])) {
                complain(file, f.line, `the header has no ${m[3] ? tag.slice(0, -1) : tag}`)
            } else {
                own++
            }
        }
        for (const [from, to, rows] of changes.reverse()) lines.splice(from, to - from, ...rows)
        if (changes.length) {
            writeFileSync(file, lines.join('\n'))
            console.log(`${file}: ${changes.length} formulas written`)
        }
    }
    if (failed) process.exit(1)
    console.log(`formulas: ok (${shown} of the header, ${own} of the pages)`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main()
