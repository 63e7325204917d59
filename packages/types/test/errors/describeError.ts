import { inspect } from 'node:util'
import { ShoalError } from '@shoal/types'
import { expect, it } from 'vitest'

/** Tests the common behavior of Shoal's errors. `json` is the result of `toJSON()` except for the message. */
export function itIsAShoalError(
  error: ShoalError,
  json: { readonly name: string; readonly code: string; readonly [field: string]: unknown },
): void {
  it('is an Error of its own class, named in its stack', () => {
    expect(error).toBeInstanceOf(ShoalError)
    expect(error).toBeInstanceOf(Error)
    expect(error.name).toBe(json.name)
    expect(error.constructor.name).toBe(json.name)
    expect(error.stack?.startsWith(`${json.name}: `)).toBe(true)
    expect(Object.keys(error)).not.toContain('name')
  })

  it('has a code, shown with the message', () => {
    expect(String(error)).toBe(`${json.name} [${json.code}]: ${error.message}`)
  })

  it('is plain data as JSON', () => {
    expect(JSON.parse(JSON.stringify(error))).toEqual({ ...json, message: error.message })
  })

  it('shows its fields when printed, and no field that was not given', () => {
    const printed = inspect(error)
    for (const field of Object.keys(error)) expect(printed).toContain(`${field}:`)
    expect(printed).not.toContain('undefined')
  })
}
