import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript-api'
import { beforeAll, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { emitLibrary } from '../src/emit/library.js'
import { compileLibrary } from '../src/proof/compile.js'
import { randomPrototypes } from '../src/proof/prototypes.js'
import { emitRecorder } from '../src/proof/recorder.js'
import { root } from './environment.js'
import { noCompiler, runJob } from './proof.js'

// Real libraries only have some shapes of prototypes. These are the others: results of every kind, structs of odd
// sizes, floats among integers that overflow the registers.

const count = 600
const spec = randomPrototypes(count, 20)
const folder = scratchFolder()
const location = { file: join(folder, 'package/index.js'), environment: 'SHOAL_PROTOTYPES_LIBRARY' }
let recorder = ''

/** Writes the generator's output as a JavaScript package. */
function writePackage(): void {
  const home = dirname(location.file)
  mkdirSync(join(folder, 'node_modules/@shoal'), { recursive: true })
  for (const name of ['ffi', 'types'])
    symlinkSync(join(root, 'packages', name), join(folder, 'node_modules/@shoal', name), 'dir')
  const write = (path: string, text: string): void => {
    const file = join(home, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  for (const [path, source] of emitLibrary(spec)) {
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true },
    })
    write(join('generated', path.replace(/\.ts$/, '.js')), outputText)
  }
  write('package.json', '{ "type": "module" }')
  write(
    'library.js',
    `import { defineLibrary } from '@shoal/ffi'
export const runtime = defineLibrary({ id: 'prototypes', title: 'prototypes', environment: '${location.environment}', linux: [], hint: '' })\n`,
  )
  write('index.js', "export * from './generated/index.gen.js'\nexport * from './library.js'\n")
}

const reason = noCompiler()

describe('random prototypes', () => {
  beforeAll(async () => {
    if (reason !== undefined) return
    writePackage()
    recorder = await compileLibrary(folder, 'prototypes', emitRecorder(spec))
  })

  test.for(['block', 'recording', 'koffi', 'refusals'] as const)('%s', async (engine, { skip }) => {
    if (reason !== undefined) return skip(reason)
    const report = await runJob(folder, engine, {
      spec,
      recorder,
      engine,
      perThread: false,
      seed: 3,
      location,
    })
    expect(report.failures.slice(0, 20).map((failure) => `${failure.function}, ${failure.what}`)).toEqual([])
    expect(report.functions).toHaveLength(count)
    console.log(
      `${engine}: ${report.functions.length} prototypes, ${report.calls} calls, ${report.arguments} arguments`,
    )
  })
})
