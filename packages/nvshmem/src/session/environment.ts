let seen: NodeJS.ProcessEnv | undefined

/**
 * The variables of the process as NVSHMEM knows them: it reads them once, in its first call, so this is asked for before
 * every call that may be the first.
 */
export function environmentOfNvshmem(): Readonly<NodeJS.ProcessEnv> {
  seen ??= { ...process.env }
  return seen
}
