import { readFileSync } from 'node:fs'

/**
 * The process that started the ranks of this machine: the nearest ancestor that is no rank itself. Shells and wrappers
 * between it and a rank have inherited the rank's variables, so they are passed over. Its number and start time, as
 * text.
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
    return false // somebody else's process, and so no rank of ours; or no Linux
  }
}

function statOf(pid: number): { readonly parent: number; readonly startTime: string } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name stands in parentheses, and may contain some.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { parent: Number(fields[1]), startTime: fields[19] ?? '' }
  } catch {
    return undefined // it has ended meanwhile; or no Linux
  }
}
