import { DeviceInUseError } from '@shoal/driver/shared'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from '../../types/test/errors/describeError.js'

describe('DeviceInUseError', () => {
  const error = new DeviceInUseError({ deviceOrdinal: 1, reason: 'is being reset' })

  itIsAShoalError(error, {
    name: 'DeviceInUseError',
    code: 'SHOAL_DEVICE_IN_USE',
    deviceOrdinal: 1,
    reason: 'is being reset',
  })

  it('names the device and the reason why it cannot be reset', () => {
    expect(error.message).toBe('device 1: is being reset')
  })
})
