// Drawings of what the layers compute.
import { batchNorm, dot, random, terms } from './norm.mjs'
import { drawing, minus } from './pen.mjs'

const three = batchNorm([1, 2, 6], 2, -1)
const dy = [-2, 1, 3] // as in chapter 1
const three_dx = terms(three, dy)

// The computation graph of three examples, with values and derivatives.
export function graph() {
    const n = three
    const { gamma, r, xhat, c, mu, v } = n
    const dxhat = dy.map((d) => gamma * d)
    const dr = dot(c, dxhat)
    const dv = -0.5 * r ** 3 * dr
    const dc = dxhat.map((d, i) => r * d + (2 * c[i]) / 3 * dv)
    const dmu = -(dc[0] + dc[1] + dc[2])
    const dx = dc.map((d) => d + dmu / 3)
    const L = dot(dy, n.y)
    const d = drawing('graph', 840, 500, 'The graph of batch norm for three examples',
        'Each box is a value of the forward pass, with the derivative of the loss below it. ' +
        `x = (1, 2, 6), gamma = 2, beta = -1, dy = (-2, 1, 3). dx = (${dx.map((a) =>
            a.toFixed(4)).join(', ')}).`)
    const rows = [112, 202, 292]
    const at = { x: 66, c: 262, h: 456, y: 650, L: 774 }
    const low = 400
    const node = (x, y, name, value, derivative, w = 96) => {
        d.rect(x - w / 2, y - 25, w, 50, 'fpale srule', 6)
        d.text(x - w / 2 + 9, y - 4, name, 'ink', 'start', 15)
        d.text(x + w / 2 - 9, y - 4, minus(value, 4), 'blue', 'end', 13)
        d.text(x + w / 2 - 9, y + 16, minus(derivative, 4), 'orange', 'end', 13)
    }
    const heads = [[at.x, '$x_i$'], [at.c, '$c_i = x_i − μ$'], [at.h, '$x̂_i = c_i r$'],
        [at.y, '$y_i = γ x̂_i + β$'], [at.L, '$L$']]
    for (const [x, text] of heads) d.text(x, 66, text, 'soft', 'middle', 16)
    d.text(20, 30, 'value, forward', 'blue b', 'start', 15)
    d.text(170, 30, '∂$L$/∂(node), backward', 'orange b', 'start', 15)
    // A bus: the values of three rows into one node, or one node into three rows.
    const gather = (x, from, to) => {
        d.poly([[x, rows[0]], [x, to - 36]], 'ssoft')
        d.arrow([[x, to - 40], [x, to - 26]], 'soft')
        rows.forEach((y) => d.circle(x, y, 3, 'fsoft'))
    }
    const spread = (x, y0, to) => {
        d.poly([[x, y0 - 25], [x, rows[0] + 12]], 'ssoft')
        rows.forEach((y) => d.arrow([[x, y + 12], [to - 48, y + 12]], 'soft'))
    }
    for (const y of rows) {
        d.arrow([[at.x + 48, y], [at.c - 48, y]], 'soft')
        d.arrow([[at.c + 48, y], [at.h - 48, y]], 'soft')
        d.arrow([[at.h + 48, y], [at.y - 48, y]], 'soft')
        d.poly([[at.y + 48, y], [711, y]], 'ssoft')
    }
    d.poly([[711, rows[0]], [711, rows[2]]], 'ssoft')
    d.arrow([[711, rows[1]], [at.L - 51, rows[1]]], 'soft')
    gather(132, at.x, low)
    spread(184, low, at.c)
    gather(330, at.c, low)
    spread(390, low, at.h)
    spread(584, low, at.y)
    rows.forEach((y, i) => {
        node(at.x, y, `$x_${i + 1}$`, n.x[i], dx[i])
        node(at.c, y, `$c_${i + 1}$`, c[i], dc[i])
        node(at.h, y, `$x̂_${i + 1}$`, xhat[i], dxhat[i])
        node(at.y, y, `$y_${i + 1}$`, n.y[i], dy[i])
    })
    node(at.L, rows[1], '$L$', L, 1, 102)
    node(158, low, '$μ$', mu, dmu, 104)
    node(318, low, '$v$', v, dv, 92)
    d.arrow([[364, low], [382, low]], 'soft')
    node(430, low, '$r$', r, dr, 96)
    node(566, low, '$γ$', gamma, dot(dy, xhat), 96)
    node(674, low, '$β$', n.beta, dy[0] + dy[1] + dy[2], 96)
    d.poly([[660, low - 25], [660, 340], [584, 340]], 'ssoft')
    d.circle(584, 340, 3, 'fsoft')
    const names = [[158, '$μ = ⟨x⟩$'], [304, '$v = ⟨c^2⟩$'], [440, '$r = 1/√(v + ε)$'],
        [566, '$dγ = ∑ dy·x̂$'], [682, '$dβ = ∑ dy$']]
    for (const [x, text] of names) d.text(x, low + 46, text, 'soft', 'middle', 15)
    d.text(420, 480, '$L = −2 y_1 + y_2 + 3 y_3$,  $ε$ = 0.00001.  ' +
        'A node adds up what comes back along each line that leaves it.', 'soft', 'middle', 13.5)
    return d
}

// The backward pass, one card a step: where the gradient comes from, the derivative of that one
// operation, and the number that results.
export function steps() {
    const { gamma, r, xhat, c, v } = three
    const [tau, rho] = [v + 1e-5, Math.sqrt(v + 1e-5)]
    const sum = (a) => a.reduce((p, q) => p + q, 0)
    const dxhat = dy.map((g) => gamma * g)
    const dr = dot(c, dxhat)
    const drho = -dr / rho ** 2
    const dtau = drho / (2 * rho)
    const dq = dtau / 3
    const dc = dxhat.map((g, i) => r * g + 2 * c[i] * dq)
    const dmu = -sum(dc)
    const dx = dc.map((g) => g + dmu / 3)
    const all = (a, digits = 4) => `(${a.map((b) => minus(b, digits)).join(', ')})`
    const one = (a) => minus(a, 4)
    // title; tags; nodes that get a gradient, each with the derivative beside its arrow; nodes that
    // it comes from; lines below. A node in brackets waits for a later step.
    const cards = [
        ['$y_i = p_i + β$', 'GR.12, 13', [['$p$', '1'], ['$β$', '1']], ['$y$'],
            [`$dp = dy$ = ${all(dy, 0)}`, `$dβ$ = −2 + 1 + 3 = ${one(sum(dy))}`]],
        ['$p_i = γ x̂_i$', 'GR.14, 15', [['$x̂$', '$γ$'], ['$γ$', '$x̂$']], ['$p$'],
            [`$dx̂$ = 2·$dp$ = ${all(dxhat, 0)}`, `$dγ$ = ∑ $dp·x̂$ = ${one(dot(dy, xhat))}`]],
        ['$x̂_i = c_i r$', 'GR.16', [['$c$', 'step 8'], ['$r$', '$c$']], ['$x̂$'],
            ['@b$c$ = (−2, −1, 3)@k', `$dr$ = 8 − 2 + 18 = ${one(dr)}`]],
        ['$r = 1/ρ$', 'GR.17', [['$ρ$', '$−1/ρ^2$']], ['$r$'],
            [`@b$ρ$ = ${one(rho)}@k`, `$dρ$ = −${one(1 / rho ** 2)}·24 = ${one(drho)}`]],
        ['$ρ = √τ$', 'GR.18', [['$τ$', '$1/(2ρ)$']], ['$ρ$'],
            [`@b$τ$ = ${one(tau)}@k`,
                `$dτ$ = ${one(1 / (2 * rho))}·(${one(drho)}) = ${one(dtau)}`]],
        ['$τ = v + ε$', 'GR.19', [['$v$', '1']], ['$τ$'],
            [`@b$v$ = ${one(v)}@k`, `$dv = dτ$ = ${one(dtau)}`]],
        ['$v = (q_1 + q_2 + q_3)/3$', 'GR.20', [['$q$', '1/3']], ['$v$'],
            ['@b$q$ = (4, 1, 9)@k', `$dq_i$ = ${one(dtau)}/3 = ${one(dq)}`]],
        ['$c_i$ has two uses', 'GR.21', [['$c$', '$r$', '$2c$']],
            ['$x̂$', '$q$'], ['$dc_i = r dx̂_i + 2 c_i dq_i$', `$dc$ = ${all(dc)}`]],
        ['$c_i = x_i − μ$', 'GR.22', [['$x$', 'step 10'], ['$μ$', '−1']], ['$c$'],
            [`$dμ$ = −∑ $dc$ = ${one(dmu)}`]],
        ['$x_i$ has two uses', 'GR.23', [['$x$', '1', '1/3']], ['$c$', '$μ$'],
            ['$dx_i = dc_i + dμ/3$', `$dx$ = ${all(dx)}`]],
    ]
    const [W, H] = [270, 156]
    const d = drawing('steps', 572, 5 * H + 52, 'The backward pass of batch norm in ten steps',
        'Each card is one operation. The gradient comes from the right, is multiplied by the ' +
        'derivative beside its arrow, and goes on to the left. ' + cards.map(([title, , , , lines],
            k) => `${k + 1}: ${[title, ...lines].join('; ').replace(/@[bk]|\$/g, '')}`).join('. '))
    d.text(16, 30, 'Each gradient comes from the right and is multiplied on its way.',
        'soft', 'start', 15)
    const node = (x, y, name, style = 'fpale srule') => {
        d.rect(x - 19, y - 14, 38, 28, style, 6)
        d.text(x, y + 5, name, 'ink', 'middle', 16)
    }
    cards.forEach(([title, tags, to, from, lines], k) => {
        const [x, y] = [12 + (k % 2) * (W + 8), 44 + Math.floor(k / 2) * H]
        d.rect(x, y, W, H - 8, 'fpaper srule w0', 6)
        d.circle(x + 17, y + 19, 11, 'forange')
        d.text(x + 17, y + 24, `${k + 1}`, 'paper b', 'middle', 13)
        d.text(x + 35, y + 24, title, 'ink', 'start', 15)
        d.text(x + W - 8, y + 23, tags, 'soft', 'end', 12)
        const mid = y + 70
        const place = (n, i) => mid + (n === 1 ? 0 : i === 0 ? -17 : 17)
        from.forEach((name, i) => node(x + 236, place(from.length, i), name, 'fpeach srule'))
        if (from.length === 1 && to.length === 1) {
            d.arrow([[x + 217, mid], [x + 54, mid]], 'orange', 'w2')
            d.text(x + 135, mid - 9, `· ${to[0][1]}`, 'orange', 'middle', 15)
        } else if (from.length === 1) {
            to.forEach(([, factor], i) => {
                const py = place(2, i)
                const later = factor.startsWith('step')
                d.arrow([[x + 217, mid], [x + 150, py], [x + 54, py]], later ? 'soft' : 'orange',
                    later ? 'dash' : 'w2')
                d.text(x + 105, py - 6, later ? factor : `· ${factor}`, later ? 'soft' : 'orange',
                    'middle', later ? 12 : 15)
            })
        } else {
            from.forEach((_, i) => {
                const py = place(2, i)
                const end = [x + 56, mid + (i ? 5 : -5)]
                d.arrow([[x + 217, py], [x + 120, py], end], 'orange', 'w2')
                d.text(x + 168, py - 6, `· ${to[0][i + 1]}`, 'orange', 'middle', 15)
            })
        }
        to.forEach(([name], i) => node(x + 35, place(to.length, i), name))
        lines.forEach((line, i) => d.text(x + 12, y + H - 38 + i * 20, line,
            'ink', 'start', 14))
    })
    return d
}

// Which values share one statistic: the tensor [N][C][S] as a block.
export function axes() {
    const d = drawing('axes', 840, 372, 'Which values share a mean and a variance',
        'Four blocks of N examples, C channels and S positions. The coloured cells share one ' +
        'mean and variance: batch norm takes one channel of all examples, layer norm one example ' +
        'with all channels, instance norm one channel of one example, group norm some channels ' +
        'of one example.')
    const [N, C, S] = [3, 4, 4]
    const u = 25
    const [ex, ey] = [12, -10] // one step back
    const block = (x0, title, inside, lines) => {
        const y0 = 212
        const p = (c, s, n) => [x0 + c * u + n * ex, y0 - s * u + n * ey]
        const cell = (points, c, n) =>
            d.poly(points, inside(c, n) ? 'fblue spaper' : 'fpale srule w0', true)
        for (let c = 0; c < C; c++)
            for (let s = 0; s < S; s++)
                cell([p(c, s, 0), p(c + 1, s, 0), p(c + 1, s + 1, 0), p(c, s + 1, 0)], c, 0)
        for (let n = 0; n < N; n++) {
            for (let c = 0; c < C; c++)
                cell([p(c, S, n), p(c + 1, S, n), p(c + 1, S, n + 1), p(c, S, n + 1)], c, n)
            for (let s = 0; s < S; s++)
                cell([p(C, s, n), p(C, s, n + 1), p(C, s + 1, n + 1), p(C, s + 1, n)], C - 1, n)
        }
        d.poly([p(0, 0, 0), p(C, 0, 0), p(C, 0, N), p(C, S, N), p(0, S, N), p(0, S, 0)], 'ssoft',
            true)
        d.poly([p(0, S, 0), p(C, S, 0), p(C, S, N)], 'ssoft w0')
        d.poly([p(C, S, 0), p(C, 0, 0)], 'ssoft w0')
        d.text(x0 + 66, 40, title, 'ink b', 'middle', 16)
        d.text(x0 + 50, y0 + 21, '$C$', 'soft')
        d.text(x0 - 12, y0 - 45, '$S$', 'soft')
        d.text(x0 + C * u + 30, y0 - 3, '$N$', 'soft')
        lines.forEach((line, k) => d.text(x0 + 60, y0 + 54 + 23 * k, line, k ? 'soft' : 'ink',
            'middle', 14))
    }
    block(46, 'Batch norm', (c) => c === C - 1, ['mean over $N, S$', '$C$ statistics',
        'of $N·S$ values each'])
    block(252, 'Layer norm', (c, n) => n === 0, ['mean over $C, S$', '$N$ statistics',
        'of $C·S$ values each'])
    block(458, 'Instance norm', (c, n) => n === 0 && c === C - 1, ['mean over $S$',
        '$N·C$ statistics', 'of $S$ values each'])
    block(664, 'Group norm', (c, n) => n === 0 && c >= C - 2, ['mean over a group, $S$',
        '$N·G$ statistics', 'of $C·S/G$ values each'])
    d.text(420, 354, 'RMS norm takes the cells of layer norm and subtracts no mean.', 'soft')
    return d
}

// The three ways from one input to the loss, and what each adds to dx.
export function paths() {
    const { direct, byMean, byVariance, dx } = three_dx
    const d = drawing('paths', 840, 400, 'The three paths of dx',
        'An input reaches the loss through its own normalized value, through the mean and ' +
        `through the variance. For x = (1, 2, 6) the three add up to dx = (${dx.map((a) =>
            a.toFixed(3)).join(', ')}).`)
    d.text(190, 34, 'one input, three paths', 'ink b', 'middle', 16)
    const X = [62, 190]
    const out = [[300, 100], [300, 190], [300, 280]]
    for (const [x, y] of out) d.curve([x + 26, y], [x + 52, y], [378, 190 + (y - 190) / 9], 'soft')
    d.arrow([[88, 190], [274, 190]], 'blue', 'w3')
    d.curve(X, [80, 86], [154, 86], 'orange', 'w2')
    d.arrow([[202, 88], [274, 98]], 'orange', 'w2')
    d.curve([196, 100], [226, 150], [274, 182], 'orange', 'w2')
    d.curve([188, 104], [206, 220], [276, 268], 'orange', 'w2')
    d.curve(X, [80, 294], [154, 294], 'green', 'w2')
    d.arrow([[202, 292], [274, 282]], 'green', 'w2')
    d.curve([196, 280], [226, 230], [274, 198], 'green', 'w2')
    d.curve([188, 276], [206, 160], [276, 112], 'green', 'w2')
    d.circle(178, 86, 24, 'fpeach sorange')
    d.text(178, 92, '$μ$', 'ink', 'middle', 18)
    d.circle(178, 294, 24, 'fmint sgreen')
    d.text(178, 300, '$v$', 'ink', 'middle', 18)
    d.circle(...X, 26, 'fpale sink')
    d.text(62, 196, '$x_2$', 'ink', 'middle', 18)
    out.forEach(([x, y], i) => {
        d.circle(x, y, 26, i === 1 ? 'fsky sblue' : 'fpale ssoft')
        d.text(x, y + 6, `$x̂_${i + 1}$`, 'ink', 'middle', 18)
    })
    d.text(392, 196, '$L$', 'ink', 'middle', 18)
    d.text(190, 372, '$dx_i = γr ( @bdy_i@k @o− ⟨dy⟩@k @g− x̂_i ⟨dy·x̂⟩@k )$', 'ink',
        'middle', 19)

    d.text(630, 34, 'what each adds to $dx_i$, $x$ = (1, 2, 6)', 'ink b', 'middle', 16)
    const zero = 200
    const scale = 44
    for (let t = -3; t <= 3; t++) {
        const y = zero - t * scale
        d.poly([[470, y], [816, y]], t ? 'srule w0' : 'ssoft')
        d.text(460, y + 5, minus(t, 0), 'soft', 'end', 13)
    }
    three.x.forEach((x, i) => {
        let level = 0
        const left = 482 + 118 * i
        const bar = (k, v, colour) => {
            const [a, b] = [level, level + v]
            const x0 = left + 26 * k
            const style = colour === 'ink' ? 'fsoft' : `f${colour}`
            d.rect(x0, zero - Math.max(a, b) * scale, 20, Math.max(Math.abs(v) * scale, 1), style)
            if (k < 2) d.poly([[x0 + 20, zero - b * scale], [x0 + 46, zero - b * scale]],
                'ssoft w0')
            level = b
        }
        bar(0, direct[i], 'blue')
        bar(1, byMean[i], 'orange')
        bar(2, byVariance[i], 'green')
        level = 0
        bar(3, dx[i], 'ink')
        d.text(left + 49, 352, `$dx_${i + 1}$ = ${minus(dx[i], 3)}`, 'ink')
    })
    const key = [['blue', 'direct'], ['orange', 'mean'], ['green', 'variance'], ['soft', 'sum']]
    key.forEach(([colour, text], k) => {
        d.rect(484 + 84 * k, 371, 12, 12, `f${colour}`)
        d.text(501 + 84 * k, 382, text, 'ink', 'start', 13)
    })
    return d
}

// dx as dy without its parts along the constant vector and along x-hat.
export function projection() {
    const one = [1, 1, 1].map((a) => a / Math.sqrt(3))
    const dy = [-0.5, 2, 2.5] // well seen from the side, unlike that of chapter 1
    const parts = terms(three, dy)
    const length = Math.hypot(...three.xhat)
    const h = three.xhat.map((a) => a / length)
    const n = [h[1] * one[2] - h[2] * one[1], h[2] * one[0] - h[0] * one[2],
        h[0] * one[1] - h[1] * one[0]]
    const part = { one: dot(dy, one), h: dot(dy, h), n: dot(dy, n) }
    const d = drawing('projection', 840, 400, 'The backward pass is a projection',
        'In the space of three gradients, dy loses its part along (1, 1, 1), then its part along ' +
        'x-hat. What is left, times gamma r, is dx.')
    // Seen from the front: 1 upwards, x-hat to the right, what is left towards the reader.
    const s = 78
    const P = (a, b, c) => [232 + s * (b * 0.86 - c * 0.62), 150 - s * a + s * (b * 0.3 + c * 0.5)]
    const [a, b, c] = [part.one, part.h, Math.abs(part.n)]
    const axis = (v, text, dx, dy) => {
        d.arrow([P(0, 0, 0), P(...v)], 'soft', '', 7)
        const [x, y] = P(...v)
        d.text(x + dx, y + dy, text, 'soft', 'middle', 15)
    }
    const plane = [P(0, -0.5, -0.7), P(0, 2.9, -0.7), P(0, 2.9, 1.7), P(0, -0.5, 1.7)]
    d.poly(plane, 'fpale srule', true)
    axis([1.15, 0, 0], '(1, 1, 1)', 0, -8)
    axis([0, 3.25, 0], '$x̂$', 16, 6)
    axis([0, 0, 2.2], '', 0, 0)
    d.poly([P(a, b, c), P(0, b, c)], 'sorange w2 dash')
    d.poly([P(0, b, c), P(0, 0, c)], 'sgreen w2 dash')
    d.poly([P(0, b, c), P(0, b, 0)], 'srule')
    d.arrow([P(0, 0, 0), P(a, b, c)], 'blue', 'w3')
    d.arrow([P(0, 0, 0), P(0, b, c)], 'soft', 'w2')
    d.arrow([P(0, 0, 0), P(0, 0, c)], 'ink', 'w3')
    const say = (v, text, style, dx, dy, anchor = 'start') =>
        d.text(P(...v)[0] + dx, P(...v)[1] + dy, text, style, anchor, 15)
    say([a, b, c], '$dy$', 'blue b', 10, 8)
    say([a / 2, b, c], '1', 'orange b', 10, 5)
    say([0, b / 2, c], '2', 'green b', -4, 22, 'middle')
    say([0, 0, c], '$dx/(γr)$', 'ink b', -18, -8, 'end')
    const X = 490
    d.text(X, 64, 'A gradient that passed the statistics', 'ink b', 'start', 16)
    d.text(X, 88, 'has two directions fewer.', 'ink b', 'start', 16)
    const lines = [
        ['blue', '$dy$ = (', dy, ')'],
        ['orange', '1   −$⟨dy⟩$ = −(', [parts.m, parts.m, parts.m], ')'],
        ['green', '2   −$x̂⟨dy·x̂⟩$ = −(', three.xhat.map((v) => v * parts.p), ')'],
        ['ink', '$dx/(γr)$ = (', parts.dx.map((v) => v / three.gamma / three.r), ')'],
    ]
    lines.forEach(([style, before, v, after], k) =>
        d.text(X, 136 + 34 * k, before + v.map((t) => minus(t, 3)).join(', ') + after,
            style, 'start', 15))
    d.text(X, 290, 'It is at right angles to both, up to $ε$:', 'ink', 'start', 15)
    d.text(X, 320, '$∑ dx_i = 0$', 'ink', 'start', 17)
    d.text(X + 150, 320, '$∑ dx_i x̂_i ≈ 0$', 'ink', 'start', 17)
    d.text(X, 358, '$x$ = (1, 2, 6): of three directions one is left.', 'soft',
        'start', 13.5)
    return d
}

// Three workers, one batch.
export function synchronised() {
    const parts = [[1, 2], [6, 7, 9], [2, 3, 3, 3]]
    const all = parts.flat()
    const stats = (x) => {
        const m = x.reduce((p, q) => p + q, 0) / x.length
        return { n: x.length, m, q: x.reduce((p, q) => p + (q - m) ** 2, 0) }
    }
    const whole = stats(all)
    const d = drawing('synchronised', 840, 412, 'Synchronised batch norm',
        'Three workers send three numbers per channel: count, mean and sum of squared ' +
        'deviations. Merged, they are the statistics of the whole batch, and every worker ' +
        'normalizes with them. On the way back each sends two sums.')
    parts.forEach((x, k) => {
        const y = 76 + 106 * k
        const { n, m, q } = stats(x)
        d.text(24, y - 22, `worker ${k + 1}`, 'ink b', 'start')
        x.forEach((v, i) => {
            d.rect(24 + 34 * i, y - 12, 30, 28, 'fsky sblue', 4)
            d.text(39 + 34 * i, y + 8, String(v))
        })
        d.arrow([[24 + 34 * n + 4, y + 2], [190, y + 2]], 'soft')
        d.box(270, y + 2, 152, 52, [`$n$ = ${n}, $m$ = ${minus(m, 2)}`,
            `$Q$ = ${minus(q, 2)}`], 'fpale srule', 'ink', 14)
        d.arrow([[348, y + 2], [414, 182 + (y - 182) * 0.36]], 'blue', 'w2')
        d.arrow([[562, 182 + (y - 182) * 0.36], [626, y + 2]], 'blue', 'w2')
        d.text(636, y + 7, `$x̂ = (x − μ) r$`, 'ink', 'start', 16)
    })
    d.box(488, 184, 144, 128, ['all', `$n$ = ${whole.n}`, `$μ$ = ${minus(whole.m, 2)}`,
        `$v = Q/n$ = ${minus(whole.q / whole.n, 2)}`], 'fsky sblue', 'ink', 14)
    d.text(270, 38, 'three numbers a channel', 'soft', 'middle', 13)
    d.text(488, 104, 'merge', 'blue b')
    d.text(700, 38, 'the same $μ$ and $r$ everywhere', 'soft', 'middle', 13)
    d.poly([[24, 334], [816, 334]], 'srule')
    d.text(24, 366, 'Backward', 'orange b', 'start', 15)
    d.text(112, 366, 'each worker sends $∑dy$ and $∑dy·x̂$; the totals, divided by $n$ = 9, are ' +
        'the means in', 'ink', 'start', 14)
    d.text(112, 388, '$dx_i = γr ( dy_i − ⟨dy⟩ − x̂_i ⟨dy·x̂⟩ )$', 'ink', 'start', 15)
    return d
}

// Batch norm at inference, inside the linear layer before it.
export function folding() {
    const d = drawing('folding', 784, 300, 'Folding batch norm into a linear layer',
        'At inference the mean and the variance are constants. A linear layer followed by batch ' +
        'norm is one linear layer with other weights and another bias.')
    const y1 = 84
    const y2 = 216
    const block = (x, y, w, name, formula, style) =>
        d.box(x, y, w, 66, [name, formula], style, 'ink', 15)
    d.text(30, y1 + 6, '$x$', 'ink', 'start', 19)
    d.arrow([[52, y1], [94, y1]])
    block(186, y1, 180, 'linear', '$z = Wx + b$', 'fsky sblue')
    d.arrow([[278, y1], [334, y1]])
    block(494, y1, 316, 'batch norm, inference', '$y = γ r (z − μ) + β$', 'fpeach sorange')
    d.arrow([[654, y1], [714, y1]])
    d.text(724, y1 + 6, '$y$', 'ink', 'start', 19)
    d.text(30, y2 + 6, '$x$', 'ink', 'start', 19)
    d.arrow([[52, y2], [176, y2]])
    block(370, y2, 384, 'one linear layer', '$y = (γr · W) x + ( γr (b − μ) + β )$',
        'fmint sgreen')
    d.arrow([[564, y2], [714, y2]])
    d.text(724, y2 + 6, '$y$', 'ink', 'start', 19)
    d.curve([150, y1 + 36], [160, y1 + 74], [232, y2 - 36], 'soft', 'dash')
    d.curve([560, y1 + 36], [552, y1 + 70], [480, y2 - 36], 'soft', 'dash')
    d.text(350, 154, 'the same function, half the work', 'soft')
    d.text(392, 278, '$r = 1/√(v + ε)$ from the running variance.  Row $k$ of $W$ is ' +
        'multiplied by $γ_k r_k$.', 'soft', 'middle', 14)
    return d
}

// A recurrent layer with layer norm, three steps of it.
export function recurrent() {
    const d = drawing('recurrent', 840, 388, 'A recurrent layer with layer norm, unrolled',
        'Three time steps with the same weights. Each step normalizes its own summed inputs with ' +
        'its own mean and variance; the gradient runs backward through all steps.')
    const Y = { h: 74, f: 130, n: 190, s: 254, x: 318 }
    for (let t = 1; t <= 3; t++) {
        const x = 190 + 224 * (t - 1)
        const i = t === 2 ? 't' : t === 1 ? '{t−1}' : '{t+1}'
        d.rect(x - 76, 98, 152, 190, 'fpaper srule', 10)
        d.box(x, Y.f, 116, 34, ['activation'], 'fpale srule', 'ink', 14)
        d.box(x, Y.n, 116, 40, ['layer norm'], 'fsky sblue', 'ink', 14)
        d.circle(x, Y.s, 18, 'fpale ssoft')
        d.text(x, Y.s + 6, '+', 'ink', 'middle', 18)
        d.arrow([[x, Y.s - 18], [x, Y.n + 22]])
        d.arrow([[x, Y.n - 20], [x, Y.f + 19]])
        d.arrow([[x, Y.f - 17], [x, 68]])
        d.text(x, 54, `$h_${i}$`, 'ink', 'middle', 19)
        d.arrow([[x, Y.x], [x, Y.s + 20]])
        d.text(x + 12, Y.s + 58, '$W_x$', 'soft', 'start', 15)
        d.text(x, Y.x + 24, `$x_${i}$`, 'ink', 'middle', 19)
        const from = x - 224
        const start = t === 1 ? [62, Y.s] : [from + 18 + 116, Y.s]
        if (t > 1) d.poly([[from, 84], [from + 134, 84], [from + 134, Y.s]], 'sink')
        if (t > 1) d.circle(from, 84, 3, 'fink')
        d.arrow([start, [x - 20, Y.s]])
        d.text(x - 50, Y.s - 8, '$W_h$', 'soft', 'middle', 15)
        if (t > 1) d.arrow([[x - 21, Y.s + 10], [x - 83, Y.s + 10], [x - 83, 92], [from + 9, 92],
            [from + 9, Y.f - 18]], 'orange', 'dash')
        d.text(x - 18, Y.n + 36, `$a_${i}$`, 'soft', 'end', 15)
    }
    d.text(46, Y.s + 6, '$h_{t−2}$', 'ink', 'middle', 19)
    d.poly([[638, 84], [772, 84]], 'sink')
    d.circle(638, 84, 3, 'fink')
    d.arrow([[770, 84], [790, 84]])
    d.text(810, 90, '…', 'ink', 'middle', 18)
    d.text(414, 374, 'Each step has its own $μ_t$ and $v_t$; $W_x, W_h, γ, β$ are shared. ' +
        '@oThe gradient runs right to left.', 'soft', 'middle', 14)
    return d
}

// What noisy batch norm adds after the normalization.
export function noise() {
    const rng = random(7)
    const d = drawing('noise', 840, 346, 'Noisy batch norm',
        'One channel over twelve training steps. After batch norm its values have mean 0 and ' +
        'variance 1 in every step; the noise then moves and stretches them anew in each step.')
    const clean = []
    const noisy = []
    for (let t = 0; t < 12; t++) {
        const x = Array.from({ length: 14 }, () => rng.normal())
        const { xhat } = batchNorm(x, 1, 0)
        const centre = -0.5 + rng.uniform()
        const stretch = 1 + 0.25 * rng.uniform()
        clean.push(xhat)
        noisy.push(xhat.map((v) => (centre - 0.1 + 0.2 * rng.uniform()) +
            (stretch + 0.1 * rng.normal()) * v))
    }
    const panel = (x0, title, data, colour) => {
        const y = (v) => 170 - 36 * v
        d.text(x0 + 180, 34, title, 'ink b', 'middle', 16)
        for (let v = -3; v <= 3; v++) {
            d.poly([[x0, y(v)], [x0 + 360, y(v)]], v ? 'srule w0' : 'ssoft')
            d.text(x0 - 8, y(v) + 5, minus(v, 0), 'soft', 'end', 13)
        }
        const means = []
        data.forEach((values, t) => {
            const x = x0 + 18 + 29.5 * t
            for (const v of values) d.circle(x, y(v), 2.6, `f${colour} thin`)
            const m = values.reduce((p, q) => p + q, 0) / values.length
            const sd = Math.sqrt(values.reduce((p, q) => p + (q - m) ** 2, 0) / values.length)
            d.poly([[x + 8, y(m - sd)], [x + 8, y(m + sd)]], 'sink w2')
            means.push([x + 8, y(m)])
        })
        d.poly(means, 'sink w0')
        for (const [x, my] of means) d.circle(x, my, 3.2, 'fink')
        d.text(x0 + 180, 302, 'training step →', 'soft')
    }
    panel(48, 'after batch norm', clean, 'blue')
    panel(460, 'after the noise', noisy, 'orange')
    d.text(420, 330, 'Dots: values of one channel. Lines: their mean, and one standard deviation ' +
        'to each side.', 'soft', 'middle', 13.5)
    return d
}

// Running statistics follow those of the batches.
export function running() {
    const rng = random(11)
    const d = drawing('running', 840, 350, 'Running statistics',
        'The mean of each mini-batch scatters. The running mean starts at 0 and moves a tenth of ' +
        'the way towards each batch mean; inference uses its last value.')
    const X = (t) => 56 + 15 * t
    const Y = (v) => 250 - 70 * v
    for (let v = 0; v <= 3; v++) {
        d.poly([[X(0), Y(v)], [X(44), Y(v)]], v ? 'srule w0' : 'ssoft')
        d.text(46, Y(v) + 5, String(v), 'soft', 'end', 13)
    }
    const line = [[X(0), Y(0)]]
    let running = 0
    for (let t = 1; t <= 40; t++) {
        const mu = 2 + 0.45 * rng.normal()
        d.circle(X(t), Y(mu), 3.6, 'fblue')
        running += 0.1 * (mu - running)
        line.push([X(t), Y(running)])
    }
    d.poly([[X(0), Y(2)], [X(40), Y(2)]], 'ssoft dash')
    d.poly(line, 'sorange w3')
    d.poly([line.at(-1), [812, line.at(-1)[1]]], 'sgreen w3')
    d.poly([[X(40), 30], [X(40), 262]], 'srule dash')
    d.text(X(20), 288, 'training: 40 mini-batches', 'ink')
    d.text(738, 288, 'inference', 'green b')
    d.text(X(14), 40, 'mean $μ$ of each mini-batch', 'blue', 'start')
    d.text(X(13), Y(1) + 4, 'running mean: a tenth of the way to $μ$ at each step', 'orange halo',
        'start')
    d.text(X(2.2), Y(0) - 8, 'starts at 0', 'soft', 'start', 13)
    d.text(738, Y(2) - 46, 'one fixed number', 'green', 'middle', 13)
    d.text(420, 326, 'running ← 0.9 · running + 0.1 · $μ$.  After $t$ steps the start still ' +
        'counts with weight $0.9^t$: 12 % after 20.', 'soft', 'middle', 14)
    return d
}
