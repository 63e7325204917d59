import type { Training } from '@shoal/example-gpt/model'

const letters = 'etaoinshrdlu cmfwypvbgkjqxz\n.,'

/** What is trained: on a GPU the model that the example trains there, a tiny one on the software device. */
export function settingOf(isSoftware: boolean) {
  const size = isSoftware
    ? { context: 16, width: 32, heads: 2, layers: 1, vocabulary: letters.length }
    : { context: 256, width: 384, heads: 12, layers: 6, vocabulary: letters.length }
  const training: Training = { batch: isSoftware ? 2 : 64, seed: 7, rate: 1e-3, decay: 0.1, warmup: 100, until: 2000 }
  return { size, training, text: textOf(isSoftware ? 1000 : 1_000_000) }
}

/** Letters of which each makes some of those that follow more likely. */
function textOf(length: number): Int32Array {
  let state = 1
  return Int32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    // The product of two is small more often than not.
    return Math.floor(((state >>> 8) / 2 ** 24) ** 2 * letters.length)
  })
}
