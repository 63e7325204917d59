import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface FixtureResult {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  readonly milliseconds: number
}

export interface FixtureOptions {
  readonly nodeArguments?: readonly string[]
  readonly arguments?: readonly string[]
}

/** Runs a script in a separate process, with plain Node and the built packages. */
export function runFixture(
  script: URL,
  environment: Readonly<Record<string, string | undefined>> = { SHOAL_DEVICE: 'sim' },
  options: FixtureOptions = {},
): Promise<FixtureResult> {
  const inherited = Object.entries(process.env).filter(([key]) => !key.startsWith('SHOAL_'))
  const env = { ...Object.fromEntries(inherited), ...environment }
  const start = performance.now()
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [...(options.nodeArguments ?? []), fileURLToPath(script), ...(options.arguments ?? [])],
      {
        env,
        timeout: 30_000,
      },
    )
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.on('error', reject)
    child.on('close', (code, signal) =>
      resolve({ code, signal, stdout, stderr, milliseconds: performance.now() - start }),
    )
  })
}
