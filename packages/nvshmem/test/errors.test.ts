import { nvshmemStatusText, SessionExistsError, SessionStuckError } from '@shoal/nvshmem'
import { nvshmemx_status } from '@shoal/nvshmem-sys'
import { NvshmemVersion, ShoalError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { hasFault } from '../src/workarounds/faults.js'

describe('nvshmemStatusText', () => {
  test('has a name and a text for every status', () => {
    const statuses = Object.entries(nvshmemx_status).filter(([name]) => !name.endsWith('SENTINEL'))
    expect(statuses.length).toBeGreaterThan(6)
    for (const [name, status] of statuses) {
      const text = nvshmemStatusText(status)
      expect(text.name).toBe(name)
      expect(text.description).not.toContain('unknown')
    }
    expect(nvshmemStatusText(0)).toEqual({ name: 'NVSHMEMX_SUCCESS', description: 'no error' })
  })

  test('says so of a status that it does not know', () => {
    expect(nvshmemStatusText(-3)).toEqual({
      name: 'nvshmemx_status(-3)',
      description: 'unknown status; what NVSHMEM printed may tell more',
    })
  })

  test.for(['7', 1.5, Number.NaN, null, undefined])('refuses %s', (status) => {
    expect(() => nvshmemStatusText(status as never)).toThrow(/^nvshmemStatusText: status must be an integer from/)
  })
})

describe('errors', () => {
  test('have a code, and say what to do', () => {
    const exists = new SessionExistsError('Session.init: NVSHMEM runs')
    expect(exists).toBeInstanceOf(ShoalError)
    expect(exists).toMatchObject({ name: 'SessionExistsError', code: 'SHOAL_NVSHMEM_SESSION_EXISTS' })
    const cause = new Error('late')
    const stuck = new SessionStuckError('Session.put', 'Session.barrierAll', cause)
    expect(stuck).toMatchObject({
      name: 'SessionStuckError',
      code: 'SHOAL_NVSHMEM_STUCK',
      operation: 'Session.put',
      waitingFor: 'Session.barrierAll',
      cause,
    })
    expect(stuck.message).toMatch(/Session.barrierAll was given up .* end this process, or wait for the call to return/)
  })
})

describe('a fault of NVSHMEM', () => {
  test('is worked around in the versions that have it', () => {
    const versions = ['3.0.6', '3.4.5', '3.4.99', '3.5.0', '3.8.1'].map((text) => NvshmemVersion.parse(text))
    expect(versions.map((version) => hasFault('heapGrowth', version))).toEqual([true, true, true, false, false])
    expect(versions.map((version) => hasFault('reduceScratch', version))).toEqual([true, true, true, true, true])
  })
})
