// Batch norm by the plain formulas, for the numbers in the drawings.
export const mean = (a) => a.reduce((p, q) => p + q, 0) / a.length
export const dot = (a, b) => a.reduce((p, q, i) => p + q * b[i], 0)

export function batchNorm(x, gamma, beta, eps = 1e-5) {
    const mu = mean(x)
    const c = x.map((a) => a - mu)
    const v = mean(c.map((a) => a * a))
    const r = 1 / Math.sqrt(v + eps)
    const xhat = c.map((a) => a * r)
    return { x, gamma, beta, mu, c, v, r, xhat, y: xhat.map((a) => gamma * a + beta) }
}
// The three terms of BN.19: direct, by way of the mean, by way of the variance.
export function terms({ gamma, r, xhat }, dy) {
    const m = mean(dy)
    const p = mean(dy.map((d, i) => d * xhat[i]))
    const direct = dy.map((d) => gamma * r * d)
    const byMean = dy.map(() => -gamma * r * m)
    const byVariance = xhat.map((h) => -gamma * r * h * p)
    const dx = direct.map((d, i) => d + byMean[i] + byVariance[i])
    return { direct, byMean, byVariance, dx, m, p }
}
export function random(seed) { // PCG32: the same numbers everywhere
    let state = 0n
    const mask = (1n << 64n) - 1n
    const next = () => {
        const old = state
        state = (old * 6364136223846793005n + 109n) & mask
        const word = Number((((old >> 18n) ^ old) >> 27n) & 0xffffffffn)
        const turn = Number(old >> 59n)
        return ((word >>> turn) | (word << (-turn & 31))) >>> 0
    }
    next()
    state = (state + BigInt(seed)) & mask
    next()
    const uniform = () => next() / 4294967296
    const normal = () => { // the sum of twelve: near enough for a picture, and the same bits
        let s = -6
        for (let k = 0; k < 12; k++) s += uniform()
        return s
    }
    return { uniform, normal }
}
