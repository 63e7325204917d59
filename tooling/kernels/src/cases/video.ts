import { casesOf } from '../corpus.js'

const { each } = casesOf('video')

each('videoInstructions', ['i32', 'i32', 'i32'], 'i32', (a: number, b: number, c: number) => {
  const byte = (word: number, at: number): number => (word >>> (8 * at)) & 255
  const half = (word: number, at: number): number => (word << (16 - 16 * at)) >> 16
  const differences = [0, 1, 2, 3].reduce((sum, at) => sum + Math.abs(byte(a, at) - byte(b, at)), 0)
  const largest = (at: number): number => Math.max(half(a, at), half(b, at)) & 0xffff
  return [Math.min(Math.max(a + b, -(2 ** 31)), 2 ** 31 - 1), (c + differences) | 0, largest(0) | (largest(1) << 16)]
})
