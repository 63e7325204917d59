import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { listFiles } from '../src/files.js'
import {
  generatedFolders,
  headerText,
  type LibraryName,
  libraryNames,
  noMatchingHeaders,
  readSpec,
} from './environment.js'

/** Functions that a header declares, read from its text: another way than the generator's. */
function declaredFunctions(name: LibraryName): Set<string> {
  const files = { driver: 'cuda.h', runtime: 'cuda_runtime_api.h', nccl: 'nccl.h' }
  const text = headerText(name, files[name]).replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
  // Old ABIs are declared once more behind __CUDA_API_VERSION_INTERNAL; device functions of the runtime are not the library's.
  const visible = text.split(
    /#if defined\(__CUDA_API_VERSION_INTERNAL\)\n(?=\s*#undef)|#if defined\(__CUDACC__\)\n/,
  )[0] as string
  const pattern = {
    driver: /\bCUDAAPI\s+(cu[A-Z]\w*)\s*\(/g,
    runtime: /\bCUDARTAPI(?:_CDECL)?\s+(cuda[A-Z]\w*)\s*\(/g,
    nccl: /^\s*(?:ncclResult_t|const char\*|void)\s+(nccl[A-Z]\w*)\s*\(/gm,
  }[name]
  return new Set([...visible.matchAll(pattern)].map((match) => match[1] as string))
}

describe.each(libraryNames)('%s', (name) => {
  const spec = readSpec(name)
  const sources = listFiles(generatedFolders[name]).map((path) =>
    readFileSync(join(generatedFolders[name], path), 'utf8'),
  )
  const exported = sources.flatMap((text) =>
    [...text.matchAll(/^export (?:function|const) (\w+)/gm)].map((match) => match[1] as string),
  )

  test('every function that the header declares is in the spec', ({ skip }) => {
    const reason = noMatchingHeaders(name)
    if (reason !== undefined) return skip(reason)
    const declared = declaredFunctions(name)
    expect(declared.size).toBeGreaterThan(50)
    const known = new Set(spec.functions.map((entry) => entry.name))
    expect([...declared].filter((entry) => !known.has(entry))).toEqual([])
  })

  test('every function of the spec is exported once', () => {
    const count = new Map<string, number>()
    for (const entry of exported) count.set(entry, (count.get(entry) ?? 0) + 1)
    expect(spec.functions.map((entry) => entry.name).filter((entry) => count.get(entry) !== 1)).toEqual([])
  })

  test('every enumeration, struct and constant of the spec is exported', () => {
    const known = new Set(exported)
    const wanted = [...spec.enums, ...spec.structs, ...spec.constants, ...spec.handles].map((entry) => entry.name)
    expect(wanted.filter((entry) => !known.has(entry))).toEqual([])
  })

  test('no exported name stands for two things', () => {
    expect(exported.filter((entry, index) => exported.indexOf(entry) !== index)).toEqual([])
  })

  test('no generated file is monstrous', () => {
    for (const text of sources) expect(text.split('\n').length).toBeLessThan(1000)
  })
})
