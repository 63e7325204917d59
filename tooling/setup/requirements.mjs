// Checks what a machine needs before anything can be installed or built.
import { spawnSync } from 'node:child_process'
import { SetupError } from './workspace.mjs'

export function checkNode(minimum) {
  const [wantedMajor, wantedMinor] = minimum.replace(/^>=/, '').split('.').map(Number)
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return
  throw new SetupError(
    `Shoal needs Node.js ${wantedMajor}.${wantedMinor} or newer; this is ${process.versions.node} (${process.execPath}).`,
  )
}

/** The native parts are C++17, built with make. */
export function checkCompiler() {
  const compiler = process.env.CXX || 'g++'
  const missing = [compiler, 'make'].filter((tool) => spawnSync(tool, ['--version']).error)
  if (missing.length === 0) return
  throw new SetupError(
    `Not found: ${missing.join(' and ')}. The native parts are built from C++17 source.\n` +
      'On Debian and Ubuntu: apt-get install g++ make. On Fedora: dnf install gcc-c++ make.\n' +
      'Another compiler can be named in the environment variable CXX.',
  )
}
