import { readdirSync, readFileSync } from 'node:fs'
import * as sys from '@shoal/nccl-sys'
import { expect, test } from 'vitest'

const sources = new URL('../src/', import.meta.url)

/** Functions that this package does not call, with the reasons. */
const left: Readonly<Record<string, string>> = {
  ncclBcast: 'NCCL has replaced it: broadcast with the same buffer twice is the same operation',
  ncclResetDebugInit: 'deprecated in NCCL itself, which says that it is not part of its API',
  ncclResetDebugInitInternal: 'no header declares it; it is for the plugins of NCCL',
  ncclCommCuDevice: 'a communicator knows its device from the moment it is made',
}

/** Returns the functions of @shoal/nccl-sys that the package's source calls or binds by name. */
function called(): Set<string> {
  const names = new Set<string>()
  for (const file of readdirSync(sources, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue
    const text = readFileSync(new URL(file, sources), 'utf8')
    const code = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    const imported = new Set(
      [...code.matchAll(/import (?:type )?\{([^}]*)\} from '@shoal\/nccl-sys'/g)].flatMap(([, list = '']) =>
        list.split(',').map((name) => name.trim()),
      ),
    )
    const body = code.replaceAll(/import [^']*'[^']*'/g, '')
    for (const name of imported) if (new RegExp(`\\b${name}\\b`).test(body)) names.add(name)
    for (const [, name = ''] of code.matchAll(/nccl\.bind\('(\w+)'/g)) names.add(name)
  }
  return names
}

const functions = Object.entries(sys)
  .filter(([name, value]) => typeof value === 'function' && /^nccl[A-Z]/.test(name))
  .map(([name]) => name)
  // Functions with the names of handles convert bigints to them. Helpers for structs belong to this project.
  .filter((name) => !name.endsWith('_t') && name !== 'ncclConfigFields' && !name.endsWith('_'))

test('the raw package binds the 83 functions of NCCL 2.30.7', () => {
  expect(functions).toHaveLength(83)
})

test('every function of NCCL is used by the package or excluded with a reason', () => {
  const reached = called()
  expect(functions.filter((name) => !reached.has(name) && !(name in left))).toEqual([])
})

test('excluded functions exist and are not used', () => {
  const reached = called()
  expect(Object.keys(left).filter((name) => reached.has(name) || !functions.includes(name))).toEqual([])
})
