import { SystemError } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { itIsAShoalError } from './describeError.js'

describe('SystemError', () => {
  const cause = Object.assign(new Error('EISDIR: illegal operation on a directory, read'), { code: 'EISDIR' })
  const error = new SystemError({ api: 'Module.loadFile', parameter: 'path', value: '/tmp', cause })

  itIsAShoalError(error, {
    name: 'SystemError',
    code: 'EISDIR',
    api: 'Module.loadFile',
    parameter: 'path',
    value: '/tmp',
    cause: { name: 'Error', message: cause.message },
  })

  it("names the call, the argument and the system's error", () => {
    expect(error.message).toBe(
      "Module.loadFile: the system refused path '/tmp': EISDIR: illegal operation on a directory, read",
    )
    expect(error.cause).toBe(cause)
  })

  it('has the code SHOAL_SYSTEM if the system reported none', () => {
    expect(new SystemError({ api: 'f', parameter: 'p', value: 'v', cause: 'why' }).code).toBe('SHOAL_SYSTEM')
  })

  it('reports the call as refused if no parameter names a file', () => {
    expect(new SystemError({ api: 'f', cause }).message).toMatch(/^f: the system refused this: EISDIR/)
  })
})
