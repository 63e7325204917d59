import { LibraryNotFoundError, type LoadAttempt } from '@shoal/types'
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

  it('lists a few searched places, and a remedy', () => {
    for (const { candidate } of attempts) expect(error.message).toContain(candidate)
    for (const words of ['not there', 'invalid ELF header second line', 'Install it.', 'SHOAL_NCCL_LIBRARY=']) {
      expect(error.message).toContain(words)
    }
    expect(error.message).toContain('SHOAL_DEVICE=sim')
  })

  it('counts many places and lists those with a file that does not load', () => {
    const places = Array.from({ length: 400 }, (_, i) => ({
      step: 'wheel',
      candidate: `/opt/${i}/libnccl.so.2`,
      outcome: i % 50 === 7 ? 'truncated\n  at byte 7' : i % 2 === 0 ? 'not there' : 'not loaded',
    }))
    const { message, attempts: all } = new LibraryNotFoundError({
      library: 'NCCL',
      attempts: places,
      hint: 'Install it.',
    })
    expect(message.split('\n')).toEqual([
      'Cannot load NCCL. Looked at 400 places, listed in error.attempts:',
      '  /opt/7/libnccl.so.2: truncated at byte 7',
      '  /opt/57/libnccl.so.2: truncated at byte 7',
      '  /opt/107/libnccl.so.2: truncated at byte 7',
      '  and 5 more that do not load',
      'What to do:',
      '  - Install it.',
      '  - To run without a GPU on the software device, install @shoal/sim and set SHOAL_DEVICE=sim.',
    ])
    expect(all).toBe(places)
  })
})
