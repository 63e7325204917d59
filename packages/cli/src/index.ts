import { type Command, HelpRequest, UsageError, usageStatus } from './command.js'
import { shoalVersion } from './version.js'

interface Entry {
  readonly summary: string
  readonly load: () => Promise<Command>
}

const commands: Readonly<Record<string, Entry>> = {
  run: {
    summary: 'start one process per rank: shoal run -n 8 train.js',
    load: async () => (await import('./run/command.js')).runCommand,
  },
  doctor: {
    summary: 'report libraries, devices and missing parts of this machine',
    load: async () => (await import('./doctor/command.js')).doctorCommand,
  },
  bench: {
    summary: 'measure NCCL and NVSHMEM: shoal bench all-reduce',
    load: async () => (await import('./bench/command.js')).benchCommand,
  },
}

const usage = `usage: shoal COMMAND …

${Object.entries(commands)
  .map(([name, { summary }]) => `  ${name.padEnd(8)} ${summary}`)
  .join('\n')}

shoal COMMAND --help explains a command, shoal --version prints the version.`

/**
 * Runs the program `shoal`.
 *
 * @param commandLine - the arguments after the program's name
 * @returns the exit status
 */
export async function main(commandLine: readonly string[]): Promise<number> {
  const [name, ...rest] = commandLine
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    console.log(usage)
    return name === undefined ? usageStatus : 0
  }
  if (name === '--version' || name === '-v') {
    console.log(shoalVersion())
    return 0
  }
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (entry === undefined) {
    console.error(`shoal: there is no command '${name}'\n${usage}`)
    return usageStatus
  }
  const command = await entry.load()
  try {
    return await command.run(rest)
  } catch (error) {
    if (error instanceof HelpRequest) {
      console.log(command.usage)
      return 0
    }
    if (!(error instanceof UsageError)) throw error
    console.error(`shoal ${name}: ${error.message}\nshoal ${name} --help tells how to use it.`)
    return usageStatus
  }
}
