import { expect, test } from 'vitest'
import { moduleRunner } from '../../ffi/test/support/stub.js'

const runModule = moduleRunner(new URL('../', import.meta.url))

test.each([
  ['@shoal/cublas-sys', 'cublasCreate', 'NVIDIA cuBLAS'],
  ['@shoal/cublas-sys/lt', 'cublasLtCreate', 'NVIDIA cuBLASLt'],
])('%s on the software device throws that it has no such library', (entry, name, title) => {
  const lines = runModule(
    `import { ${name} } from '${entry}'
     try { ${name}(new BigUint64Array(1)) } catch (error) { console.log(error.code); console.log(error.message) }`,
    { SHOAL_DEVICE: 'sim', SHOAL_CUBLAS_LIBRARY: '', SHOAL_CUBLASLT_LIBRARY: '' },
  )
  expect(lines.slice(0, 5)).toEqual([
    'SHOAL_LIBRARY_NOT_FOUND',
    `Cannot load ${title}. Looked at 1 place:`,
    `  ${title}: the software device has no such library`,
    'What to do:',
    '  - use it on a GPU, without SHOAL_DEVICE=sim',
  ])
})

test('a missing cuBLAS does not suggest the software device', () => {
  const lines = runModule(
    `import { cublasCreate } from '@shoal/cublas-sys'
     try { cublasCreate(new BigUint64Array(1)) } catch (error) { console.log(error.message) }`,
    { SHOAL_DEVICE: '', SHOAL_CUBLAS_LIBRARY: '/nowhere/libcublas.so.13' },
  )
  expect(lines[0]).toBe('Cannot load NVIDIA cuBLAS. Looked at 1 place:')
  expect(lines.join()).toMatch(/install the CUDA toolkit/)
  expect(lines.join()).not.toMatch(/SHOAL_DEVICE/)
})
