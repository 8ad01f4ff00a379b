// Weaves the book: normlayers.h, the chapters, the findings and the checks, with every tag a link.
//
//     node docs/weave/weave.mjs [--draft] [FOLDER]
//
// puts book.html and book/ into FOLDER, or else into docs/.
//
// The pages are plain HTML without scripts and need nothing but themselves. The output depends on
// the sources alone: the same bytes on any machine. A formula that does not typeset, a tag that is
// not defined, a link or picture that leads nowhere is named, and then nothing is written (but with
// --draft).
import {
    copyFileSync,
    existsSync,
    mkdirSync,
    readFileSync,
    renameSync,
    rmSync,
    statSync,
    writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, posix, resolve } from 'node:path'
import { escape, highlight, listing } from './code.mjs'
import { typeset, weaver } from './prose.mjs'
import {
    TAG,
    checking,
    computing,
    families,
    front,
    headerLines,
    implementation,
    indexOf,
    indexes,
    mutants,
    names,
    ofSource,
    pageOfLine,
    pages,
    partTitles,
    problem,
    problems,
    read,
    tags,
} from './sources.mjs'
import { root } from './tex.mjs'

const require = createRequire(import.meta.url)
const draft = process.argv.includes('--draft')
const out = resolve(process.argv.slice(2).find((a) => !a.startsWith('--')) ?? join(root, 'docs'))

// ---- links -------------------------------------------------------------------------------------

const fail = (env, what) => problem(env.where, what)
const href = (from, to, anchor = '') => {
    if (from === to && anchor) return `#${anchor}`
    return posix.relative(posix.dirname(from.path), to.path) + (anchor ? `#${anchor}` : '')
}
const wantedLines = new Set(names.values()) // lines of the header that a link leads to

const book = {
    math: (tex, env) => tryTypeset(tex, false, env),
    problem: (env, what) => problem(env.where, what) ?? '',
    // Where a tag leads: to the equation on this page if it is shown here, else to its home.
    tag(tag, env) {
        if (!families.has(tag.split('.')[0])) return null
        const t = tags.get(tag)
        if (!t) return fail(env, `${tag} is not defined`)
        return href(env.page, t.shown === env.page ? env.page : t.home, tag)
    },
    section(number, env) {
        const to = pages.get(`header_${number.split('.')[0].padStart(2, '0')}`)
        if (!to) return fail(env, `the header has no section ${number}`)
        return href(env.page, to, `s${number}`)
    },
    link(target, env) {
        if (/^(https?|mailto):/.test(target)) return target
        const [path, anchor = ''] = target.split('#')
        if (!path) return `#${anchor}`
        const at = path.startsWith('/')
            ? path.slice(1)
            : posix.normalize(
                  posix.join(
                      posix.dirname(env.page.reading ?? env.page.source ?? 'normlayers.h'),
                      path,
                  ),
              )
        const clean = at.replace(/\/$/, '')
        const line = /^L(\d+)/.exec(anchor)
        if (clean === 'normlayers.h' && line) {
            const to = pageOfLine(Number(line[1]))
            if (!to) return fail(env, `normlayers.h has no line ${line[1]} of code`)
            wantedLines.add(Number(line[1]))
            return href(env.page, to, line[0])
        }
        const to = ofSource.get(clean) ?? ofSource.get(`${clean}/README.md`)
        const ways = clean === 'docs' || clean === 'docs/README.md' // a part of the title page
        if (to) return href(env.page, to, anchor || (ways ? 'ways-through-it' : ''))
        if (!existsSync(join(root, clean))) return fail(env, `${target} does not exist`)
        return (
            posix.relative(posix.dirname(`docs/${env.page.path}`), clean) +
            (anchor ? `#${anchor}` : '')
        )
    },
    picture(src, env) {
        const from = posix.dirname(env.page.reading ?? env.page.source)
        const path = posix.normalize(posix.join(from, src))
        if (!existsSync(join(root, path))) {
            fail(env, `the picture ${src} does not exist`)
            return { src, width: 0, height: 0, caption: '' }
        }
        const file = readFileSync(join(root, path))
        const svg = /^<svg [^>]*\bwidth="(\d+)" height="(\d+)"/.exec(file.toString('latin1', 0, 99))
        if (!svg && file.toString('latin1', 1, 4) !== 'PNG') fail(env, `${src} is no PNG or SVG`)
        return {
            src: posix.relative(posix.dirname(`docs/${env.page.path}`), path),
            width: svg ? svg[1] : file.readUInt32BE(16),
            height: svg ? svg[2] : file.readUInt32BE(20),
            caption: provenance(path, env),
        }
    },
    // A function, type or macro of the header.
    name(text, env) {
        const line = names.get(text)
        if (!line) return null
        return href(env.page, pageOfLine(line), `L${line}`)
    },
    // A mutant's name, in a chapter.
    mutant(name, env) {
        return mutants.byId.has(name) ? href(env.page, pages.get('mutants'), name) : null
    },
    // A line of the header that a chapter quotes, known by the tag at its end.
    quoted(line, env) {
        if (env.page.part !== 'chapters' || !/\/\* [^*]*[A-Z]{2,}\.\d+[^*]*\*\/$/.test(line))
            return null
        const at = headerLines.flatMap((l, k) =>
            k + 1 >= implementation && l.trim() === line.trim() ? [k + 1] : [],
        )
        if (at.length !== 1) return null
        wantedLines.add(at[0])
        return { href: href(env.page, pageOfLine(at[0]), `L${at[0]}`), line: at[0] }
    },
    // A fence of a chapter.
    formula(text, env) {
        const m = /\\tag\{([^}]*)\}/.exec(text)
        const tex = text.replace(/\s*\\tag\{[^}]*\}/, '')
        if (!m) {
            const formula = `<div class="formula">${tryTypeset(tex, true, env)}</div>`
            return `<div class="eq">${formula}</div>\n`
        }
        const t = tags.get(m[1])
        if (!t) return fail(env, `${m[1]} is not defined`) ?? ''
        if (!t.header) t.tex = tex
        if (!tex.trim())
            return t.header ? equation(t, t.tex, env) : (fail(env, `${t.tag} is empty`) ?? '')
        return equation(t, tex, env)
    },
    // An equation of the header.
    equation(tag, env) {
        const t = tags.get(tag)
        if (!t) return fail(env, `${tag} is not defined`) ?? ''
        return equation(t, t.tex, env)
    },
}

function tryTypeset(tex, display, env, tag = '') {
    try {
        return typeset(tex, display)
    } catch (error) {
        problem(tag ? `${env.where}: ${tag}` : env.where, `${error.message}: ${tex}`)
        return `<code>${escape(tex)}</code>`
    }
}

// 1e-13 -> 10⁻¹³
const power = (text) =>
    text.replace(/\b(\d+(?:\.\d+)?)e([-+]?)0*(\d+)\b/g, (all, digits, sign, exponent) => {
        const ten = `10<sup>${sign === '-' ? '−' : ''}${exponent}</sup>`
        return digits === '1' ? ten : `${digits}·${ten}`
    })
const WITNESS = {
    R: 'the same operations, written out again, give the same bits',
    I: 'an independent evaluation of the other side',
    F: 'finite differences of the forward pass',
    C: 'the forward pass at a complex point',
    O: 'what a series leaves out, relative to its first omitted term',
    S: 'moments of random draws, in units of their standard error',
}

// What stands beside an equation: where it is computed, checked, and treated.
function note(t, env) {
    const rows = []
    if (t.header && t.lines.length) {
        const at = t.lines.map(
            (n) => `<a href="${href(env.page, pageOfLine(n), `L${n}`)}">${n}</a>`,
        )
        rows.push(`${at.length > 1 ? 'lines' : 'line'} ${at.join(' · ')}`)
    } else if (t.header && !t.computed) {
        rows.push('a step or a property')
    }
    for (const witness of t.met ?? []) {
        const kind = witness[0]
        const holds = /\\[lg]e\b/.test((t.tex ?? '').split('\\quad')[0]) // of an inequality
        const exact = holds ? ': the bound holds' : ': the same bits'
        const bound = witness === 'R' ? exact : witness.slice(1)
        rows.push(`<abbr title="${WITNESS[kind] ?? ''}">${kind}</abbr>${power(escape(bound))}`)
    }
    const links = []
    if (t.home !== env.page) {
        links.push([t.home, t.header ? `## ${sectionOf(t.line)}` : `chapter ${t.home.number}`])
    }
    if (t.shown && t.shown !== env.page) links.push([t.shown, `chapter ${t.shown.number}`])
    if (t.check) links.push([t.check.page, 'check'])
    if (t.mutants) {
        const count = t.mutants.length === 1 ? '1 mutant' : `${t.mutants.length} mutants`
        links.push([pages.get('mutants'), count, t.mutants[0].id])
    }
    if (links.length) {
        const html = links.map(
            ([to, text, anchor = t.tag]) => `<a href="${href(env.page, to, anchor)}">${text}</a>`,
        )
        rows.push(`<span class="to">${html.join(' · ')}</span>`)
    }
    return rows
}

// Beside an equation, in the margin.
function margin(t, env) {
    const rows = note(t, env).map((row) => `<span>${row}</span>`)
    return rows.length ? `<div class="note">${rows.join(' ')}</div>` : ''
}

function equation(t, tex, env) {
    const name = `<a class="tag" href="${href(env.page, indexOf(t), t.tag)}">${t.tag}</a>`
    const formula = `<div class="formula">${tryTypeset(tex, true, env, t.tag)}</div>`
    const kind = t.computed ? 'eq computed' : 'eq' // a tag in square brackets has its line of C
    return `<div class="${kind}" id="${t.tag}">${formula}${name}${margin(t, env)}</div>\n`
}

// The section of the header that a line belongs to.
function sectionOf(line) {
    for (let k = line - 1; k >= 0; k--) {
        const m = /^##+ (\d+(?:\.\d+)?) /.exec(headerLines[k])
        if (m) return m[1]
    }
    return null
}

// The program and seeds that drew a figure: the head of the table beside it.
function provenance(path, env) {
    const folder = posix.dirname(path).replace(/^(docs\/experiments)\/figures$/, '$1/data')
    const stem = basename(path, '.png').split('_')
    let csv = posix.join(folder, `${stem.join('_')}.csv`)
    while (!existsSync(join(root, csv)) && stem.length > 1) {
        stem.pop()
        csv = posix.join(folder, `${stem.join('_')}.csv`)
    }
    if (!existsSync(join(root, csv))) return ''
    const head = {}
    for (const line of read(csv).split('\n')) {
        const m = /^# ([a-z ]+): (.*)$/.exec(line)
        if (!m) break
        head[m[1]] ??= m[2]
    }
    const parts = []
    const program = head.program ?? ''
    const source = ofSource.get(`examples/${program}.c`)
    const make = program.startsWith('bench/')
        ? 'make bench-docs'
        : program === 'tests/accuracy'
          ? 'make accuracy-docs'
          : program.startsWith('mpi_')
            ? `mpirun -np 3 build/${program}`
            : folder.startsWith('docs/experiments')
              ? `make reproduce ONLY=${program.slice(0, 2)}`
              : `build/${program}`
    parts.push(
        source
            ? `<a href="${href(env.page, source)}"><code>${make}</code></a>`
            : `<code>${make}</code>`,
    )
    if (head.seeds) parts.push(`seeds ${escape(head.seeds)}`)
    if (head.seed) parts.push(`seed ${escape(head.seed)}`)
    if (head.data) parts.push(escape(head.data))
    if (head.compiler) parts.push(escape(head.compiler))
    const table = posix.relative(posix.dirname(`docs/${env.page.path}`), csv)
    parts.push(`<a href="${table}">numbers</a>`)
    return `<p class="from">Drawn by ${parts.join('; ')}.</p>`
}

// ---- pages -------------------------------------------------------------------------------------

const weave = weaver(book)

function wovenMarkdown(p, text) {
    return weave(text, { where: p.source, page: p, sections: p.sections, italic: true })
}

// Prose of the header: its equations become fences for prose.mjs.
const tagOfLine = new Map([...tags.values()].filter((t) => t.header).map((t) => [t.line, t.tag]))
function headerProse(p, segment, state) {
    const text = headerLines
        .slice(segment.from - 1, segment.to)
        .map((line, k) => {
            const tag = tagOfLine.get(segment.from + k)
            if (p.number && /^# Part /.test(line)) return '' // the page is of the chapter below
            return tag ? `\n\`\`\`eq\n${tag}\n\`\`\`` : line
        })
        .join('\n')
    const shift = p.number || p.name === 'header_declarations' ? 1 : 0
    const env = {
        where: `normlayers.h:${segment.from}`,
        page: p,
        sections: p.sections,
        shift,
        numbered: true,
        italic: p.number !== '21', // references: names and their initials
        channels: Number(p.number) <= 13, // in the layers C counts channels
    }
    return weave(text, Object.assign(state, env))
}

function codeLinks(env) {
    return (html, what) =>
        html.replace(
            what === 'string' ? /(?<=^&quot;)([A-Z]{2,})\.(\d+)([a-z]?)(?=&quot;$)/g : TAG,
            (tag) => {
                const to = tags.has(tag) ? book.tag(tag, env) : null
                return to ? `<a href="${to}">${tag}</a>` : tag
            },
        )
}

function headerCode(p, segment) {
    let { from, to } = segment
    while (from < to && !headerLines[from - 1].trim()) from++
    while (to > from && !headerLines[to - 1].trim()) to--
    const source = headerLines.slice(from - 1, to).join('\n')
    const env = { where: `normlayers.h:${from}`, page: p }
    const lines = highlight(source, 'c', codeLinks(env))
    const ids = (n) => {
        const rule = /^\/\* ---- (.*?) -+ \*\/$/.exec(headerLines[n - 1])
        if (rule) p.sections.push({ level: 2, id: `L${n}`, title: rule[1] })
        return rule || computing.has(n) || wantedLines.has(n) ? [`L${n}`] : []
    }
    return listing(lines, from, ids)
}

function wovenHeader(p) {
    const state = { level: p.name === 'header_declarations' ? 1 : 0 }
    const parts = p.segments.map((s) =>
        s.kind === 'prose' ? headerProse(p, s, state) : headerCode(p, s),
    )
    if (p.name === 'header_declarations') parts.unshift('<h1 id="declarations">Declarations</h1>\n')
    // The first line, which says what the file is, goes below the title.
    const html = parts.join('')
    if (p.name !== 'header_opening') return html
    return html.replace(/^(<pre[^]*?<\/pre>\n)(<h1[^]*?<\/h1>\n)/, '$2$1')
}

function wovenSource(p) {
    const source = read(p.source).replace(/\n$/, '')
    const env = { where: p.source, page: p }
    const lines = highlight(source, 'c', codeLinks(env))
    const at = checking.get(p) ?? new Map()
    const ids = (n) => {
        const rule = /^\/\* ---- (.*?) -+ \*\/$/.exec(source.split('\n')[n - 1])
        if (rule) p.sections.push({ level: 2, id: `L${n}`, title: rule[1] })
        return [...(at.has(n) ? [at.get(n)] : []), ...(rule ? [`L${n}`] : [])]
    }
    return `<h1><code>${escape(p.source)}</code></h1>\n${listing(lines, 1, ids)}`
}

// All equations of the header, or of the chapters, in their order.
function wovenIndex(p) {
    const env = { where: p.name, page: p }
    const row = (t) => {
        const formula = tryTypeset(`\\displaystyle ${t.tex ?? ''}`, false, env, t.tag)
        const where = note(t, env).map((line) => `<span>${line}</span>`)
        const tag = `<a href="${href(p, t.home, t.tag)}">${t.tag}</a>`
        return (
            `<tr id="${t.tag}"><th scope="row">${tag}</th>` +
            `<td class="formula">${formula}</td><td class="where">${where.join(' ')}</td></tr>\n`
        )
    }
    const groups = new Map()
    for (const t of tags.values()) {
        if (indexOf(t) === p) groups.set(t.home, [...(groups.get(t.home) ?? []), t])
    }
    const witnesses = Object.entries(WITNESS).map(([letter, what]) => `<b>${letter}</b>, ${what}`)
    let html =
        `<h1 id="${p.name}">${p.title}</h1>\n` +
        '<p>Each with its tag, the place where it stands, the lines of <code>normlayers.h</code> ' +
        'that compute it, and the check that computes both of its sides: the bound that it ' +
        `demands, and the one that was met. The witnesses: ${witnesses.join('; ')}.</p>\n`
    for (const [home, rows] of groups) {
        const title =
            home.part === 'header'
                ? `${home.number} ${home.title}`
                : `Chapter ${home.number}: ${home.title}`
        const id = `in-${home.name}`
        p.sections.push({ level: 2, id, title })
        html +=
            `<h2 id="${id}">${escape(title)}</h2>\n<div class="table"><table class="equations">\n` +
            '<thead><tr><th scope="col">tag</th><th scope="col">equation</th>' +
            '<th scope="col">where</th></tr></thead>\n<tbody>\n' +
            `${rows.map(row).join('')}</tbody></table></div>\n`
    }
    return html
}

// The mutants: what each line becomes, whose bug that was, and what noticed.
function wovenMutants(p) {
    const env = { where: p.source, page: p }
    const say = (text) => codeLinks(env)(escape(text), 'comment')
    // Old and new line, with what differs marked.
    const pair = (from, to) => {
        const [a, b] = [from.join('\n'), to.join('\n')]
        let head = 0
        while (head < Math.min(a.length, b.length) && a[head] === b[head]) head++
        let tail = 0
        while (tail < Math.min(a.length, b.length) - head && a.at(-1 - tail) === b.at(-1 - tail))
            tail++
        const show = (text, sign) => {
            const middle = text.slice(head, text.length - tail)
            const marked = middle ? `<mark>${escape(middle)}</mark>` : ''
            const whole = say(text.slice(0, head)) + marked + say(text.slice(text.length - tail))
            return whole.split('\n').map((line) => `<span class="${sign}">${line}</span>`)
        }
        return listing([...show(a, 'old'), ...show(b, 'new')])
    }
    let html =
        '<h1 id="mutants">The mutants</h1>\n<p>One-line edits of the formulas of ' +
        `<a href="${href(p, pages.get('header_opening'))}">the header</a>. Every one is wrong, ` +
        'and the tests say so: <code>make mutants</code> makes them all, names what kills ' +
        'each, <code>sh tests/mutants/run.sh --only NAME</code> makes one and prints all that ' +
        'fails.</p>\n'
    mutants.sections.forEach((section, k) => {
        p.sections.push({ level: 2, id: `part-${k + 1}`, title: section.title })
        html += `<h2 id="part-${k + 1}">${say(section.title)}</h2>\n`
        for (const m of section.mutants) {
            const about = say(m.about)
            const id = escape(m.id)
            const history = m.history ? ` <i>${say(m.history)}</i>.` : ''
            const end = m.equivalent
                ? `Equivalent: ${say(m.equivalent)}.`
                : m.killer
                  ? `Killed by ${say(m.killer.what)} (<code>${escape(m.killer.program)}</code>).`
                  : ''
            html +=
                `<section class="mutant" id="${id}"><h3><code>${id}</code></h3>\n` +
                `<p>${about}: ${say(m.story)}.${history} ${end}</p>\n` +
                `${pair(m.from, m.to)}</section>\n`
        }
    })
    return html
}

// The title page: what it is, the picture, a program, the formula, the ways through it, contents.
function wovenFront(p) {
    const readme = read('README.md').split(/^(?=## )/m)
    const keep = readme.filter((s) => !/^## Where to go next/.test(s))
    const ways = read('docs/README.md').replace(/^# .*\n/, '## Ways through it\n')
    const env = { where: 'README.md', page: p, sections: p.sections, italic: true }
    p.reading = 'README.md'
    let html = weave(keep.join(''), env)
    p.reading = 'docs/README.md'
    html += weave(ways, Object.assign(env, { where: 'docs/README.md' }))
    delete p.reading
    html += '<h2 id="contents">Contents</h2>\n'
    p.sections.push({ level: 2, id: 'contents', title: 'Contents' })
    for (const [part, title] of Object.entries(partTitles)) {
        html += `<h3 id="${part}">${title}</h3>\n<ol class="contents">\n`
        for (const q of pages.values()) {
            if (q.part === part) html += `<li>${entry(p, q)}</li>\n`
        }
        html += '</ol>\n'
    }
    return html
}

const label = (q) => {
    const title = /\.[ch]$/.test(q.title) ? `<code>${q.title}</code>` : escape(q.title)
    return q.number ? `<span class="no">${q.number}</span> ${title}` : title
}
const entry = (from, to) => `<a href="${href(from, to)}">${label(to)}</a>`

// ---- the frame of a page -----------------------------------------------------------------------

// What stands over the title.
function kicker(p) {
    const text = {
        chapters: `Chapter ${p.number}`,
        header: p.number ? `The header, section ${p.number}` : 'The header',
        experiments: 'Experiments',
        findings: 'Findings',
        checks: 'Checks',
        appendix: 'Appendix',
    }[p.part]
    return text ? `<p class="kicker">${text}</p>\n` : ''
}

function frame(p) {
    const order = [...pages.values()]
    const at = order.indexOf(p)
    const [before, after] = [order[at - 1], order[at + 1]]
    const css = posix.relative(posix.dirname(p.path), 'book/book.css')
    const sections = p.sections.filter((s) => s.level <= (p.sections.length > 40 ? 2 : 3))
    const here = (className) =>
        sections.length
            ? `<ol class="${className}">${sections
                  .map(
                      (s) =>
                          `<li class="h${s.level}"><a href="#${s.id}">${escape(s.title)}</a></li>`,
                  )
                  .join('')}</ol>`
            : ''
    const parts = Object.entries(partTitles).map(([part, title]) => {
        if (part !== p.part) return `<li><a href="${href(p, front, part)}">${title}</a></li>`
        const items = order
            .filter((q) => q.part === part)
            .map((q) =>
                q === p
                    ? `<li aria-current="page">${label(q)}${here('here')}</li>`
                    : `<li>${entry(p, q)}</li>`,
            )
        return `<li><a href="${href(p, front, part)}">${title}</a><ol>${items.join('')}</ol></li>`
    })
    const side =
        '<nav class="side" aria-label="Contents">' +
        `<p><a href="${href(p, front)}">normlayers.h</a></p>` +
        `${p === front ? here('here') : ''}<ol class="parts">${parts.join('')}</ol></nav>`
    const step = (q, rel, text) =>
        q ? `<a rel="${rel}" href="${href(p, q)}">${text}</a>` : '<span></span>'
    const steps =
        '<nav class="steps" aria-label="Next and previous page">' +
        step(before, 'prev', before && `← ${label(before)}`) +
        step(after, 'next', after && `${label(after)} →`) +
        '</nav>'
    const menu =
        `<details class="menu"><summary>Contents</summary>${here('here')}` +
        `<p><a href="${href(p, front, 'contents')}">All pages</a></p></details>`
    const title = p === front ? 'normlayers.h' : `${p.title.replace(/<[^>]*>/g, '')} · normlayers.h`
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title)}</title>
<link rel="stylesheet" href="${css}">
</head>
<body class="${p.part}${p.language ? ' source' : ''}">
<a class="skip" href="#text">Skip to the text</a>
${side}
${menu}
<main id="text">
${kicker(p)}${p.html}${steps}
</main>
</body>
</html>
`
}

// ---- all of it ---------------------------------------------------------------------------------

const isHeader = (p) => p.part === 'header'
for (const p of pages.values()) {
    if (p === front || isHeader(p) || p.title.startsWith('The equations')) continue
    if (p.name === 'mutants') p.html = wovenMutants(p)
    else p.html = p.language ? wovenSource(p) : wovenMarkdown(p, read(p.source))
}
front.html = wovenFront(front)
for (const p of pages.values()) if (isHeader(p)) p.html = wovenHeader(p)
for (const p of [pages.get('equations'), ...indexes.values()]) p.html = wovenIndex(p)
for (const p of pages.values()) p.whole = frame(p)

// Every link leads somewhere, every anchor is there once.
const anchors = new Map()
for (const p of pages.values()) {
    const ids = [...p.whole.matchAll(/\sid="([^"]*)"/g)].map((m) => m[1])
    const seen = new Set(ids)
    if (seen.size !== ids.length) {
        for (const id of new Set(ids.filter((x, k) => ids.indexOf(x) !== k)))
            problem(p.path, `two anchors #${id}`)
    }
    anchors.set(p.path, seen)
}
for (const p of pages.values()) {
    for (const m of p.whole.matchAll(/\s(?:href|src)="([^"]*)"/g)) {
        const target = decodeURIComponent(m[1].replace(/&amp;/g, '&'))
        if (/^(https?|mailto):/.test(target)) continue
        const [path, anchor] = target.split('#')
        const to = path ? posix.normalize(posix.join(posix.dirname(p.path), path)) : p.path
        if (to === 'book/book.css') continue
        if (anchors.has(to)) {
            if (anchor && !anchors.get(to).has(anchor)) problem(p.path, `${target}: no such anchor`)
        } else if (!existsSync(join(root, 'docs', to))) {
            problem(p.path, `${target}: no such file`)
        }
    }
}
for (const what of problems) console.error(what)
if (problems.size) console.error(`book: ${problems.size} problems`)
if (problems.size && !draft) process.exit(1)

// The stylesheet: KaTeX's, with the fonts that the book uses and no others, and ours.
const katexFolder = dirname(require.resolve('katex/package.json'))
const all = [...pages.values()].map((p) => p.whole).join('')
const usesClass = (name) => new RegExp(`class="[^"]*\\b${name}\\b`).test(all)
const FONTS = {
    'KaTeX_Main-Regular': true,
    'KaTeX_Math-Italic': true,
    'KaTeX_Main-Italic': usesClass('mathit') || usesClass('textit'),
    'KaTeX_Main-Bold': usesClass('mathbf') || usesClass('textbf'),
    'KaTeX_AMS-Regular': usesClass('amsrm') || usesClass('mathbb'),
    'KaTeX_Caligraphic-Regular': usesClass('mathcal'),
    'KaTeX_Typewriter-Regular': usesClass('texttt') || usesClass('mathtt'),
    'KaTeX_SansSerif-Regular': usesClass('mathsf') || usesClass('textsf'),
    'KaTeX_Size1-Regular': usesClass('size1') || usesClass('small-op'),
    'KaTeX_Size2-Regular': usesClass('size2') || usesClass('large-op'),
    'KaTeX_Size3-Regular': usesClass('size3'),
    'KaTeX_Size4-Regular': usesClass('size4') || usesClass('delimsizing'),
}
const katexCss = readFileSync(join(katexFolder, 'dist/katex.min.css'), 'utf8').replace(
    /@font-face\{([^}]*)\}/g,
    (rule, body) => {
        const file = /url\(fonts\/([\w-]+)\.woff2\)/.exec(body)?.[1]
        if (!FONTS[file]) return ''
        const from = `src:url(fonts/${file}.woff2) format("woff2")`
        return `@font-face{${body.replace(/src:[^;}]*/, from)}}\n`
    },
)

// All of it is written beside the old book first: whoever stops this has the old one or the new.
const folder = join(out, 'book.new')
rmSync(folder, { recursive: true, force: true })
mkdirSync(join(folder, 'fonts'), { recursive: true })
writeFileSync(join(folder, 'book.css'), `${katexCss}\n${read('docs/weave/book.css')}`)
for (const [font, used] of Object.entries(FONTS)) {
    if (used)
        copyFileSync(
            join(katexFolder, `dist/fonts/${font}.woff2`),
            join(folder, `fonts/${font}.woff2`),
        )
}
copyFileSync(join(katexFolder, 'LICENSE'), join(folder, 'fonts/LICENSE'))
let bytes = 0
let largest = { size: 0 }
for (const p of pages.values()) {
    const path = p === front ? join(out, 'book.html.new') : join(folder, basename(p.path))
    writeFileSync(path, p.whole)
    const { size } = statSync(path)
    bytes += size
    if (size > largest.size) largest = { size, path: p.path }
}
rmSync(join(out, 'book'), { recursive: true, force: true })
renameSync(folder, join(out, 'book'))
renameSync(join(out, 'book.html.new'), join(out, 'book.html'))
const mega = (n) => `${(n / 1e6).toFixed(1)} MB`
console.log(
    `book: ${pages.size} pages, ${tags.size} equations, ${mega(bytes)}; ` +
        `largest ${largest.path}, ${mega(largest.size)}`,
)
