import { ShoalError } from '@shoal/driver'

/** Runs a program. An error of the machine becomes one line on stderr and exit status 2. */
export async function run(name: string, main: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await main()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const isExpected = error instanceof ShoalError || error instanceof UsageError || typeof code === 'string'
    if (!isExpected) throw error
    console.error(`${name}: ${(error as Error).message}`)
    process.exitCode = 2
  }
}

/** The command line is wrong: the message says it all. */
export class UsageError extends Error {}
