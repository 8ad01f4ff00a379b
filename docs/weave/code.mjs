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

// The lines of a program as HTML, each complete in itself. `link(text, what)` may turn a comment's
// text or a string into one with links; both are HTML.
export function highlight(source, language, link = (text) => text) {
    const known = hljs.getLanguage(language)
    const html = known ? hljs.highlight(source, { language }).value : escape(source)
    const lines = ['']
    const open = []
    for (const piece of html.match(/<[^>]*>|[^<]+/g) ?? []) {
        if (piece.startsWith('</')) {
            open.pop()
            lines[lines.length - 1] += piece
        } else if (piece.startsWith('<')) {
            open.push(piece)
            lines[lines.length - 1] += piece
        } else {
            const comment = open.some((tag) => tag.includes('hljs-comment'))
            const string = open.some((tag) => tag.includes('hljs-string'))
            piece.split('\n').forEach((text, k) => {
                if (k > 0) {
                    lines[lines.length - 1] += '</span>'.repeat(open.length)
                    lines.push(open.join(''))
                }
                lines[lines.length - 1] += comment
                    ? link(text, 'comment')
                    : string
                      ? link(text, 'string')
                      : text
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
