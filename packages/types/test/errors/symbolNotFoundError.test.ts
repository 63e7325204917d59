import { SymbolNotFoundError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('SymbolNotFoundError', () => {
  itIsAShoalError(new SymbolNotFoundError({ library: 'CUDA driver', symbol: 'cuNothing', path: '/lib/libcuda.so.1' }), {
    name: 'SymbolNotFoundError',
    code: 'SHOAL_SYMBOL_NOT_FOUND',
    library: 'CUDA driver',
    symbol: 'cuNothing',
    path: '/lib/libcuda.so.1',
  })

  it('names the library, its version and file, and the function', () => {
    const { message } = new SymbolNotFoundError({
      library: 'NCCL',
      symbol: 'ncclNothing',
      path: '/lib/libnccl.so.2',
      installed: '2.28.9',
    })
    expect(message).toMatch(/^NCCL 2\.28\.9 \(\/lib\/libnccl\.so\.2\) has no function ncclNothing\. /)
  })

  it('names the version whose signature was requested', () => {
    const { message } = new SymbolNotFoundError({ library: 'CUDA driver', symbol: 'cuInit', signatureOf: '13.0' })
    expect(message).toContain('has no function cuInit with the signature that it has in 13.0')
  })
})
