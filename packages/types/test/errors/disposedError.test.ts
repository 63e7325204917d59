import { DisposedError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('DisposedError', () => {
  itIsAShoalError(new DisposedError({ object: 'Stream', operation: 'synchronize' }), {
    name: 'DisposedError',
    code: 'SHOAL_DISPOSED',
    object: 'Stream',
    operation: 'synchronize',
  })

  it('accepts a name without details', () => {
    expect(new DisposedError('DeviceBuffer')).toMatchObject({ object: 'DeviceBuffer' })
    expect(new DisposedError('DeviceBuffer').message).toMatch(/^DeviceBuffer was disposed\. /)
  })

  it('has no cause unless one is given', () => {
    expect(Object.hasOwn(new DisposedError('Event'), 'cause')).toBe(false)
  })
})
