import type { Command } from '../command.js'
import { readRunOptions, usage } from './options.js'
import { programOf } from './program.js'
import { Supervisor } from './supervisor.js'

export const runCommand: Command = {
  usage,
  async run(commandLine) {
    const options = readRunOptions(commandLine)
    return await new Supervisor(options, programOf(options)).run()
  },
}
