import { defineConfig } from 'vitest/config'
import { LongestFirst } from './tooling/config/src/longestFirst.js'

export default defineConfig({
  test: {
    include: ['packages/*/test/**/*.test.ts', 'tooling/*/test/**/*.test.ts', 'docs/examples/*/test/**/*.test.ts'],
    // A process a file: a native crash or a stuck thread takes down one file, not the run.
    pool: 'forks',
    // Two processors are enough. Many files wait for processes and time limits most of the time, and let a third one
    // work.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // For what hangs: nothing that a slow or busy machine does takes this long.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    server: {
      deps: {
        // Built packages load as plain Node modules, the way a user loads them.
        external: [/\/dist\/.*\.js$/],
      },
    },
    setupFiles: ['./tooling/config/src/namedLibraries.ts', './tooling/config/src/equalArrays.ts'],
    reporters: ['default', './tooling/config/src/skipReporter.ts'],
  },
})
