import { readFileSync } from 'node:fs'
import { Program } from '@shoal/driver/compile'
import { expect, test } from 'vitest'

const read = (extension: string): string =>
  readFileSync(new URL(`../kernels/network.${extension}`, import.meta.url), 'utf8')

/** Without what differs from one compiler to the next, and with the version that drivers from 11.0 on take. */
const comparable = (ptx: string): string => ptx.replace(/^\/\/.*\n/gm, '').replace(/^\.version .*/m, '.version 7.0')

test('the committed PTX equals the output of NVRTC for the source', async ({ skip }) => {
  const ptx = read('ptx')
  const made = await new Program(read('cu')).compile({ architecture: 'compute_75', cache: false }).catch((error) => {
    if (error.name === 'LibraryNotFoundError') return undefined
    throw error
  })
  if (made === undefined) return skip('no libnvrtc on this machine: set SHOAL_NVRTC_LIBRARY')
  const text = String(made.image)
  const release = (of: string): string | undefined => /release ([\d.]+), V[\d.]+/.exec(of)?.[0]
  if (release(text) !== release(ptx)) return skip(`the PTX is of ${release(ptx)}, and here is ${release(text)}`)
  expect(comparable(text)).toBe(comparable(ptx))
})
