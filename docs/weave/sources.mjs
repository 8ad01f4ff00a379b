// What the book is made of: its pages, the equations with their tags, who computes and checks each,
// and the mutants. Nothing is rendered here.
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
    'synchronised',
    'performance',
    'accuracy',
    'determinism',
    'worked_examples',
    'invariance',
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
    checks: 'Checks',
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
const experiments = 'docs/experiments'
if (existsSync(join(root, experiments))) {
    for (const file of ['README.md', ...list(experiments, /^\d\d_.*\.md$/)]) {
        const path = `${experiments}/${file}`
        const name = file === 'README.md' ? 'experiments' : `experiment_${basename(file, '.md')}`
        page(name, 'experiments', plain(h1(read(path))), path)
    }
    ofSource.set(experiments, pages.get('experiments'))
    page('verdicts', 'experiments', 'Verdicts', 'docs/verdicts.md')
}
const others = list('docs', /^[a-z].*\.md$/)
    .map((file) => basename(file, '.md'))
    .filter((name) => name !== 'equations' && !pages.has(name))
for (const name of [...FINDINGS, ...others.filter((name) => !FINDINGS.includes(name))]) {
    const text = read(`docs/${name}.md`)
    page(name, 'findings', plain(h1(text)), `docs/${name}.md`)
}
page('checks', 'checks', 'What the tests claim', 'tests/README.md')
const MUTANTS = 'tests/mutants/list.txt'
if (existsSync(join(root, MUTANTS))) page('mutants', 'checks', 'The mutants', MUTANTS)
for (const [folder, which] of [
    ['tests/equations', /^(test_derivations\.c|derive_.*\.h|test_steps\.c|steps_.*\.h)$/],
    ['tests/pages', /^museum\.h$/],
]) {
    for (const file of list(folder, which))
        page(file.replace(/\.[ch]$/, ''), 'checks', file, `${folder}/${file}`).language = 'c'
}
page('gallery', 'appendix', 'The examples', 'examples/README.md')
// Those that a newcomer reads; the experiments' programs are linked as files.
for (const file of list('examples', /^(0\d_|10_|mpi_).*\.c$/)) {
    page(`example_${basename(file, '.c')}`, 'appendix', file, `examples/${file}`).language = 'c'
}
page('equations', 'appendix', 'The equations of the header')
// Those of the chapters on several pages, none too long.
export const indexes = new Map([
    [1, page('equations_1', 'appendix', 'The equations of chapters 1 and 2')],
    [3, page('equations_3', 'appendix', 'The equations of chapters 3 to 5')],
    [6, page('equations_6', 'appendix', 'The equations of chapters 6 to 12')],
])
ofSource.set('docs/equations.md', pages.get('equations'))
for (const p of pages.values()) ofSource.set(`docs/${p.path}`, p) // links to the book itself

// ---- tags --------------------------------------------------------------------------------------

// tag -> { tag, tex, header, home (the page that defines it), shown (the chapter that shows an
// equation of the header), computed (or a step), lines (that compute it), check (page, line), met }
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
export function indexOf(t) {
    if (t.header) return pages.get('equations')
    const first = [...indexes.keys()].filter((number) => number <= Math.max(1, t.home.number))
    return indexes.get(first.at(-1))
}
export const families = new Set([...tags.keys()].map((tag) => tag.split('.')[0]))

// The tags that a piece of text cites, "BN.8 to BN.10" with what lies between.
function cited(text) {
    const found = []
    let last = null
    for (const m of text.matchAll(TAG)) {
        if (!families.has(m[1])) continue
        const range =
            last && last[1] === m[1] && text.slice(last.index + last[0].length, m.index) === ' to '
        if (range)
            for (let n = Number(last[2]) + 1; n < Number(m[2]); n++) found.push(`${m[1]}.${n}`)
        found.push(m[0])
        last = m
    }
    return found
}

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

// Who checks: the DERIVE lines; what was met: the table that `make equations` prints.
export const checking = new Map() // page -> Map of line -> tag
for (const p of pages.values()) {
    if (p.part !== 'checks' || !p.language) continue
    const at = new Map()
    checking.set(p, at)
    read(p.source)
        .split('\n')
        .forEach((line, k) => {
            const m = /\bDERIVE\("([A-Z]+\.\d+[a-z]?)"/.exec(line)
            if (!m) return
            const t = tags.get(m[1])
            if (!t) problem(`${p.source}:${k + 1}`, `${m[1]} is not defined`)
            if (!t || t.check) return
            t.check = { page: p, line: k + 1 }
            at.set(k + 1, m[1])
        })
}
// | BN.19 | `...` | header | I ≤ 1e-13, met 1e-16; F ≤ 1e-9, met 1e-12 |
function readTable(path) {
    if (!existsSync(join(root, path))) return
    for (const line of read(path).split('\n')) {
        const m = /^\| ([A-Z]+\.\d+[a-z]?) \|.*\| ([^|]*) \|$/.exec(line)
        if (!m) continue
        const t = tags.get(m[1])
        if (!t) problem(path, `${m[1]} is not defined`)
        else t.met = m[2].split(/; */)
    }
}
readTable('docs/equations.md')

// ---- mutants -----------------------------------------------------------------------------------

// The wrong versions of the header that the tests must find: sections, each with its mutants.
export const mutants = { intro: '', sections: [], byId: new Map() }
if (pages.has('mutants')) {
    let now = null
    execFileSync('awk', ['-f', join(root, 'tests/mutants/entries.awk'), join(root, MUTANTS)])
        .toString()
        .split('\n')
        .forEach((line, k) => {
            const section = /^# -+ (.*?) -+$/.exec(line)
            const word = /^(\S+) ?(.*)$/.exec(line)
            if (section) mutants.sections.push({ title: section[1], mutants: [] })
            else if (line.startsWith('#') || !word) return
            else if (word[1] === 'mutant') {
                now = { id: word[2], line: k + 1, from: [], to: [], about: [] }
                if (mutants.byId.has(now.id)) problem(`${MUTANTS}:${k + 1}`, `${now.id} again`)
                mutants.byId.set(now.id, now)
                mutants.sections.at(-1).mutants.push(now)
            } else if (word[1] === '-') now.from.push(word[2])
            else if (word[1] === '+') now.to.push(word[2])
            else now[word[1]] = word[2]
        })
    for (const mutant of mutants.byId.values()) {
        for (const tag of cited(mutant.about)) {
            if (!tags.has(tag)) problem(`${MUTANTS}:${mutant.line}`, `${tag} is not defined`)
            else (tags.get(tag).mutants ??= []).push(mutant)
        }
    }
    const killers = 'tests/mutants/killers.txt'
    ofSource.set(killers, pages.get('mutants'))
    for (const line of existsSync(join(root, killers)) ? read(killers).split('\n') : []) {
        const m = /^(\S+) {2}(?!none)(\S+): (.*)$/.exec(line)
        if (m && mutants.byId.has(m[1]))
            mutants.byId.get(m[1]).killer = { program: m[2], what: m[3] }
    }
}
