// Weaves the book: normlayers.h, the chapters and the findings, with every tag a link.
//
//     node docs/weave/weave.mjs [--draft] [--explore] FOLDER
//
// puts book.html, book/ and the pictures into FOLDER, and print.html, the whole on one page. With
// --explore the pages lead to explore.html, which is put beside them.
//
// The pages need nothing but themselves. The output depends on the sources alone: the same bytes on
// any machine. A formula that does not typeset, a tag that is not defined, a link or picture that
// leads nowhere is named, and then nothing is written (but with --draft).
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
    computing,
    families,
    front,
    headerLines,
    implementation,
    names,
    ofSource,
    pageOfLine,
    pages,
    partTitles,
    problem,
    problems,
    read,
    tags,
    theorems,
} from './sources.mjs'
import { root } from './tex.mjs'

const require = createRequire(import.meta.url)
const draft = process.argv.includes('--draft')
const explorable = process.argv.includes('--explore')
const out = resolve(process.argv.slice(2).find((a) => !a.startsWith('--')))

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
        if (!existsSync(join(root, clean))) fail(env, `${target} does not exist`)
        return null // a file of the repository that is not in the book
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
            src: posix.relative(posix.dirname(env.page.path), path.replace(/^docs\//, '')),
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
    const links = []
    if (t.home !== env.page) {
        links.push([t.home, t.header ? `## ${sectionOf(t.line)}` : `chapter ${t.home.number}`])
    }
    if (t.shown && t.shown !== env.page) links.push([t.shown, `chapter ${t.shown.number}`])
    if (links.length) {
        const html = links.map(
            ([to, text]) => `<a href="${href(env.page, to, t.tag)}">${text}</a>`,
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

// Below an equation, to be opened: its theorems, as Coq has them.
function proved(t, env) {
    const all = t.header ? (theorems.get(t.tag) ?? []) : []
    if (!all.length) return ''
    const how = href(env.page, pages.get('how_we_know'), 'reading-a-theorem')
    return (
        `<details class="theorem"><summary>theorem ${all.map((a) => a.name).join(', ')}</summary>` +
        all.map((a) => `<pre>${escape(a.text)}</pre>`).join('') +
        `<a href="${how}">how to read it</a></details>`
    )
}

function equation(t, tex, env) {
    const to = t.header ? pages.get('equations') : env.page
    const name = `<a class="tag" href="${href(env.page, to, t.tag)}">${t.tag}</a>`
    const formula = `<div class="formula">${tryTypeset(tex, true, env, t.tag)}</div>`
    const kind = t.computed ? 'eq computed' : 'eq' // a tag in square brackets has its line of C
    const beside = margin(t, env) + proved(t, env)
    return `<div class="${kind}" id="${t.tag}">${formula}${name}${beside}</div>\n`
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
    const folder = posix.dirname(path)
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
    const make = program.startsWith('bench/')
        ? 'make bench-docs'
        : program === 'tests/accuracy'
          ? 'make accuracy-docs'
          : program.startsWith('mpi_')
            ? `mpirun -np 3 build/${program}`
            : folder.startsWith('examples/experiments')
              ? `make reproduce ONLY=${program.slice(0, 2)}`
              : `build/${program}`
    parts.push(`<code>${make}</code>`)
    if (head.seeds) parts.push(`seeds ${escape(head.seeds)}`)
    if (head.seed) parts.push(`seed ${escape(head.seed)}`)
    if (head.data) parts.push(escape(head.data))
    if (head.compiler) parts.push(escape(head.compiler))
    parts.push(`numbers in <code>${csv}</code>`)
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

// All equations of the header, in their order.
function wovenEquations(p) {
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
        if (t.header) groups.set(t.home, [...(groups.get(t.home) ?? []), t])
    }
    let html =
        `<h1 id="${p.name}">${p.title}</h1>\n` +
        '<p>Each with its tag, the place where it stands, and the lines of ' +
        '<code>normlayers.h</code> that compute it.</p>\n'
    for (const [home, rows] of groups) {
        const title = `${home.number} ${home.title}`
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

// ---- index and search --------------------------------------------------------------------------

// The sections of a page, as they are woven: anchor, title, HTML.
function sectionsOf(p) {
    const found = []
    const HEADING = /<h([1-3])(?: id="([^"]*)")?>([^]*?)<\/h\1>/g
    const heads = [...p.html.matchAll(HEADING)]
    heads.forEach((m, k) => {
        const html = p.html.slice(m.index + m[0].length, heads[k + 1]?.index)
        found.push({ anchor: m[2] ?? '', title: spoken(m[3]), html })
    })
    return found
}
// HTML as text; of a formula its signs.
const ENTITIES = { lt: '<', gt: '>', amp: '&', quot: '"' }
function spoken(html) {
    let text = html
    for (let from; (from = text.indexOf('<span class="katex-html"')) >= 0; ) {
        const span = /<(\/?)span\b[^>]*>/g // to the end of this span
        span.lastIndex = from
        let depth = 0
        let end = text.length
        for (let m; (m = span.exec(text)); ) {
            depth += m[1] ? -1 : 1
            if (!depth) {
                end = span.lastIndex
                break
            }
        }
        text = text.slice(0, from) + text.slice(end)
    }
    return text
        .replace(/<annotation[^]*?<\/annotation>/g, '')
        .replace(/<math[^]*?<\/math>/g, (math) =>
            math.replace(/<[^>]*>/g, '').replace(/(.)\^/g, '$1\u0302'))
        .replace(/<[^>]*>/g, ' ')
        .replace(/&(\w+);/g, (all, name) => ENTITIES[name] ?? all)
        .replace(/\s+/g, ' ')
        .trim()
}

// The terms of index.txt with the sections that say most about them, one a page, and the names of
// the header with the chapters that mention them.
function wovenIndex(p) {
    const sections = []
    for (const q of pages.values()) {
        const found = /^(accuracy|determinism)$/.test(q.name)
        if (!found && !(q.part === 'chapters' && q.number > 0)) continue
        for (const { anchor, title, html } of sectionsOf(q))
            sections.push({ page: q, anchor, title: title.toLowerCase(), html,
                text: ` ${spoken(html).toLowerCase()} ` })
    }
    const entries = []
    for (const line of read('docs/weave/index.txt').split('\n').filter(Boolean)) {
        const words = line.split(' | ')
        const quoted = words.map((w) => w.toLowerCase().replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
        const term = new RegExp(`(?<![\\p{L}])(?:${quoted.join('|')})(?![\\p{L}])`, 'gu')
        const best = new Map()
        for (const s of sections) {
            const titles = [s.title, s.page.title.toLowerCase()]
            const count = s.text.split(term).length - 1 +
                10 * titles.filter((t) => t.match(term)).length +
                90 * titles.filter((t) => words.includes(t)).length
            if (count && !(best.get(s.page)?.count >= count)) best.set(s.page, { ...s, count })
        }
        const ranked = [...best.values()].sort((a, b) => b.count - a.count)
        const places = ranked.filter((s) => s.count > ranked[0].count / 4).slice(0, 4)
        if (places.length) entries.push({ sort: words[0].toLowerCase(), term: words[0], places })
        else console.log(`index.txt: no section says ${words[0]}`)
    }
    for (const [name, line] of names) {
        const places = [...new Map(sections
            .filter((s) => new RegExp(`<code>${name}\\b`).test(s.html))
            .map((s) => [s.page, s])).values()]
        if (!places.length) continue
        wantedLines.add(line)
        const to = href(p, pageOfLine(line), `L${line}`)
        entries.push({ sort: name.toLowerCase(), term: `<a href="${to}"><code>${name}</code></a>`,
            places })
    }
    const order = (e) => (e.sort.startsWith('nrm') ? '~' : '') + e.sort // names come last
    entries.sort((a, b) => (order(a) < order(b) ? -1 : 1))
    let html = `<h1 id="index">Index</h1>\n<p>Terms with the sections that say most about them, and
the names of <code>normlayers.h</code> with the pages that explain them.</p>\n`
    let letter = ''
    for (const { sort, term, places } of entries) {
        const first = sort.startsWith('nrm') ? 'nrm' : sort[0].toUpperCase()
        if (first !== letter) {
            html += `${letter ? '</ul>\n' : ''}<h2 id="at-${first}">${first}</h2>\n`
            html += '<ul class="index">\n'
            p.sections.push({ level: 2, id: `at-${first}`, title: first })
            letter = first
        }
        const where = places.map(({ page, anchor }) => {
            const text = page.number ? `chapter ${page.number}` : escape(page.title)
            return `<a href="${href(p, page, anchor)}">${text}</a>`
        })
        html += `<li>${term}: ${where.join(', ')}</li>\n`
    }
    return `${html}</ul>\n`
}

function searchData() {
    const entries = []
    for (const p of pages.values()) {
        if (p.name === 'index' || p.name === 'equations') continue
        for (const { anchor, title, html } of sectionsOf(p)) {
            const where = p.title === title ? '' : `${p.number ? `${p.number} ` : ''}${p.title}`
            entries.push([title, where, `${p.path}#${anchor}`, spoken(html).slice(0, 6000)])
        }
    }
    return `book.search = ${JSON.stringify(entries).replace(/\],\[/g, '],\n[')}\n`
}

// What the previews show, a script for each family of tags.
function equationData() {
    const scripts = new Map()
    for (const t of tags.values()) {
        if (!t.tex) continue
        const family = t.tag.split('.')[0]
        const formula = typeset(t.tex, true, 'html')
        const line = `book.equations['${t.tag}'] = ${JSON.stringify(formula)}\n`
        scripts.set(family, (scripts.get(family) ?? '') + line)
    }
    return scripts
}

// ---- the title page ----------------------------------------------------------------------------

// The title page: what it is, the picture, a program, the formula, the ways through it, contents.
function wovenFront(p) {
    const readme = read('README.md').split(/^(?=## )/m)
    const keep = readme.filter((s) => !/^## Where to go next/.test(s))
    const ways = read('docs/README.md').replace(/^# .*\n/, '## Ways through it\n')
    const env = { where: 'README.md', page: p, sections: p.sections, italic: true }
    p.reading = 'README.md'
    let html = weave(keep.join(''), env)
    if (explorable)
        html += '<h2 id="explore">Move the numbers</h2>\n<p><a href="explore.html">The ' +
            'explorable page</a> runs this header: drag the values of a batch and watch what ' +
            'each norm does to them and to their gradients.</p>\n'
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
        appendix: 'Appendix',
    }[p.part]
    return text ? `<p class="kicker">${text}</p>\n` : ''
}

function frame(p) {
    const order = [...pages.values()]
    const at = order.indexOf(p)
    const [before, after] = [order[at - 1], order[at + 1]]
    const css = posix.relative(posix.dirname(p.path), 'book/book.css')
    const explore = posix.relative(posix.dirname(p.path), 'explore.html')
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
        (explorable ? `<p><a href="${explore}">Move the numbers</a></p>` : '') +
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
<script src="${css.replace('.css', '.js')}" defer></script>
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

// ---- on paper ----------------------------------------------------------------------------------

// All pages on one, with contents; print.mjs prints it.
function printed() {
    const own = (p, id) => `${p.name}--${id}`
    const byPath = new Map([...pages.values()].map((p) => [p.path, p]))
    const skipped = new Set(['index'])
    const shown = [...pages.values()].filter((p) => p !== front && !skipped.has(p.name))
    const body = (p) =>
        p.html
            .replace(/<span class="katex-mathml">[^]*?<\/math><\/span>/g, '') // for screen readers
            .replace(/\sid="([^"]*)"/g, (all, id) => ` id="${own(p, id)}"`)
            .replace(/\shref="([^"]*)"/g, (all, target) => {
                if (/^(https?|mailto):/.test(target)) return all
                const [path, id] = target.split('#')
                const to = path
                    ? byPath.get(posix.normalize(posix.join(posix.dirname(p.path), path)))
                    : p
                if (!to || skipped.has(to.name)) return ''
                if (to === front) return ` href="#contents"`
                return ` href="#${id ? own(to, id) : to.name}"`
            })
            .replace(/\ssrc="([^"]*)"/g, (all, src) =>
                ` src="${posix.normalize(posix.join(posix.dirname(p.path), src))}"`)
    let part = ''
    const contents = shown.map((p) => {
        const heading = p.part === part ? '' : `<h3>${partTitles[p.part]}</h3>\n`
        part = p.part
        const line = (id, text, level) =>
            `<p class="toc${level}"><a href="#${id}">${text}</a>` +
            `<a class="page" href="#${id}"></a></p>\n`
        const deep = p.part === 'chapters' ? p.sections.filter((s) => s.level === 2) : []
        return heading + line(p.name, label(p), 1) +
            deep.map((s) => line(own(p, s.id), escape(s.title), 2)).join('')
    })
    const parts = shown.map((p) =>
        `<section class="${p.part}" id="${p.name}">\n${kicker(p)}${body(p)}</section>\n`)
    const version = /define NRM_VERSION "(.*)"/.exec(headerLines.join('\n'))[1]
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>normlayers.h ${version}</title>
<link rel="stylesheet" href="book/book.css">
</head>
<body class="whole">
<main>
<section class="cover"><h1>normlayers.h</h1><p>Normalization layers, derived and in C</p>
<p>Version ${version}</p></section>
<section class="toc" id="contents"><h1>Contents</h1>
${contents.join('')}</section>
${parts.join('')}</main>
</body>
</html>
`
}

// ---- all of it ---------------------------------------------------------------------------------

const isHeader = (p) => p.part === 'header'
for (const p of pages.values()) {
    if (p.source && p !== front) p.html = wovenMarkdown(p, read(p.source))
}
front.html = wovenFront(front)
pages.get('index').html = wovenIndex(pages.get('index')) // it wants lines of the header
for (const p of pages.values()) if (isHeader(p)) p.html = wovenHeader(p)
pages.get('equations').html = wovenEquations(pages.get('equations'))
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
// Where a picture of the book is in the repository: below docs, or where the book has it.
const picture = (to) => [`docs/${to}`, to].find((path) => existsSync(join(root, path)))
const pictures = new Set() // paths below the book's folder
for (const p of pages.values()) {
    for (const m of p.whole.matchAll(/\s(?:href|src)="([^"]*)"/g)) {
        const target = decodeURIComponent(m[1].replace(/&amp;/g, '&'))
        if (/^(https?|mailto):/.test(target)) continue
        const [path, anchor] = target.split('#')
        const to = path ? posix.normalize(posix.join(posix.dirname(p.path), path)) : p.path
        if (/^(book\/book\.(css|js)|explore\.html)$/.test(to)) continue
        if (anchors.has(to)) {
            if (anchor && !anchors.get(to).has(anchor)) problem(p.path, `${target}: no such anchor`)
        } else if (picture(to)) {
            pictures.add(to)
        } else {
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
copyFileSync(join(root, 'docs/weave/book.js'), join(folder, 'book.js'))
writeFileSync(join(folder, 'search.js'), searchData())
mkdirSync(join(folder, 'equations'))
for (const [family, script] of equationData())
    writeFileSync(join(folder, `equations/${family}.js`), script)
for (const path of pictures) {
    mkdirSync(dirname(join(out, path)), { recursive: true })
    copyFileSync(join(root, picture(path)), join(out, path))
}
writeFileSync(join(out, 'print.html'), printed())
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
