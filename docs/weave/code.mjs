// C, highlighted line by line, with the tags in its comments as links.
import hljs from 'highlight.js/lib/core'
import c from 'highlight.js/lib/languages/c'
import bash from 'highlight.js/lib/languages/bash'
import python from 'highlight.js/lib/languages/python'

hljs.registerLanguage('c', c)
hljs.registerLanguage('sh', bash)
hljs.registerLanguage('console', bash)
hljs.registerLanguage('python', python)

export const escape = (text) =>
    text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')

// The few kinds of words that are set apart, by one letter each.
const KINDS = {
    comment: 'c',
    keyword: 'k',
    type: 'k',
    meta: 'k',
    number: 'n',
    literal: 'n',
    string: 's',
}

// The lines of a program as HTML, each complete in itself. `link(text, what)` may turn a comment's
// text or a string into one with links; both are HTML.
export function highlight(source, language, link = (text) => text) {
    const known = hljs.getLanguage(language)
    const html = known ? hljs.highlight(source, { language }).value : escape(source)
    const lines = ['']
    const open = [] // the kinds of the words we are in; '' if it is not set apart
    const start = (kind) => (kind ? `<span class="${kind}">` : '')
    const end = (kind) => (kind ? '</span>' : '')
    const add = (text) => (lines[lines.length - 1] += text)
    for (const piece of html.match(/<[^>]*>|[^<]+/g) ?? []) {
        if (piece.startsWith('</')) {
            add(end(open.pop()))
        } else if (piece.startsWith('<')) {
            open.push(KINDS[/hljs-(\w+)/.exec(piece)[1]] ?? '')
            add(start(open.at(-1)))
        } else {
            const words = known ? null : 'plain'
            const what = open.includes('c') ? 'comment' : open.includes('s') ? 'string' : words
            piece.split('\n').forEach((text, k) => {
                if (k > 0) {
                    add(open.map(end).join(''))
                    lines.push(open.map(start).join(''))
                }
                add(what ? link(text, what) : text)
            })
        }
    }
    return lines.map((line) => line.replace(/<span [^>]*><\/span>/g, ''))
}

// A listing. `first` is the number of its first line, or 0 if lines have no numbers; `ids(n)` the
// anchors of line n.
export function listing(lines, first = 0, ids = () => []) {
    const rows = lines.map((line, k) => {
        const [id, ...more] = first ? ids(first + k) : []
        const extra = more.map((other) => `<a id="${other}"></a>`).join('')
        return `<span class="l"${id ? ` id="${id}"` : ''}>${extra}${line}</span>`
    })
    const start = first > 1 ? ` style="counter-reset:l ${first - 1}"` : ''
    const kind = first ? 'code numbered' : 'code'
    return `<pre class="${kind}"${start}><code>${rows.join('\n')}</code></pre>\n`
}
