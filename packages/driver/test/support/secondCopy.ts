import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'

/** Returns the package again, like a program with two installed copies. */
export async function secondCopy(): Promise<typeof import('@shoal/driver/shared')> {
  // Within the package, so that it finds the same dependencies.
  const parent = fileURLToPath(new URL('../../build/', import.meta.url))
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(`${parent}copy-`)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  cpSync(fileURLToPath(new URL('../../dist/', import.meta.url)), `${folder}/dist`, { recursive: true })
  return (await import(/* @vite-ignore */ `${folder}/dist/shared.js`)) as typeof import('@shoal/driver/shared')
}

/** Error text about an object of the other copy. */
export const twoCopies =
  /of the copy of the package at file:.*, not of the copy at file:.*copy-.* Two copies of the package are loaded/s
