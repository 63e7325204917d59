import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CompileError } from '@shoal/nvrtc'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { moduleRunner } from '../../ffi/test/support/stub.js'
import { fakeCompiler, noCCompiler } from './support/fakeCompiler.js'

const runModule = moduleRunner(new URL('../', import.meta.url))
const reason = noCCompiler()
const compiler = reason === undefined ? fakeCompiler() : ''
const scratch = scratchFolder()

function put(file: string): string {
  const path = join(scratch, file)
  mkdirSync(dirname(path), { recursive: true })
  if (file.endsWith('.so.13')) copyFileSync(compiler, path)
  else writeFileSync(path, '')
  return path
}

/** Returns the include paths of a compilation with the NVRTC in a file, relative to this test's folder. */
function includePaths(library: string, options: object = {}): string[] {
  const source = JSON.stringify('a')
  const lines = runModule(
    `import { Program } from '@shoal/nvrtc'
     console.log(new Program(${source}).compileSync({ ...${JSON.stringify(options)}, cache: false }).log)`,
    { SHOAL_NVRTC_LIBRARY: library },
  )
  return lines.map((line) => line.replace('--include-path=', '').replace(`${scratch}/`, ''))
}

test.for<readonly [what: string, library: string, headers: readonly string[], folders: readonly string[]]>([
  ['a wheel', 'w13/nvidia/cu13/lib', ['w13/nvidia/cu13/include'], ['w13/nvidia/cu13/include']],
  [
    'a wheel with the headers of CCCL',
    'w/nvidia/cu13/lib',
    ['w/nvidia/cu13/include', 'w/nvidia/cu13/include/cccl/cuda/std'],
    ['w/nvidia/cu13/include', 'w/nvidia/cu13/include/cccl'],
  ],
  [
    'wheels of CUDA 12',
    'w12/nvidia/cuda_nvrtc/lib',
    ['w12/nvidia/cuda_runtime/include', 'w12/nvidia/cuda_cccl/include/cuda/std'],
    ['w12/nvidia/cuda_runtime/include', 'w12/nvidia/cuda_cccl/include'],
  ],
  ['a toolkit', 'cuda/lib64', ['cuda/include'], ['cuda/include']],
  ['a toolkit for Windows', 'cuda-w/bin/x64', ['cuda-w/include'], ['cuda-w/include']],
  ['a conda environment', 'conda/lib', ['conda/targets/x86_64-linux/include'], ['conda/targets/x86_64-linux/include']],
  ['no headers at all', 'bare/lib', [], []],
])("CUDA's headers are found next to NVRTC: %s", ([_what, folder, headers, folders], { skip }) => {
  if (reason !== undefined) return skip(reason)
  const library = put(join(folder, 'libnvrtc.so.13'))
  for (const each of headers) put(join(each, 'cuda_fp16.h'))
  expect(includePaths(library)).toEqual(folders)
})

test("a link into a toolkit leads to the toolkit's headers, after the program's include folders", ({ skip }) => {
  if (reason !== undefined) return skip(reason)
  const library = put('toolkit/targets/x86_64-linux/lib/libnvrtc.so.13')
  put('toolkit/targets/x86_64-linux/include/cuda_fp16.h')
  mkdirSync(join(scratch, 'elsewhere/lib64'), { recursive: true })
  const link = join(scratch, 'elsewhere/lib64/libnvrtc.so.13')
  symlinkSync(library, link)
  const own = { includeFolders: ['/own'] }
  expect(includePaths(link, own)).toEqual(['/own', 'toolkit/targets/x86_64-linux/include'])
})

test('the error for a missing header names includeFolders and the searched folders', ({ skip }) => {
  if (reason !== undefined) return skip(reason)
  const ask = (options: object): string =>
    runModule(
      `import { Program } from '@shoal/nvrtc'
       try { new Program('#error missing').compileSync(${JSON.stringify(options)}) } catch (e) { console.log(e.message.split('\\n').at(-1)) }`,
      { SHOAL_NVRTC_LIBRARY: compiler, FAKE_LOG: 'k.cu(1): error: cannot open source file "x.h"\n' },
    )[0] as string
  expect(ask({})).toMatch(/^Name the header's folder in the option includeFolders\. CUDA's own headers .* pip install/)
  const folders = ['/a', '/b', '/c', '/d', '/e']
  expect(ask({ includeFolders: folders })).toContain('Searched: /a, /b, /c, /d, and 1 more.')
})

test('a long compiler message is shortened in the error, and complete in diagnostics', () => {
  const log = `k.cu(1): error: no instance\n${'          detected during instantiation\n'.repeat(40)}\n`
  const facts = { library: 'NVRTC', api: 'f', status: 6, code: 'X', description: '' }
  const error = new CompileError({ ...facts, log })
  expect(error.message.split('\n').length).toBeLessThanOrEqual(8)
  expect(error.diagnostics[0]?.message.split('\n')).toHaveLength(41)
})
