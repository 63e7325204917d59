/** One of the commands of `shoal`; its module is loaded when it is asked for. */
export interface Command {
  readonly usage: string
  /** Returns the exit status. @throws UsageError, HelpRequest */
  run(commandLine: readonly string[]): Promise<number>
}

/** The command line is wrong: its message says it all, a stack would not help. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** `--help`, wherever it stands among the options. */
export class HelpRequest extends Error {
  override readonly name = 'HelpRequest'
}

/** Exit status of a wrong command line. */
export const usageStatus = 2
