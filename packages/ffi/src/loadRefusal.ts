import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'

const headerBytes = 64
const loadSegment = 1
/** `e_machine` of the processors that Node.js supports. */
const machines: Readonly<Record<number, string>> = { 62: 'x64', 183: 'arm64', 243: 'riscv64', 258: 'loong64' }

/**
 * Returns why a file must not be passed to the system's loader; `undefined` if it may.
 *
 * The loader waits forever on a pipe, crashes on a truncated library, and reports a library of another processor as
 * missing. The loader itself reports other faults.
 */
export function loadRefusal(file: string): string | undefined {
  let kind: ReturnType<typeof statSync>
  try {
    kind = statSync(file)
  } catch {
    return undefined // the loader reports the missing file
  }
  if (kind.isDirectory()) return 'a folder, not a library'
  if (!kind.isFile()) return 'not a regular file'
  return process.platform === 'linux' ? elfProblem(file) : undefined
}

function elfProblem(file: string): string | undefined {
  let descriptor: number
  try {
    descriptor = openSync(file, 'r')
  } catch {
    return undefined // unreadable: the loader reports it
  }
  try {
    const { size } = fstatSync(descriptor)
    const header = read(descriptor, 0, headerBytes)
    const isElf64 =
      header.length === headerBytes && header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2 && header[5] === 1
    if (!isElf64) return undefined
    const machine = machines[header.readUInt16LE(18)]
    if (machine !== undefined && machine !== process.arch)
      return `built for ${machine}, and this Node.js for ${process.arch}`
    const tableOffset = Number(header.readBigUInt64LE(32))
    const [entryBytes, entries] = [header.readUInt16LE(54), header.readUInt16LE(56)]
    const table = read(descriptor, tableOffset, entryBytes * entries)
    if (entryBytes < 56 || table.length < entryBytes * entries)
      return `truncated: ${size} bytes, less than its own headers need`
    for (let at = 0; at < table.length; at += entryBytes) {
      if (table.readUInt32LE(at) !== loadSegment) continue
      const end = Number(table.readBigUInt64LE(at + 8)) + Number(table.readBigUInt64LE(at + 32))
      if (end > size) return `truncated: ${size} bytes where its headers name ${end}`
    }
    return undefined
  } finally {
    closeSync(descriptor)
  }
}

function read(descriptor: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length)
  return buffer.subarray(0, length === 0 ? 0 : readSync(descriptor, buffer, 0, length, position))
}
