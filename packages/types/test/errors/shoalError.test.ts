import * as types from '@shoal/types'
import { DisposedError, ShoalError } from '@shoal/types'
import { describe, expect, it } from 'vitest'

class OwnError extends ShoalError {
  readonly code = 'OWN'
  readonly count = 3n as unknown as number
}

describe('ShoalError', () => {
  it('serializes name, code, message and fields to JSON, and omits a missing cause', () => {
    const json = new OwnError('what happened').toJSON()
    expect(json).toEqual({ name: 'Error', code: 'OWN', message: 'what happened', count: '3' })
  })

  it('serializes the cause as plain data: an error with its fields, others by name and message, the rest as text', () => {
    const causeOf = (cause: unknown): unknown => new OwnError('x', { cause }).toJSON()['cause']
    expect(causeOf(new DisposedError('Event'))).toMatchObject({ code: 'SHOAL_DISPOSED', object: 'Event' })
    expect(causeOf(new RangeError('below'))).toEqual({ name: 'RangeError', message: 'below' })
    expect(causeOf(7)).toBe('7')
  })

  it('is the base of every exported error', () => {
    const errors = Object.entries(types).filter(([name]) => name.endsWith('Error') && name !== 'ShoalError')
    expect(errors.length).toBeGreaterThan(10)
    const others = errors.filter(([, value]) => !(Object.getPrototypeOf(value) === ShoalError))
    expect(others.map(([name]) => name)).toEqual([])
  })
})
