import { readFileSync } from 'node:fs'

/**
 * Returns pid and start time of this machine's launcher process.
 *
 * This is the nearest ancestor that is not a rank. Shells and wrappers below it inherit the rank's variables, so they
 * are skipped.
 */
export function launcherProcess(rankVariable: string): string {
  let pid = process.ppid
  while (pid > 1 && hasVariable(pid, rankVariable)) {
    const parent = statOf(pid)?.parent
    if (parent === undefined) break
    pid = parent
  }
  return `${pid} ${statOf(pid)?.startTime ?? ''}`
}

function hasVariable(pid: number, name: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
      .split('\0')
      .some((entry) => entry.startsWith(`${name}=`))
  } catch {
    return false // another user's process, so not one of our ranks; or not Linux
  }
}

function statOf(pid: number): { readonly parent: number; readonly startTime: string } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The process name is in parentheses, and may contain parentheses.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { parent: Number(fields[1]), startTime: fields[19] ?? '' }
  } catch {
    return undefined // the process has ended; or not Linux
  }
}
