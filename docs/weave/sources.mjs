// What the book is made of: its pages, and the equations with their tags and the lines that compute
// them. Nothing is rendered here.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fences } from './formulas.mjs'
import { equations, root, tagRecords } from './tex.mjs'

export const problems = new Set()
export const problem = (where, what) => {
    problems.add(`${where}: ${what}`)
    return null
}
export const read = (path) => readFileSync(join(root, path), 'utf8')
const list = (folder, pattern) =>
    readdirSync(join(root, folder))
        .filter((name) => pattern.test(name))
        .sort()

// ---- what there is -----------------------------------------------------------------------------

const FINDINGS = [
    'importing',
    'performance',
    'accuracy',
    'determinism',
    'how_we_know',
    'sources',
]

// The header, cut into prose and code, and into pages at the headings of its parts and chapters.
export const headerLines = read('normlayers.h').split('\n')
function headerPages() {
    const segments = []
    let kind = 'code'
    let from = 1
    headerLines.forEach((line, k) => {
        const opens = kind === 'code' && line === '/*'
        const closes = kind === 'prose' && line === '*/'
        if (!opens && !closes) return
        if (k + 1 > from) segments.push({ kind, from, to: k })
        kind = opens ? 'prose' : 'code'
        from = k + 2
    })
    segments.push({ kind, from, to: headerLines.length - (headerLines.at(-1) === '' ? 1 : 0) })
    const pages = [{ name: 'header_opening', title: 'The header: opening', segments: [] }]
    for (const segment of segments) {
        const [first, second] = headerLines
            .slice(segment.from - 1, segment.to)
            .filter((line) => line.trim())
        const part = segment.kind === 'prose' && /^# (Part (I+):.*)$/.exec(first)
        const heading = segment.kind === 'prose' && /^## (\d+) +(.*)$/.exec(part ? second : first)
        const opening = pages.at(-1).name === 'header_opening'
        if (heading) {
            const name = `header_${heading[1].padStart(2, '0')}`
            pages.push({ name, number: heading[1], title: heading[2], segments: [] })
        } else if (part) {
            pages.push({ name: `header_part_${part[2].length}`, title: part[1], segments: [] })
        } else if (opening && pages.at(-1).segments.some((s) => s.kind === 'prose')) {
            pages.push({ name: 'header_declarations', title: 'Declarations', segments: [] })
        }
        if (
            segment.kind === 'prose' ||
            headerLines.slice(segment.from - 1, segment.to).some((l) => l.trim())
        ) {
            pages.at(-1).segments.push(segment)
        }
    }
    return pages
}

export const pages = new Map() // by name, in the order of the book
export const ofSource = new Map() // path in the repository -> page
export const partTitles = {
    chapters: 'Chapters',
    header: 'The header',
    experiments: 'Experiments',
    findings: 'Findings',
    appendix: 'Appendix',
}
function page(name, part, title, source) {
    const p = { name, part, title, source, path: `book/${name}.html`, sections: [], html: '' }
    if (pages.has(name)) throw new Error(`two pages are called ${name}`)
    pages.set(name, p)
    if (source) ofSource.set(source, p)
    return p
}
const h1 = (text) => /^# (.*)$/m.exec(text)?.[1] ?? ''
const plain = (markdown) => markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*$]/g, '')

export const front = page('book', 'front', 'normlayers.h')
front.path = 'book.html'
ofSource.set('README.md', front)
ofSource.set('docs/README.md', front)

for (const file of list('docs', /^\d\d_.*\.md$/)) {
    const p = page(
        basename(file, '.md'),
        'chapters',
        plain(h1(read(`docs/${file}`))),
        `docs/${file}`,
    )
    p.number = String(Number(file.slice(0, 2)))
}
for (const h of headerPages()) {
    const p = page(h.name, 'header', h.title)
    p.number = h.number
    p.segments = h.segments
}
ofSource.set('normlayers.h', pages.get('header_opening'))
const experiments = 'examples/experiments'
if (existsSync(join(root, experiments))) {
    for (const folder of ['', ...list(experiments, /^\d\d_/)]) {
        const path = join(experiments, folder, 'README.md')
        const name = folder ? `experiment_${folder}` : 'experiments'
        page(name, 'experiments', plain(h1(read(path))), path)
    }
    page('verdicts', 'experiments', 'Verdicts', `${experiments}/verdicts.md`)
}
const others = list('docs', /^[a-z].*\.md$/)
    .map((file) => basename(file, '.md'))
    .filter((name) => name !== 'equations' && !pages.has(name))
const first = FINDINGS.filter((name) => others.includes(name))
for (const name of [...first, ...others.filter((name) => !first.includes(name))]) {
    const text = read(`docs/${name}.md`)
    page(name, 'findings', plain(h1(text)), `docs/${name}.md`)
}
page('gallery', 'appendix', 'The examples', 'examples/README.md')
page('equations', 'appendix', 'The equations of the header')
page('index', 'appendix', 'Index')
ofSource.set('docs/equations.md', pages.get('equations'))
for (const p of pages.values()) ofSource.set(`docs/${p.path}`, p) // links to the book itself

// ---- tags --------------------------------------------------------------------------------------

// tag -> { tag, tex, header, home (the page that defines it), shown (the chapter that shows an
// equation of the header), computed (or a step), lines (that compute it) }
export const tags = new Map()
export const TAG = /(?<![A-Za-z0-9_.])([A-Z]{2,})\.(\d+)([a-z]?)(?![\w])/g

export function pageOfLine(line) {
    for (const p of pages.values()) {
        if (p.segments?.some((s) => line >= s.from && line <= s.to)) return p
    }
    return null
}
const records = tagRecords(headerLines.join('\n'))
for (const e of equations(records).values()) {
    tags.set(e.tag, { ...e, header: true, home: pageOfLine(e.line), lines: [] })
}
for (const p of pages.values()) {
    if (p.part !== 'chapters') continue
    for (const f of fences(read(p.source))) {
        for (const tag of f.tags) {
            if (tags.get(tag)?.header) {
                tags.get(tag).shown ??= p
            } else if (tags.has(tag)) {
                problem(`${p.source}:${f.line}`, `${tag} is defined twice`)
            } else {
                tags.set(tag, { tag, home: p, lines: [] })
            }
        }
    }
}
export const families = new Set([...tags.keys()].map((tag) => tag.split('.')[0]))

// Where the implementation computes.
export const implementation =
    headerLines.findIndex((line) => line.startsWith('#define NRM_IMPLEMENTED')) + 1
if (!implementation) throw new Error('normlayers.h: no implementation part')
export const computing = new Set() // lines
for (const { what, tag, line } of records) {
    if (what === 'define') continue
    const t = tags.get(tag)
    if (!t && families.has(tag.split('.')[0]))
        problem(`normlayers.h:${line}`, `${tag} is not defined`)
    if (!t || what !== 'compute' || t.lines.includes(line)) continue
    t.lines.push(line)
    computing.add(line)
}
// Where the header defines a name: functions where they are implemented, and types, macros,
// constants and status codes.
export const names = new Map()
headerLines.forEach((line, k) => {
    const inside = k + 1 >= implementation
    const m =
        (inside && /^(?:static|NRM_DEF)\b[^;=(]*?\b(nrmi?_\w+)\(/.exec(line)) ||
        /^typedef struct (?:NRM_OWN\()?(nrm\w*)/.exec(line) ||
        /^typedef [^(]*\b(nrm\w+);/.exec(line) ||
        /^#define (NRM\w+)/.exec(line) ||
        /^ {4}X\((NRM_\w+),/.exec(line) ||
        /^ {4}(NRM_[A-Z0-9_]+)(?:,| = )/.exec(line)
    const page = m && pageOfLine(k + 1)
    if (page && !names.has(m[1])) names.set(m[1], k + 1)
})

// ---- theorems ----------------------------------------------------------------------------------

// tag -> [{ name, text }]: what Coq has proved, with the variables and hypotheses of its sections.
export const theorems = new Map()
for (const file of list('tests/proofs', /\.v$/)) {
    const given = [] // one list for each section that is open
    let open = null // lines of a sentence that has begun
    for (const line of read(`tests/proofs/${file}`).split('\n')) {
        if (/^Section /.test(line)) given.push([])
        if (/^End /.test(line)) given.pop()
        if (/^(Variables?|Hypothesis|Theorem) /.test(line)) open = []
        open?.push(line)
        if (!open || !/\.$/.test(line)) continue
        const text = open.join('\n')
        open = null
        const m = /^Theorem (([A-Z]+)_(\d+[a-z]?)\w*)/.exec(text)
        const tag = m && `${m[2]}.${m[3]}`
        if (!m) given.at(-1)?.push(text)
        else if (!tags.has(tag)) problem(`tests/proofs/${file}`, `${tag} is not defined`)
        else {
            const said = [...given.flat(), text].join('\n')
            theorems.set(tag, [...(theorems.get(tag) ?? []), { name: m[1], text: said }])
        }
    }
}
