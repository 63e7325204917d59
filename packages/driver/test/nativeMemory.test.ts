import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nativeMemoryKept } from '../../ffi/test/support/nativeMemoryKept.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { Device, Module } = await import('@shoal/driver')
const { Library, Linker } = await import('@shoal/driver/library')

const ptx = `.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n//${' '.repeat(100_000)}\n`
const wrong = ptx.replace('ret;', 'no such instruction;')
const folder = mkdtempSync(join(tmpdir(), 'shoal-images-'))
const file = join(folder, 'nothing.ptx')
const device = Device.get(0)
const options = { verbose: true } as object

beforeAll(() => {
  writeFileSync(file, ptx)
  // The first load allocates the memory that all calls share.
  Module.loadSync(device, ptx).dispose()
})
afterAll(() => rmSync(folder, { recursive: true }))

const fails = async (work: () => unknown): Promise<void> => {
  await expect((async () => work())()).rejects.toThrow()
}

test.each<[string, () => unknown]>([
  ['Module.load', async () => (await Module.load(device, ptx, options)).dispose()],
  ['Module.load that fails', () => fails(() => Module.load(device, wrong))],
  ['Module.loadSync', () => Module.loadSync(device, ptx, options).dispose()],
  ['Module.loadSync that fails', () => fails(() => Module.loadSync(device, wrong))],
  ['Module.loadFile', async () => (await Module.loadFile(device, file)).dispose()],
  ['Module.loadFile of a missing file', () => fails(() => Module.loadFile(device, `${file}x`))],
  ['Library.load', async () => (await Library.load(device, ptx)).disposeSync()],
  ['Library.load that fails', () => fails(() => Library.load(device, wrong))],
  ['Library.loadSync', () => Library.loadSync(device, ptx).disposeSync()],
  ['Library.loadFile', async () => (await Library.loadFile(device, file)).disposeSync()],
  ['Linker', () => Linker.create(device).add(ptx).addFile(file).dispose()],
  ['Linker.add that fails', () => fails(() => using(Linker.create(device), (linker) => linker.add(wrong)))],
  ['Linker.complete', () => using(Linker.create(device), (linker) => linker.add(ptx).complete())],
])('%s frees its internal native memory', async (_name, work) => {
  expect((await nativeMemoryKept(work)).filter((bytes) => bytes > 16)).toEqual([])
})

async function using<T extends { disposeSync(): void }>(object: T, work: (object: T) => unknown): Promise<void> {
  try {
    await work(object)
  } finally {
    object.disposeSync()
  }
}
