import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/**
 * Creates a folder that is deleted after the tests of the calling file or `describe` block. Do not call it inside a
 * test. Test processes can end without an `exit` event, so the deletion does not depend on one. Libraries loaded from
 * the folder stay loaded after their files are deleted.
 */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-test-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
