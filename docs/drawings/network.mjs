// Drawings for the chapters on checking, networks, numerics and smoothness, and for reference.
import { batchNorm, terms } from './norm.mjs'
import { drawing, minus } from './pen.mjs'

// The error of a difference quotient, by its step.
export function gradcheck() {
    const d = drawing('gradcheck', 840, 390, 'The error of a difference quotient',
        'Central and one-sided differences of batch norm in double. With a small step rounding ' +
        'dominates, with a large one the curvature; in between lies the best step.')
    const x = [1, 2, 6, 3.5]
    const t = [0.5, -1, 1, 0.25]
    const loss = (at) => {
        const { y } = batchNorm(at, 2, -1)
        return y.reduce((sum, v, i) => sum + 0.5 * (v - t[i]) ** 2, 0)
    }
    const n = batchNorm(x, 2, -1)
    const { dx } = terms(n, n.y.map((v, i) => v - t[i]))
    const moved = (h) => [x[0] + h, ...x.slice(1)]
    const X = (e) => 78 + (e + 14) * 36
    const Y = (e) => 44 - e * 21.5
    for (let e = -14; e <= 0; e += 2) {
        d.poly([[X(e), Y(0)], [X(e), Y(-13)]], 'srule w0')
        d.text(X(e), Y(-13) + 20, e ? `$10^{${minus(e, 0)}}$` : '$1$', 'soft', 'middle', 14)
    }
    for (let e = -12; e <= 0; e += 2) {
        d.poly([[X(-14), Y(e)], [X(0), Y(e)]], 'srule w0')
        d.text(70, Y(e) + 5, e ? `$10^{${minus(e, 0)}}$` : '$1$', 'soft', 'end', 14)
    }
    const curve = (quotient, style) => {
        const points = []
        for (let k = -56; k <= 0; k++) {
            const h = 2 ** Math.round((k / 4) * Math.log2(10)) // exact: x + h − x is h
            const error = Math.abs(quotient(h) / dx[0] - 1)
            const e = Math.min(0, Math.max(-13, Math.log10(error || 1e-13)))
            const p = [X(Math.log10(h)), Y(e)]
            if (!points.length || p[0] > points.at(-1)[0] + 1) points.push(p)
        }
        d.poly(points, `${style} w2`)
    }
    curve((h) => (loss(moved(h)) - loss(x)) / h, 'sorange')
    curve((h) => (loss(moved(h)) - loss(moved(-h))) / (2 * h), 'sblue')
    d.text(330, 376, 'step $h$', 'ink')
    d.text(78, 28, 'relative error of ∂$L$/∂$x_1$', 'ink', 'start')
    d.text(604, 92, 'one-sided', 'orange b', 'start', 15)
    d.text(604, 114, '$(L(x + h) − L(x)) / h$', 'orange', 'start', 15)
    d.text(604, 168, 'central', 'blue b', 'start', 15)
    d.text(604, 190, '$(L(x + h) − L(x − h)) / 2h$', 'blue', 'start', 15)
    d.text(604, 250, 'left: rounding, $≈ 10^{−16}/h$', 'soft', 'start')
    d.text(604, 274, 'right: curvature, $≈ h$ or $h^2$', 'soft', 'start')
    d.text(604, 298, 'best: $h ≈ 10^{−8}$ or $10^{−5}$', 'soft', 'start')
    return d
}

// The blocks of a network, forward and back.
export function network() {
    const d = drawing('network', 840, 372, 'A multilayer perceptron with a norm',
        'Each hidden layer is a linear map, a norm and an activation; the last is linear, with ' +
        'softmax and the cross-entropy. Gradients come back through the same blocks.')
    const y = 128
    const blocks = [
        [112, 84, 'linear', '$W_1$', 'fsky sblue'],
        [214, 84, 'norm', '$γ_1, β_1$', 'fpeach sorange'],
        [316, 84, 'ReLU', '', 'fpale srule'],
        [446, 84, 'linear', '$W_2$', 'fsky sblue'],
        [548, 84, 'norm', '$γ_2, β_2$', 'fpeach sorange'],
        [650, 84, 'ReLU', '', 'fpale srule'],
    ]
    d.rect(60, 66, 308, 128, 'fpaper srule', 10)
    d.rect(394, 66, 308, 128, 'fpaper srule', 10)
    d.text(214, 56, 'hidden layer 1', 'soft')
    d.text(548, 56, 'hidden layer 2', 'soft')
    d.text(28, y + 2, '$x$', 'ink', 'middle', 18)
    blocks.forEach(([x, w, name, params, style], k) => {
        const from = k ? blocks[k - 1][0] + 42 : 38
        d.arrow([[from, y - 8], [x - 43, y - 8]], 'blue', '', 7)
        d.arrow([[x - 43, y + 10], [from, y + 10]], 'orange', '', 7)
        d.box(x, y, w, 72, params ? [name, params] : [name], style, 'ink', 15)
    })
    d.poly([[692, y - 8], [772, y - 8]], 'sblue')
    d.arrow([[772, y - 8], [772, 232]], 'blue', '', 7)
    d.arrow([[754, 232], [754, y + 10], [693, y + 10]], 'orange', '', 7)
    const z = 262
    d.box(762, z, 116, 60, ['linear', '$W_3, b_3$'], 'fsky sblue', 'ink', 15)
    d.arrow([[704, z - 8], [634, z - 8]], 'blue', '', 7)
    d.arrow([[634, z + 10], [703, z + 10]], 'orange', '', 7)
    d.text(668, z - 20, 'logits', 'soft', 'middle', 13)
    d.box(566, z, 134, 60, ['softmax', '$p$'], 'fmint sgreen', 'ink', 15)
    d.arrow([[499, z - 8], [440, z - 8]], 'blue', '', 7)
    d.arrow([[440, z + 10], [498, z + 10]], 'orange', '', 7)
    const loss = ['cross-entropy', '$L$ = −⟨ln $p_{label}$⟩']
    d.box(360, z, 160, 60, loss, 'fmint sgreen', 'ink', 15)
    d.text(470, z + 30, '$p − t$', 'orange', 'middle', 13)
    d.arrow([[40, z - 12], [96, z - 12]], 'blue', '', 7)
    d.text(106, z - 7, 'forward: values', 'blue', 'start')
    d.arrow([[96, z + 14], [40, z + 14]], 'orange', '', 7)
    d.text(106, z + 19, 'backward: gradients', 'orange', 'start')
    d.text(420, 344, 'A bias before a norm is lost: the norm subtracts the mean again. ' +
        'So only the last layer has one.', 'soft', 'middle', 14)
    return d
}

// Why the variance is not the mean of squares less the square of the mean.
export function numerics() {
    const f = Math.fround
    const x = [1000.1, 1000.2, 1000.4, 1000.3].map(f)
    const sum = (a) => a.reduce((p, q) => f(p + q), 0)
    const squares = f(sum(x.map((v) => f(v * v))) / 4)
    const mu = f(sum(x) / 4)
    const square = f(mu * mu)
    const wrong = f(squares - square)
    const pivot = sum(x.map((v) => f(v - x[0]))) / 4
    const right = sum(x.map((v) => f(f(f(v - x[0]) - pivot) ** 2))) / 4
    const exact = batchNorm(x, 1, 0).v
    const bits = (v) => { // the 24 bits of a float
        const word = new Uint32Array(new Float32Array([v]).buffer)[0]
        return ((word & 0x7fffff) | 0x800000).toString(2)
    }
    const [p, q] = [bits(squares), bits(square)]
    let same = 0
    while (same < 24 && p[same] === q[same]) same++
    const d = drawing('numerics', 840, 378, 'Cancellation',
        'The mean of the squares and the square of the mean of four numbers near 1000 agree in ' +
        `their first ${same} of 24 bits, so their difference is mostly rounding error. ` +
        'Subtracting a nearby value first loses nothing.')
    d.text(24, 34, 'Two floats of 24 bits whose difference is wanted', 'ink b', 'start', 16)
    const row = (y, name, word, value) => {
        d.text(24, y + 17, name, 'ink', 'start', 17)
        for (let k = 0; k < 24; k++) {
            d.rect(112 + 20 * k, y, 18, 24, k < same ? 'fpale srule' : 'fpeach sorange', 3)
            d.text(121 + 20 * k, y + 17, word[k], k < same ? 'soft' : 'ink', 'middle', 14)
        }
        d.text(604, y + 17, value, 'ink', 'start', 15)
    }
    row(54, '$⟨x^2⟩$', p, `= ${squares}`)
    row(92, '$⟨x⟩^2$', q, `= ${square}`)
    d.poly([[112, 128], [112 + 20 * same - 2, 128]], 'ssoft')
    d.text(112 + 10 * same, 148, `the first ${same} bits agree and cancel`, 'soft')
    d.poly([[112 + 20 * same, 128], [590, 128]], 'sorange w2')
    d.text(102 + 10 * (same + 24) + 10, 148, 'left', 'orange b')
    d.text(24, 190, 'difference', 'ink', 'start', 15)
    d.text(112, 190, `${minus(wrong, 4)}`, 'orange b', 'start', 15)
    d.text(190, 190, `true variance ${minus(exact, 4)}`, 'ink', 'start', 15)
    d.poly([[24, 214], [816, 214]], 'srule')
    d.text(24, 244, 'Subtract a nearby value first', 'ink b', 'start', 16)
    const at = (v) => 110 + (v - 1000.1) * 1900
    d.arrow([[60, 292], [800, 292]], 'soft', '', 7)
    x.forEach((v, i) => {
        d.circle(at(v), 292, 6, i ? 'fblue' : 'forange')
        d.text(at(v), 276, String(Math.round(v * 10) / 10), 'ink', 'middle', 14)
        d.text(at(v), 318, i ? `+${minus(v - x[0], 1)}` : 'pivot', i ? 'blue' : 'orange', 'middle',
            14)
    })
    d.text(24, 356, `The differences are exact in a float; their variance comes out as ${minus(
        right, 4)}.`, 'ink', 'start', 15)
    return d
}

// How long may a step be? And why weights before a norm have a gradient at a right angle.
export function smoothness() {
    const d = drawing('smoothness', 840, 400, 'Smoothness and the length of a step',
        'Left: a smooth loss stays below a parabola, so a step of 1/B certainly goes down. ' +
        'Right: the loss does not change with the length of the weights before a norm, so its ' +
        'gradient is at a right angle to them.')
    d.text(205, 34, 'A loss along its gradient', 'ink b', 'middle', 16)
    const B = 1.6
    const X = (eta) => 60 + 205 * eta
    const Y = (v) => 110 - 118 * v
    const loss = (s) => { // slope −1 and curvature at most B
        const k = 1.25
        return -s + (B / k ** 2) * (Math.sqrt(1 + (k * s) ** 2) - 1) * 1.0
    }
    const along = (f, to = 1.45) => Array.from({ length: 59 }, (_, k) => {
        const s = (k / 58) * to
        return [X(s), Y(f(s))]
    })
    d.poly([[X(0), 70], [X(0), 320]], 'srule')
    d.poly([[X(0), 320], [X(1.62), 320]], 'ssoft')
    d.poly(along((s) => -s), 'ssoft dash')
    d.poly(along((s) => -s + (B * s * s) / 2), 'sorange w2')
    d.poly(along(loss), 'sblue w3')
    const half = 1 / B
    d.poly([[X(half), Y(-half + half / 2)], [X(half), 320]], 'sorange dash')
    d.poly([[X(2 * half), Y(0)], [X(2 * half), 320]], 'sorange dash')
    d.circle(X(half), Y(-half / 2), 4, 'forange')
    d.circle(X(2 * half), Y(0), 4, 'forange')
    d.circle(X(0), Y(0), 5, 'fink')
    d.text(X(half), 340, '1/$B$', 'ink')
    d.text(X(2 * half), 340, '2/$B$', 'ink')
    d.text(X(1.62), 340, 'step $η$', 'soft', 'middle')
    d.text(X(0.28), 84, 'never above this parabola', 'orange', 'start')
    d.text(X(1.36), Y(loss(1.34)) - 10, '$f$', 'blue b', 'start', 17)
    d.text(72, 270, 'what the slope promises', 'soft halo', 'start', 13)
    d.text(205, 376, '$B$: the largest curvature', 'soft')

    d.text(632, 34, 'Weights before a norm', 'ink b', 'middle', 16)
    const O = [520, 318]
    const ray = (angle, r) => [O[0] + r * Math.cos(angle), O[1] - r * Math.sin(angle)]
    for (let k = 0; k <= 8; k++) {
        const angle = 0.12 + k * 0.165
        d.poly([ray(angle, 34), ray(angle, 276)], k === 2 ? 'sgreen w2' : 'srule')
    }
    for (const r of [100, 200]) {
        const points = Array.from({ length: 25 }, (_, k) => ray(0.02 + k * 0.0625, r))
        d.poly(points, 'ssoft w0 dash')
    }
    const w = 1.0
    const step = (r, length, style) => {
        const from = ray(w, r)
        const to = [from[0] + length * Math.sin(w), from[1] + length * Math.cos(w)]
        d.arrow([O, from], 'ink', r > 150 ? '' : 'w2')
        d.arrow([from, to], style, 'w3')
        return to
    }
    step(200, 48, 'orange')
    const to = step(100, 96, 'orange')
    d.arrow([O, to], 'soft', 'dash')
    d.circle(...O, 4, 'fink')
    d.text(506, 334, '0', 'soft')
    d.text(ray(w, 100)[0] - 16, ray(w, 100)[1] - 2, '$w$', 'ink halo', 'end', 17)
    d.text(ray(w, 200)[0] - 12, ray(w, 200)[1] + 2, '2$w$', 'ink halo', 'end', 17)
    d.text(682, 128, '−∇$L$, half as long', 'orange halo', 'start')
    d.text(662, 234, '−∇$L$', 'orange halo', 'start')
    d.text(806, 196, 'best', 'green halo', 'end', 13)
    d.text(650, 354, '$L$ is the same along each ray, so', 'soft', 'middle', 13)
    d.text(650, 376, '∇$L$ is at right angles to $w$: a step makes $w$ longer.', 'soft',
        'middle', 13)
    return d
}

// What "momentum 0.1" means, and to whom.
export function conventions() {
    const d = drawing('conventions', 840, 330, 'The weight of past batches',
        'The running mean is a weighted mean of past batch means. new_weight 0.1 is momentum 0.1 ' +
        'in PyTorch and 0.9 in Keras; taken for the other, the last batch counts for nine tenths.')
    const panel = (x0, a, title, names, colour) => {
        d.text(x0 + 170, 34, title, 'ink b', 'middle', 16)
        d.poly([[x0, 190], [x0 + 340, 190]], 'ssoft')
        for (let k = 0; k < 20; k++) {
            const w = a * (1 - a) ** k
            if (w * 130 > 0.3) d.rect(x0 + 322 - 17 * k, 190 - 150 * w, 13, 150 * w, `f${colour}`)
        }
        d.text(x0 + 328, 210, 'last', 'soft', 'middle', 13)
        d.text(x0 + 5, 210, '20 batches ago', 'soft', 'start', 13)
        names.forEach((n, k) => d.text(x0 + 20, 236 + 21 * k, n, 'ink', 'start', 14))
    }
    panel(40, 0.1, 'weight of each past batch: 0.1 for the new one', [
        'new_weight = 0.1 (this header)', 'momentum = 0.1 (PyTorch)',
        'momentum = 0.9 (Keras, ONNX)'], 'blue')
    panel(460, 0.9, 'misread: 0.9 for the new one', ['new_weight = 0.9',
        'momentum = 0.9 (PyTorch)', 'momentum = 0.1 (Keras, ONNX)'], 'orange')
    d.text(420, 312, 'Weight of the batch $k$ steps back: $α (1 − α)^k$.  $α$ = 0.1 remembers ' +
        'about 10 batches, $α$ = 0.9 about one.', 'soft', 'middle', 14)
    return d
}

// Where the bugs of the museum sit.
export function museum() {
    const d = drawing('museum', 840, 376, 'Where the bugs sit',
        'Four lines of batch norm, with the mistakes of the bug museum beside the line that each ' +
        'of them changes, and the library in which it was found.')
    const lines = [
        [58, 44, 'sky', '$v = ⟨(x − μ)^2⟩$', [
            ['$M − 1$ forward, $M$ backward', 'tiny-dnn, darknet']]],
        [114, 44, 'sky', '$r = 1/√(v + ε)$', [['$ε$ outside the root, forward only', 'darknet']]],
        [170, 44, 'peach', '$dβ = ∑ dy,   dγ = ∑ dy·x̂$', [['written over, not added', 'MXNet'],
            ["with the neighbour's statistics", 'tt-metal']]],
        [226, 118, 'peach', '$dx = γr ( dy − ⟨dy⟩ − x̂⟨dy·x̂⟩ )$', [['$γ$ forgotten', 'Knet.jl'],
            ['$⟨dy⟩$ subtracted twice', 'tt-metal'],
            ['$μ$ and $v$ taken for constants', 'dl4j'],
            ['uneven shares as if even', 'PyTorch'],
            ['$γ$ outside the means', 'folklore'], ['the sign', 'anyone']]],
    ]
    d.text(24, 36, 'forward', 'blue b', 'start')
    d.text(90, 36, 'and', 'soft', 'start')
    d.text(122, 36, 'backward', 'orange b', 'start')
    d.text(330, 36, 'what went wrong in it, and where', 'soft', 'start')
    for (const [y, h, colour, formula, bugs] of lines) {
        const edge = colour === 'sky' ? 'blue' : 'orange'
        d.rect(24, y, 276, h, `f${colour} s${edge}`, 6)
        d.text(36, y + h / 2 + 5, formula, 'ink', 'start', 16)
        bugs.forEach(([what, who], k) => {
            const x = 330 + 254 * (k % 2)
            const at = y + 19 + 39 * Math.floor(k / 2)
            d.circle(x, at - 5, 3, `f${edge}`)
            d.text(x + 12, at, what, 'ink', 'start', 14)
            d.text(x + 12, at + 17, who, 'soft', 'start', 12.5)
        })
    }
    return d
}
