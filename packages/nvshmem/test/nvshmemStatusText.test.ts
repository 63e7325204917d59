import { nvshmemStatusText } from '@shoal/nvshmem'
import { nvshmemx_status } from '@shoal/nvshmem-sys'
import { describe, expect, test } from 'vitest'

describe('nvshmemStatusText', () => {
  test('returns a name and a text for every status', () => {
    const statuses = Object.entries(nvshmemx_status).filter(([name]) => !name.endsWith('SENTINEL'))
    expect(statuses.length).toBeGreaterThan(6)
    for (const [name, status] of statuses) {
      const text = nvshmemStatusText(status)
      expect(text.name).toBe(name)
      expect(text.description).not.toContain('unknown')
    }
    expect(nvshmemStatusText(0)).toEqual({ name: 'NVSHMEMX_SUCCESS', description: 'no error' })
  })

  test('describes an unknown status as unknown', () => {
    expect(nvshmemStatusText(-3)).toEqual({
      name: 'nvshmemx_status(-3)',
      description: 'unknown status; what NVSHMEM printed may tell more',
    })
  })

  test.for(['7', 1.5, Number.NaN, null, undefined])('refuses %s', (status) => {
    expect(() => nvshmemStatusText(status as never)).toThrow(/^nvshmemStatusText: status must be an integer from/)
  })
})
