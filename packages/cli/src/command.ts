/** A command of `shoal`, loaded on demand. */
export interface Command {
  readonly usage: string
  /** Runs the command and returns the exit status. @throws UsageError, HelpRequest */
  run(commandLine: readonly string[]): Promise<number>
}

/** The command line is wrong. The program prints only the message, without a stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** `--help` at any position among the options. */
export class HelpRequest extends Error {
  override readonly name = 'HelpRequest'
}

/** Exit status of a wrong command line. */
export const usageStatus = 2
