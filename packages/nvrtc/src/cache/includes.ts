import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'

/** An include, or the question whether it could be had: what stands behind it is a file's name, or a macro. */
const directive =
  /(?:(?:#|%:|\?\?=)(?:\s|\\\n|\/\*[\s\S]*?\*\/)*include(?:_next)?|__has_include(?:_next)?(?:\s|\\\n)*\()(?:\s|\\\n|\/\*[\s\S]*?\*\/)*(?:<([^>\n]+)>|"([^"\n]+)"|)/g

/**
 * The files that a source may include, each with a digest of what it has now: every file of a fitting name that is there in a
 * folder that is looked in, so more of them than are included. `undefined` where an include is made by a macro: then nobody but a
 * compiler knows.
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
  const visit = (text: string, folder: string): boolean => {
    if (!text.includes('include')) return true
    for (const [, inBrackets, inQuotes] of text.matchAll(directive)) {
      const wanted = inBrackets ?? inQuotes
      if (wanted === undefined || !find(wanted, folder)) return false
    }
    return true
  }
  const find = (wanted: string, folder: string): boolean => {
    const places = isAbsolute(wanted) ? [wanted] : [folder, ...folders].map((each) => join(resolve(each), wanted))
    for (const file of places) {
      if (seen.has(file)) continue
      seen.add(file)
      let text: string
      try {
        text = readFileSync(file, 'utf8')
      } catch {
        continue // not there, or not ours to read
      }
      files[file] = createHash('sha256').update(text).digest('hex')
      if (!visit(text, dirname(file))) return false
    }
    return true
  }
  const home = dirname(resolve(name))
  const texts = [source, ...Object.values(headers)]
  const isKnown = preIncludes.every((each) => find(each, home)) && texts.every((text) => visit(text, home))
  return isKnown ? files : undefined
}
