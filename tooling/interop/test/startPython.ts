import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../python/', import.meta.url))

/**
 * Runs a program that finds its end of the socket in `peer`. Resolves with its output. @throws Error if the program
 * fails
 */
export function startPython(program: string, path: string): Promise<string> {
  const prelude = `import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from descriptor_socket import DescriptorSocket
peer = DescriptorSocket.connect(sys.argv[2])
`
  const child = spawn('python3', ['-c', prelude + program, folder, path], { stdio: ['ignore', 'pipe', 'pipe'] })
  let [output, errors] = ['', '']
  child.stdout.on('data', (text) => {
    output += text
  })
  child.stderr.on('data', (text) => {
    errors += text
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) =>
      code === 0 ? resolve(output) : reject(new Error(`python3 ended with ${code}: ${errors}`)),
    )
  })
}
