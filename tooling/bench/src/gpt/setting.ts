import type { Training } from '@shoal/example-gpt/model'

const letters = 'etaoinshrdlu cmfwypvbgkjqxz\n.,'

/** The trained model: the example's model on a GPU, a tiny one on the software device. */
export function settingOf(isSoftware: boolean) {
  const size = isSoftware
    ? { context: 16, width: 32, heads: 2, layers: 1, vocabulary: letters.length }
    : { context: 256, width: 384, heads: 12, layers: 6, vocabulary: letters.length }
  const training: Training = { batch: isSoftware ? 2 : 64, seed: 7, rate: 1e-3, decay: 0.1, warmup: 100, until: 2000 }
  return { size, training, text: textOf(isSoftware ? 1000 : 1_000_000) }
}

/** A random text in which some letters are more frequent than others. */
function textOf(length: number): Int32Array {
  let state = 1
  return Int32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    // A squared random number is more often small than large.
    return Math.floor(((state >>> 8) / 2 ** 24) ** 2 * letters.length)
  })
}
