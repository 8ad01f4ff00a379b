// Markdown to HTML: formulas by KaTeX, tags and sections as links, pictures with their captions.
//
// What is refused: a formula that KaTeX does not take in strict mode, raw HTML other
// than <details>, a heading that skips a level.
import katex from 'katex'
import MarkdownIt from 'markdown-it'
import { escape, highlight, listing } from './code.mjs'
import { tex } from './tex.mjs'

export const typeset = (tex, displayMode, output = 'htmlAndMathml') =>
    katex.renderToString(tex, { displayMode, strict: 'error', throwOnError: true, output })

// The anchors that GitHub gives to headings.
export function slugger() {
    const seen = new Map()
    return (text) => {
        const slug = text
            .toLowerCase()
            .replace(/[^\p{L}\p{M}\p{N}_ -]/gu, '')
            .replace(/ /g, '-')
        const count = seen.get(slug) ?? 0
        seen.set(slug, count + 1)
        return count ? `${slug}-${count}` : slug
    }
}

// Letters that stand for numbers are set as such: single ones, and those with hat, index or prime.
// Not "a", "A" and "I", which are words; not units, a person's initials, or the language C.
const INDEX = 'ᵢⱼₖₙₛₘₜ₊′″‴'
const MARKS = `${INDEX}₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀᵗ`
const LETTER = new RegExp(
    `(?<![\\p{Lu}\\p{Ll}\\d_.'’\\-\\u0302&#]|[a-zA-Z.]{2}/|I/)` +
        `(d?(?:[a-zA-Z]\\u0302[${MARKS}]*|[a-zA-Z](?=[${MARKS}])[${INDEX}]*|[α-ω][${INDEX}]*)` +
        `|[a-zA-Zα-ω]_(?:[a-z]{1,2}|[A-Z]|max)|d?W[hx]|d[xyzhabvwgWL]|[b-zB-HJ-Z]` +
        `|a(?=\\[|·)|(?<=\\(|·)a(?=\\)))` +
        `(?![\\p{Lu}\\p{Ll}\\d_'’\\u0302]|\\.[a-zA-Z]|-(?!th\\b)[a-zA-Z]|[+/][a-zA-Z]{2}|\\+\\+)`,
    'gu',
)
function italics(text, env) {
    return text.replace(LETTER, (m, letter, at) => {
        const before = text.slice(0, at)
        const after = text.slice(at + m.length)
        if (m === 'C' && !env.channels) {
            const counts =
                /(\[|N, |·|[=<>≤≥] )$/.test(before) ||
                /^(\]|, S\b|·| [=<>≤≥]| channels| entries| columns)/.test(after)
            if (!counts) return m
        }
        if (/^[smhgBx]$/.test(m) && /\d $/.test(before) && !/^ [=<>−+·]/.test(after)) return m
        if (/^[A-Z]$/.test(m) && /^\. ?\p{Lu}/u.test(after) && /(^|, |and |\. ?|\()$/.test(before))
            return m
        const index = /^([a-zA-Z])_([A-Z])$/.exec(m)
        if (index) return `<i>${index[1]}<sub>${index[2]}</sub></i>`
        if (/[\u0302_]/.test(m)) { // dx̂: a d, then a letter with its hat
            const [, d, rest] = /^(d(?=.\u0302))?(.*)$/u.exec(m)
            return `<span class="m">${typeset((d ?? '') + tex(rest), false)}</span>`
        }
        return `<i>${m}</i>`
    })
}

// Unicode's raised and lowered signs are few, small, and missing in many fonts: HTML's instead.
const SIGNS = '⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀᵗ₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₙₛₘₜ₊'
const PLAIN = '0123456789−Tt0123456789ijknsmt+'
const plain = (signs) => [...signs].map((sign) => PLAIN[SIGNS.indexOf(sign)]).join('')
const level = (html) =>
    html
        .replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀᵗ]+/g, (m) => `<sup>${plain(m)}</sup>`)
        .replace(/[₀₁₂₃₄₅₆₇₈₉]+/g, (m) => `<sub>${plain(m)}</sub>`)
        .replace(/[ᵢⱼₖₙₛₘₜ₊]+/g, (m) => `<sub><i>${plain(m)}</i></sub>`)
        .replace(/\d(?:\.\d+)?e-\d+/g, '<span class="m">$&</span>') // no break at the sign

// `book` knows where things are, see weave.mjs.
export function weaver(book) {
    const md = new MarkdownIt({ html: true, typographer: true, quotes: '“”‘’' })
    md.disable(['replacements', 'linkify'])

    // $`x`$
    md.inline.ruler.before('backticks', 'inline_math', (state, silent) => {
        const m = /^\$`([^`]+)`\$/.exec(state.src.slice(state.pos))
        if (!m) return false
        if (!silent) state.push('inline_math', 'span', 0).content = m[1]
        state.pos += m[0].length
        return true
    })
    md.renderer.rules.inline_math = (tokens, k, options, env) =>
        `<span class="m">${book.math(tokens[k].content, env)}</span>`

    // Text: tags, sections of the header, pages, letters.
    function said(text, env, html = escape(text)) {
        const set = (s) => (env.italic ? level(italics(s, env)) : s)
        if (env.inLink) return set(html)
        const parts = []
        const PLACE =
            /(?<![A-Za-z0-9_.])([A-Z]{2,}\.\d+[a-z]?)(?![\w])|## (\d+(?:\.\d+)?)|\bdocs\/(\w+\.md)/g
        let last = 0
        for (const m of html.matchAll(PLACE)) {
            const href = m[1]
                ? book.tag(m[1], env)
                : m[2]
                  ? book.section(m[2], env)
                  : book.link(`/docs/${m[3]}`, env)
            if (!href) continue
            parts.push([html.slice(last, m.index), `<a href="${href}">${m[0]}</a>`])
            last = m.index + m[0].length
        }
        return parts.map(([plain, link]) => set(plain) + link).join('') + set(html.slice(last))
    }
    // A bold letter alone names the panel of a figure: **b** is no number.
    md.renderer.rules.text = (tokens, k, options, env) => {
        const text = tokens[k].content
        const panel = /experiments/.test(env.where) && /^[a-z]$/.test(text)
        const bold = tokens[k - 1]?.type === 'strong_open' && tokens[k + 1]?.type === 'strong_close'
        return panel && bold ? text : said(text, env)
    }
    md.renderer.rules.code_inline = (tokens, k, options, env) => {
        const text = tokens[k].content
        if (/\$$/.test(tokens[k - 1]?.content ?? ''))
            book.problem(env, `a dollar sign on the wrong side of a backtick: $\`${text}\``)
        const m = /^## (\d+(?:\.\d+)?)$/.exec(text)
        const isTag = /^[A-Z]{2,}\.\d+[a-z]?$/.test(text)
        const html = `<code>${escape(text)}</code>`
        if (env.inLink) return html
        if (m) return `<a href="${book.section(m[1], env)}">${text}</a>`
        const to = isTag ? book.tag(text, env) : null
        const name = to ? null : book.name(text.replace(/\(.*\)$/, ''), env)
        if (name) return `<a class="name" href="${name}">${html}</a>`
        return to ? `<a href="${to}">${html}</a>` : html
    }
    md.renderer.rules.link_open = (tokens, k, options, env) => {
        const to = book.link(tokens[k].attrGet('href'), env)
        env.inLink = to ? '</a>' : ' '
        return to ? `<a href="${escape(to)}">` : ''
    }
    md.renderer.rules.link_close = (tokens, k, options, env) => {
        const end = env.inLink.trim()
        env.inLink = false
        return end
    }
    md.renderer.rules.image = (tokens, k, options, env) => {
        const { src, width, height } = book.picture(tokens[k].attrGet('src'), env)
        const name = /([^/]*)\.\w+$/.exec(src)[1].replace(/_/g, ' ')
        const alt = tokens[k].content.replace(/\s+/g, ' ') || `figure ${name}`
        const size = `width="${width}" height="${height}"`
        return `<a href="${src}"><img src="${src}" ${size} alt="${escape(alt)}"></a>`
    }
    const refuse = (tokens, k, options, env) => {
        const text = tokens[k].content.trim()
        if (/^<!--[^]*-->$/.test(text)) return ''
        if (/^(<\/?details>|<summary>[^<]*<\/summary>|\s)+$/.test(text)) return `${text}\n`
        return book.problem(env, `HTML in the text: ${text}`)
    }
    md.renderer.rules.html_block = refuse
    md.renderer.rules.html_inline = refuse

    // Headings: anchors, and the entries for the contents column.
    md.renderer.rules.heading_open = (tokens, k, options, env) => {
        const level = Number(tokens[k].tag[1]) - (env.shift ?? 0)
        if (level > env.level + 1) book.problem(env, 'a heading skips a level')
        env.level = level
        const inline = tokens[k + 1]
        const plain = inline.children
            .filter((t) => ['text', 'code_inline', 'inline_math'].includes(t.type))
            .map((t) => t.content)
            .join('')
        const numbered = env.numbered && /^(\d+(?:\.\d+)?)\s/.exec(plain)
        const id = numbered ? `s${numbered[1]}` : env.slug(plain)
        tokens[k].opened = { level, id }
        if (level > 1) env.sections.push({ level, id, title: plain })
        env.inLink = true // a heading is no place for links
        return `<h${level} id="${id}">`
    }
    md.renderer.rules.heading_close = (tokens, k, options, env) => {
        env.inLink = false
        return `</h${Number(tokens[k].tag[1]) - (env.shift ?? 0)}>\n`
    }

    // Fences: formulas, programs, plain blocks. A block of the header's equations as plain text is
    // typeset as they are.
    md.renderer.rules.fence = (tokens, k, options, env) => {
        const info = tokens[k].info.trim()
        const text = tokens[k].content.replace(/\n$/, '')
        if (info === 'math') return book.formula(text, env)
        if (info === 'eq')
            return text
                .split('\n')
                .map((tag) => book.equation(tag, env))
                .join('')
        const language = info.split(/\s+/)[0]
        const link = (html, what) =>
            /comment|plain/.test(what) ? said('', { ...env, italic: false }, html) : html
        if (!language) return plainBlock(text, env)
        const lines = highlight(text, language, link)
        text.split('\n').forEach((line, at) => {
            const href = language === 'c' ? book.quoted(line, env) : null
            if (href) lines[at] += `<a class="from" href="${href.href}">${href.line}</a>`
        })
        return listing(lines)
    }
    const plainBlock = (text, env) => {
        const out = []
        let rows = []
        const flush = () => {
            while (rows.length && !rows[0].trim()) rows.shift()
            while (rows.length && !rows.at(-1).trim()) rows.pop()
            const less = Math.min(
                ...rows.filter((r) => r.trim()).map((r) => /^ */.exec(r)[0].length),
            )
            const language = rows.some((r) => r.includes('/*') && r.includes(';')) ? 'c' : ''
            const link = (html, what) =>
                /comment|plain/.test(what) ? said('', { ...env, italic: false }, html) : html
            if (rows.length)
                out.push(
                    listing(highlight(rows.map((r) => r.slice(less)).join('\n'), language, link)),
                )
            rows = []
        }
        for (const row of text.split('\n')) {
            const m = /^ {4}\S.*?\s+\[([A-Z]+\.\d+)\]$/.exec(row)
            if (!m) {
                rows.push(row)
                continue
            }
            flush()
            out.push(book.equation(m[1], env))
        }
        flush()
        return out.join('')
    }
    md.renderer.rules.code_block = (tokens, k, options, env) => {
        const text = escape(tokens[k].content.replace(/\n$/, ''))
        return `<pre class="plain">${said('', { ...env, italic: false }, text)}</pre>\n`
    }

    // Tables of verdicts are known by their second column: a phone shows them as a list.
    md.renderer.rules.table_open = (tokens, k) => {
        const head = tokens.slice(k, k + 9).filter((t) => t.type === 'inline')
        const verdicts = head[1]?.content === 'claim' ? ' class="verdicts"' : ''
        return `<div class="table"><table${verdicts}>\n`
    }
    md.renderer.rules.table_close = () => '</table></div>\n'

    // A picture alone in its paragraph is a figure.
    const alone = (tokens, k) => {
        const inline = tokens[k].type === 'paragraph_open' ? tokens[k + 1] : tokens[k - 1]
        const children = inline.children?.filter((t) => t.type !== 'softbreak')
        return children?.length === 1 && children[0].type === 'image' ? children[0] : null
    }
    md.renderer.rules.paragraph_open = (tokens, k) => {
        if (tokens[k].hidden) return ''
        return alone(tokens, k) ? '<figure>\n' : '<p>'
    }
    md.renderer.rules.paragraph_close = (tokens, k, options, env) => {
        if (tokens[k].hidden) return ''
        const image = alone(tokens, k)
        if (!image) return '</p>\n'
        const { caption } = book.picture(image.attrGet('src'), env)
        const alt = image.content.replace(/\s+/g, ' ')
        return `\n<figcaption><p>${said(alt, env)}.</p>${caption}</figcaption></figure>\n`
    }

    // env: where (for messages), page, sections; shift: what to take off a heading's level;
    // numbered: headings such as "6.3  Backward" have the anchor s6.3.
    return (text, env) => {
        env.slug ??= slugger()
        env.sections ??= []
        env.level ??= 0
        env.inLink = false
        return md.render(text.replace(/<!--[^]*?-->/g, ''), env)
    }
}
