import { AddonLoadError, type LoadAttempt } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

const attempts: readonly LoadAttempt[] = [
  { step: 'environment', candidate: '/opt/shoal.node', outcome: 'not there' },
  { step: 'loader', candidate: 'libnccl.so.2', outcome: 'invalid ELF header\nsecond line' },
]

describe('AddonLoadError', () => {
  itIsAShoalError(new AddonLoadError({ attempts, platform: 'linux-x64-glibc' }), {
    name: 'AddonLoadError',
    code: 'SHOAL_ADDON_NOT_LOADED',
    attempts,
    platform: 'linux-x64-glibc',
  })

  it('explains how to install the addon, with specific advice first', () => {
    const { message } = new AddonLoadError({ attempts, hints: ['This system has musl; glibc is needed.'] })
    const advice = message.slice(message.indexOf('What to do:'))
    expect(advice.split('\n')[1]).toContain('musl')
    for (const words of [
      'Reinstall @shoal/ffi',
      '@shoal/ffi-source',
      'node-api-headers',
      'make -C',
      'SHOAL_FFI_ADDON=',
    ]) {
      expect(advice).toContain(words)
    }
    expect(message).toContain(`${process.platform}-${process.arch}`)
  })
})
