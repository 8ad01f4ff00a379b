// The script of every page: search, and previews of equations. The pages work without it, and it
// works from disk: what it needs it loads as scripts, when it is wanted.
;(() => {
    const self = document.currentScript
    const base = self.src.replace(/book\.js$/, '')
    const TAG = /#([A-Z]{2,})\.(\d+[a-z]?)$/
    const loaded = new Map()
    const load = (name) => {
        if (!loaded.has(name)) {
            loaded.set(name, new Promise((done) => {
                const script = document.createElement('script')
                script.src = `${base}${name}.js`
                script.onload = script.onerror = () => done()
                document.head.append(script)
            }))
        }
        return loaded.get(name)
    }
    const data = (window.book = { search: [], equations: {} })
    const make = (tag, attributes, ...inside) => {
        const e = Object.assign(document.createElement(tag), attributes)
        e.append(...inside)
        return e
    }

    // ---- search: "/" leads there, arrows through what is found ----
    const input = make('input', { type: 'search', placeholder: 'Search  /', id: 'find',
        autocomplete: 'off', ariaLabel: 'Search the book' })
    const list = make('ol', { className: 'found' })
    const status = make('p', { className: 'found-status', role: 'status' })
    const place = make('div', { className: 'find', role: 'search' }, input, status, list)
    document.querySelector('main').before(place)
    const escape = (s) => s.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    function find() {
        const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
        list.replaceChildren()
        status.textContent = ''
        if (input.value.trim().length < 2) return
        const hits = []
        for (const [title, where, to, text] of data.search) {
            const head = title.toLowerCase()
            const body = text.toLowerCase()
            if (!words.every((w) => head.includes(w) || body.includes(w))) continue
            const count = words.reduce((sum, w) => sum + Math.min(5, body.split(w).length - 1), 0)
            const inTitle = words.filter((w) => head.includes(w)).length
            hits.push({ title, where, to, text, score: count + 20 * inTitle })
        }
        hits.sort((a, b) => b.score - a.score)
        status.textContent = hits.length ? `${hits.length} sections` : 'Nothing found'
        const marks = new RegExp(`(${words.map(escape).join('|')})`, 'gi')
        for (const { title, where, to, text } of hits.slice(0, 15)) {
            const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 40)
            const excerpt = make('span', { className: 'excerpt' })
            for (const [k, piece] of text.slice(at, at + 130).split(marks).entries())
                excerpt.append(k % 2 ? make('mark', {}, piece) : piece)
            const link = make('a', { href: base.replace(/book\/$/, '') + to }, title)
            list.append(make('li', {}, link, make('span', { className: 'where' }, ` ${where}`),
                excerpt))
        }
    }
    const open = () => load('search').then(find)
    input.addEventListener('focus', open)
    input.addEventListener('input', open)
    const clear = () => {
        input.value = ''
        find()
    }
    document.addEventListener('keydown', (event) => {
        const typing = /INPUT|TEXTAREA/.test(document.activeElement.tagName)
        if (event.key === '/' && !typing) {
            event.preventDefault()
            input.focus()
        }
        if (!place.contains(document.activeElement)) return
        if (event.key === 'Escape') clear()
        if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
        const stops = [input, ...list.querySelectorAll('a')]
        const at = stops.indexOf(document.activeElement) + (event.key === 'ArrowDown' ? 1 : -1)
        stops[Math.min(stops.length - 1, Math.max(0, at))].focus()
        event.preventDefault()
    })
    list.addEventListener('click', (event) => event.target.tagName === 'A' && clear())

    // ---- previews: what an equation says, beside the link to it ----
    const preview = make('div', { className: 'preview', id: 'preview', role: 'tooltip' })
    preview.hidden = true
    document.body.append(preview)
    let shown = null
    let timer
    const hide = () => {
        clearTimeout(timer)
        shown?.removeAttribute('aria-describedby')
        shown = null
        preview.hidden = true
    }
    async function show(link) {
        const [, family, number] = TAG.exec(link.getAttribute('href'))
        const tag = `${family}.${number}`
        shown = link
        await load(`equations/${family}`)
        const formula = data.equations[tag]
        if (!formula || shown !== link) return
        preview.innerHTML = `<b>${tag}</b>${formula}`
        preview.hidden = false
        link.setAttribute('aria-describedby', 'preview')
        const at = link.getBoundingClientRect()
        const { width, height } = preview.getBoundingClientRect()
        const room = document.documentElement.clientWidth - width - 8
        const left = Math.max(8, Math.min(at.left, room))
        const above = at.top - height - 8
        preview.style.left = `${left + scrollX}px`
        preview.style.top = `${(above > 0 ? above : at.bottom + 8) + scrollY}px`
    }
    const linkOf = (event) => {
        const link = event.target.closest?.('a[href]:not(.tag)')
        return link && TAG.test(link.getAttribute('href')) ? link : null
    }
    document.addEventListener('mouseover', (event) => {
        const link = linkOf(event)
        if (!link || link === shown) return
        hide()
        timer = setTimeout(show, 120, link)
    })
    document.addEventListener('mouseout', (event) => linkOf(event) && hide())
    document.addEventListener('focusin', (event) => {
        hide()
        const link = linkOf(event)
        if (link) show(link)
    })
    document.addEventListener('keydown', (event) => event.key === 'Escape' && hide())
})()
