import { formatLoadAttempts, LibraryNotFoundError, type LoadAttempt } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

const attempts: readonly LoadAttempt[] = [
  { step: 'environment', candidate: '/opt/libnccl.so', outcome: 'not there' },
  { step: 'loader', candidate: 'libnccl.so.2', outcome: 'invalid ELF header\nsecond line' },
]

describe('LibraryNotFoundError', () => {
  const error = new LibraryNotFoundError({
    library: 'NCCL',
    attempts,
    hint: 'Install it.',
    environment: 'SHOAL_NCCL_LIBRARY',
  })

  itIsAShoalError(error, {
    name: 'LibraryNotFoundError',
    code: 'SHOAL_LIBRARY_NOT_FOUND',
    library: 'NCCL',
    attempts,
    hint: 'Install it.',
    environment: 'SHOAL_NCCL_LIBRARY',
  })

  it('lists everything that was tried, and what to do', () => {
    for (const { candidate } of attempts) expect(error.message).toContain(candidate)
    for (const words of ['not there', 'invalid ELF header', 'second line', 'Install it.', 'SHOAL_NCCL_LIBRARY=']) {
      expect(error.message).toContain(words)
    }
    expect(error.message).toContain('SHOAL_DEVICE=sim')
  })
})

describe('formatLoadAttempts', () => {
  it('aligns the attempts and keeps long outcomes in their column', () => {
    expect(formatLoadAttempts(attempts)).toBe(
      [
        '  environment  /opt/libnccl.so: not there',
        '  loader       libnccl.so.2: invalid ELF header',
        '                 second line',
      ].join('\n'),
    )
    expect(formatLoadAttempts([])).toContain('nothing was tried')
  })
})
