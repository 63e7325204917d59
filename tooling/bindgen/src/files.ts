import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** The text of a file, or undefined if it does not exist. */
export function readText(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

export function writeText(path: string, text: string): void {
  if (readText(path) === text) return
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** All files in a folder, with paths relative to it. */
export function listFiles(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort()
}

/** Makes the folder contain exactly these files. */
export function syncFolder(folder: string, files: ReadonlyMap<string, string>): void {
  for (const path of listFiles(folder)) if (!files.has(path)) rmSync(join(folder, path))
  for (const [path, text] of files) writeText(join(folder, path), text)
}

/** Describes the differences between a folder and its expected files. */
export function compareFolder(folder: string, files: ReadonlyMap<string, string>): string[] {
  const differences: string[] = []
  for (const path of listFiles(folder)) if (!files.has(path)) differences.push(`${path} is no longer generated`)
  for (const [path, text] of files) {
    const current = readText(join(folder, path))
    if (current === undefined) differences.push(`${path} is missing`)
    else if (current !== text) differences.push(`${path} differs${firstDifference(current, text)}`)
  }
  return differences
}

export function firstDifference(current: string, wanted: string): string {
  const [left, right] = [current.split('\n'), wanted.split('\n')]
  const line = left.findIndex((text, index) => text !== right[index])
  if (line < 0) return ` from line ${left.length + 1} on`
  return ` at line ${line + 1}:\n    committed: ${(left[line] ?? '').slice(0, 200)}\n    generated: ${(right[line] ?? '').slice(0, 200)}`
}
