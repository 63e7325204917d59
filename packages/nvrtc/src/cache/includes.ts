import { createHash } from 'node:crypto'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { includeNames } from './includeNames.js'
import { readRegularFile } from './regularFile.js'

/**
 * Returns the files that a source may include, with digests of their content.
 *
 * These are all files with a matching name in a searched folder, so more than are included. `undefined` if the files
 * are unknown: a macro names a file, or a name leads to a special file, whose content can differ at the next read.
 */
export function includedFiles(
  source: string,
  name: string,
  headers: Readonly<Record<string, string>>,
  folders: readonly string[],
  preIncludes: readonly string[],
): Record<string, string> | undefined {
  const files: Record<string, string> = {}
  const seen = new Set<string>()
  const visit = (text: string, folder: string): boolean =>
    includeNames(text)?.every((wanted) => find(wanted, folder)) ?? false
  const find = (wanted: string, folder: string): boolean => {
    const places = isAbsolute(wanted) ? [wanted] : [folder, ...folders].map((each) => join(resolve(each), wanted))
    for (const file of places) {
      if (seen.has(file)) continue
      seen.add(file)
      const content = readRegularFile(file)
      if (content === 'absent') continue
      if (content === 'special') return false
      files[file] = createHash('sha256').update(content).digest('hex')
      if (!visit(content.toString('utf8'), dirname(file))) return false
    }
    return true
  }
  const home = dirname(resolve(name))
  const texts = [source, ...Object.values(headers)]
  const isKnown = preIncludes.every((each) => find(each, home)) && texts.every((text) => visit(text, home))
  return isKnown ? files : undefined
}
