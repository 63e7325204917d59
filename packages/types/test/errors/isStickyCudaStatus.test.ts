import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isStickyCudaStatus } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { cudaInclude } from '../toolchain.js'

describe('isStickyCudaStatus', () => {
  it('distinguishes lost contexts from failures that keep the context usable', () => {
    for (const status of [700, 710, 719]) expect(isStickyCudaStatus(status)).toBe(true)
    for (const status of [0, 1, 2, 201, 400, 600, 701, 720]) expect(isStickyCudaStatus(status)).toBe(false)
  })

  it('agrees with the documentation of each status in cuda.h', ({ skip }) => {
    const include = cudaInclude()
    if ('reason' in include) return skip(include.reason)
    const file = join(include.folder, 'cuda.h')
    expect(existsSync(file)).toBe(true)
    const text = readFileSync(file, 'utf8')
    const body = text.slice(text.indexOf('typedef enum cudaError_enum'), text.indexOf('} CUresult'))
    const statuses = [...body.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(CUDA_\w+)\s*=\s*(\d+)/g)]
    expect(statuses.length).toBeGreaterThan(80)
    const mismatches = statuses.filter(([, comment = '', , status]) => {
      const words = comment.replace(/[\s*]+/g, ' ')
      const lost = /process must be terminated|cannot be used anymore/.test(words)
      return lost !== isStickyCudaStatus(Number(status))
    })
    expect(mismatches.map(([, , name]) => name)).toEqual([])
  })
})
