import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/**
 * A new folder, which goes when the tests of the file (or of the `describe` block) that asks for it have ended. Not for
 * use inside a test. A process of tests may be ended without an `exit` event, so nothing is left to that one; libraries
 * that are loaded from here stay loaded without their files.
 */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-test-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
